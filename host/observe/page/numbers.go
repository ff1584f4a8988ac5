package page

import (
	"math"
	"strconv"
	"time"

	"github.com/xtts-host/xtts-host/host/base/units"
)

// usable is a number that the functions of package units can write: a report may have any.
func usable(v float64) bool { return !math.IsNaN(v) && math.Abs(v) < 1e15 }

// Percent writes a ratio, also one of a stranger.
func Percent(v float64) string {
	if !usable(v) || v < 0 {
		return "-"
	}
	return units.Percent(v)
}

// Milliseconds writes a time.
func Milliseconds(v float64) string {
	if !usable(v) || v < 0 {
		return "-"
	}
	if v >= 9999.5 {
		return Duration(v / 1e3)
	}
	return units.Milliseconds(v)
}

// Size writes a number of bytes.
func Size(n int64) string {
	if n < 0 {
		return "-"
	}
	return units.Size(n)
}

// Count writes a count.
func Count(n int64) string {
	if n < 0 {
		return strconv.FormatInt(n, 10)
	}
	return units.Thousands(n)
}

// Duration writes seconds.
func Duration(seconds float64) string {
	if !usable(seconds) || seconds < 0 || seconds > 9e9 {
		return "-"
	}
	return units.Duration(time.Duration(seconds * float64(time.Second)))
}

// Rate writes a speed.
func Rate(v float64) string {
	if !usable(v) || v < 0 {
		return "-"
	}
	if v >= 999.5 {
		return units.Thousands(int64(math.Round(v)))
	}
	return units.Rate(v)
}
