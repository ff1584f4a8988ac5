package units

import (
	"math"
	"testing"
	"time"
)

func TestNumber(t *testing.T) {
	for _, c := range []struct {
		v    float64
		want string
	}{
		{0, "0"}, {1.2344, "1.234"}, {0.3451, "0.345"}, {-0.5, "-0.500"}, {0.0034, "3.4e-03"}, {12.345, "12.35"},
		{9.9999, "10.00"}, {99.999, "100.0"}, {123.45, "123.5"}, {12345, "12345"}, {1e7, "1.0e+07"}, {math.NaN(), "-"},
		{math.Inf(1), "-"},
	} {
		if got := Number(c.v); got != c.want {
			t.Errorf("Number(%v) = %q, want %q", c.v, got, c.want)
		}
	}
}

func TestDuration(t *testing.T) {
	for _, c := range []struct {
		d    time.Duration
		want string
	}{
		{0, "0 ms"}, {83 * time.Millisecond, "83 ms"}, {1400 * time.Millisecond, "1.4 s"},
		{9960 * time.Millisecond, "10 s"}, {14 * time.Second, "14 s"}, {59600 * time.Millisecond, "1 min 00 s"},
		{200 * time.Second, "3 min 20 s"}, {2*time.Hour + 5*time.Minute, "2 h 05 min"},
		{24*time.Hour - time.Second, "1 d 00 h"}, {76 * time.Hour, "3 d 04 h"}, {999600 * time.Microsecond, "1.0 s"},
	} {
		if got := Duration(c.d); got != c.want {
			t.Errorf("Duration(%v) = %q, want %q", c.d, got, c.want)
		}
	}
}

func TestQuantities(t *testing.T) {
	for _, c := range []struct{ got, want string }{
		{Rate(9.84), "9.8"}, {Rate(120.4), "120"}, {Rate(0.1234), "0.12"}, {Rate(0.999), "1.0"},
		{Percent(0), "0.0 %"}, {Percent(0.0042), "0.4 %"}, {Percent(0.0999), "10 %"}, {Percent(1), "100 %"},
		{Percent(10), "1000 %"}, {Percent(3.4e15), "> 1000 %"}, {Milliseconds(0.1234), "0.12 ms"},
		{Milliseconds(12.34), "12.3 ms"}, {Milliseconds(1234), "1234 ms"}, {Size(0), "0 MiB"},
		{Size(812 << 20), "812 MiB"}, {Size(3 << 29), "1.5 GiB"}, {Thousands(0), "0"}, {Thousands(999), "999"},
		{Thousands(1000), "1,000"}, {Thousands(12345678), "12,345,678"}, {Count(1, "row"), "1 row"},
		{Count(0, "row"), "0 rows"}, {Count(1000, "row"), "1,000 rows"},
	} {
		if c.got != c.want {
			t.Errorf("got %q, want %q", c.got, c.want)
		}
	}
}

func TestLength(t *testing.T) {
	for seconds, want := range map[float64]string{
		0: "0.0 s", 2.34: "2.3 s", 90: "1.5 min", 7199: "120.0 min", 86400: "24.0 h",
	} {
		if got := Length(seconds); got != want {
			t.Errorf("%g: %s, want %s", seconds, got, want)
		}
	}
}
