// Package units writes counts, sizes, times and figures for people: "1,200 batches", "13.5 min", "2.4 GiB".
package units

import (
	"fmt"
	"math"
	"strconv"
	"strings"
	"time"
)

// Number writes a loss, a norm or a rate to about four figures, in at most seven characters.
func Number(v float64) string {
	a := math.Abs(v)
	switch {
	case math.IsNaN(v), math.IsInf(v, 0):
		return "-"
	case a == 0:
		return "0"
	case a < 0.00995, a >= 99999.5:
		return fmt.Sprintf("%.1e", v)
	case a < 9.9995:
		return fmt.Sprintf("%.3f", v)
	case a < 99.995:
		return fmt.Sprintf("%.2f", v)
	case a < 999.95:
		return fmt.Sprintf("%.1f", v)
	}
	return fmt.Sprintf("%.0f", v)
}

// Rate writes a speed to two or three figures.
func Rate(v float64) string {
	switch {
	case v >= 99.95:
		return fmt.Sprintf("%.0f", v)
	case v >= 0.995:
		return fmt.Sprintf("%.1f", v)
	}
	return fmt.Sprintf("%.2f", v)
}

// Percent writes a ratio.
func Percent(v float64) string {
	switch {
	case v < 0.0995:
		return fmt.Sprintf("%.1f %%", 100*v)
	case v > 10:
		return "> 1000 %"
	}
	return fmt.Sprintf("%.0f %%", 100*v)
}

// Milliseconds writes a time given in milliseconds to about three figures.
func Milliseconds(v float64) string {
	switch {
	case v < 9.995:
		return fmt.Sprintf("%.2f ms", v)
	case v < 99.95:
		return fmt.Sprintf("%.1f ms", v)
	}
	return fmt.Sprintf("%.0f ms", v)
}

// Duration formats a time with at most two units.
func Duration(d time.Duration) string {
	const day = 24 * time.Hour
	if d.Round(time.Millisecond) < time.Second {
		return fmt.Sprintf("%d ms", d.Round(time.Millisecond).Milliseconds())
	}
	if r := d.Round(100 * time.Millisecond); r < 10*time.Second {
		return fmt.Sprintf("%.1f s", r.Seconds())
	}
	switch s, m, h := d.Round(time.Second), d.Round(time.Minute), d.Round(time.Hour); {
	case s < time.Minute:
		return fmt.Sprintf("%d s", s/time.Second)
	case s < time.Hour:
		return fmt.Sprintf("%d min %02d s", s/time.Minute, s%time.Minute/time.Second)
	case m < day:
		return fmt.Sprintf("%d h %02d min", m/time.Hour, m%time.Hour/time.Minute)
	default:
		return fmt.Sprintf("%d d %02d h", h/day, h%day/time.Hour)
	}
}

// Size writes a number of bytes.
func Size(n int64) string {
	const mib, gib = 1 << 20, 1 << 30
	if n < gib {
		return fmt.Sprintf("%d MiB", (n+mib/2)/mib)
	}
	return fmt.Sprintf("%.1f GiB", float64(n)/gib)
}

// Thousands writes a count that is not negative, with a comma between thousands.
func Thousands[N int | int64](n N) string {
	s := strconv.FormatInt(int64(n), 10)
	for at := len(s) - 3; at > 0; at -= 3 {
		s = s[:at] + "," + s[at:]
	}
	return s
}

// Count writes "1 row", "2 rows" or "1,200 batches".
func Count[N int | int64](n N, thing string) string {
	switch {
	case n == 1:
	case strings.HasSuffix(thing, "ch"), strings.HasSuffix(thing, "s"):
		thing += "es"
	default:
		thing += "s"
	}
	return Thousands(n) + " " + thing
}

// Mebibytes writes a size to two figures or more.
func Mebibytes(n float64) string {
	switch m := n / (1 << 20); {
	case m < 0.1:
		return fmt.Sprintf("%.3f", m)
	case m < 10:
		return fmt.Sprintf("%.2f", m)
	default:
		return fmt.Sprintf("%.0f", m)
	}
}

// Length formats a length of audio: "42.1 s", "13.5 min" or "24.0 h".
func Length(seconds float64) string {
	switch {
	case seconds < 60:
		return fmt.Sprintf("%.1f s", seconds)
	case seconds < 7200:
		return fmt.Sprintf("%.1f min", seconds/60)
	}
	return fmt.Sprintf("%.1f h", seconds/3600)
}
