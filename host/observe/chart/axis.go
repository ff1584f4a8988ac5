package chart

import (
	"fmt"
	"math"
	"strconv"
)

// axis maps values to places from From to To.
type axis struct {
	low, high float64
	log       bool
	from, to  float64
}

// newAxis returns the axis of some finite values. With zero it begins at 0, and it is linear. Without values it is that
// from 0 to 1. It is logarithmic if the values are positive and the largest is at least ratio times the smallest; a
// ratio of 0 means never.
func newAxis(values []float64, zero bool, ratio, from, to float64) axis {
	a := axis{from: from, to: to}
	if len(values) == 0 {
		a.high = 1
		return a
	}
	a.low, a.high = values[0], values[0]
	for _, v := range values {
		a.low, a.high = min(a.low, v), max(a.high, v)
	}
	switch {
	case zero:
		a.low, a.high = min(a.low, 0), max(a.high, 0)
		if a.high == 0 && a.low == 0 {
			a.high = 1
		}
	case ratio > 0 && a.low > 0 && a.high/a.low >= ratio:
		a.log = true
	}
	if a.high/2-a.low/2 <= 1e-6*math.Abs(a.high) { // the same but for roundings
		by := max(math.Abs(a.low)/10, 1e-9)
		a.low, a.high = a.low-by, a.high+by
	}
	return a
}

// at is the place of a value.
func (a axis) at(v float64) float64 {
	share := 0.0
	if a.log {
		share = math.Log(v/a.low) / math.Log(a.high/a.low)
		if math.IsInf(a.high/a.low, 0) {
			share = (math.Log(v) - math.Log(a.low)) / (math.Log(a.high) - math.Log(a.low))
		}
	} else { // a quarter of each, because a difference may be too large for a number
		share = (v/4 - a.low/4) / (a.high/4 - a.low/4)
	}
	if math.IsNaN(share) {
		share = 0
	}
	return a.from + (a.to-a.from)*min(max(share, 0), 1)
}

// ticks returns some round values of the axis.
func (a axis) ticks() []float64 {
	if a.log {
		return a.decades()
	}
	step := nice(a.high/5 - a.low/5)
	var list []float64
	first := math.Ceil(a.low/step - 1e-9)
	for i := range 12 {
		v := (first + float64(i)) * step
		if !(v <= a.high+step*1e-9) {
			break
		}
		list = append(list, v)
	}
	return list
}

// decades returns powers of ten, with 2 and 5 times them if they are few.
func (a axis) decades() (list []float64) {
	low, high := math.Floor(math.Log10(a.low)), math.Ceil(math.Log10(a.high))
	every, parts := 1.0, []float64{1}
	if span := high - low; span <= 3 {
		parts = []float64{1, 2, 5}
	} else if span > 6 {
		every = math.Ceil(span / 6)
	}
	for e := low; e <= high; e += every {
		for _, part := range parts {
			if v := part * math.Pow(10, e); v >= a.low && v <= a.high {
				list = append(list, v)
			}
		}
	}
	return list
}

// nice rounds a step up to 1, 2 or 5 times a power of ten.
func nice(step float64) float64 {
	if !(step > 0) || math.IsInf(step, 0) {
		return 1
	}
	power := math.Pow(10, math.Floor(math.Log10(step)))
	for _, times := range []float64{1, 2, 5} {
		if times*power >= step*0.999 {
			return times * power
		}
	}
	return 10 * power
}

// Short writes a number for an axis: 0.8, 1200, 15k, 2e-05.
func Short(v float64) string {
	a := math.Abs(v)
	switch {
	case a >= 1e15 || a > 0 && a < 1e-4:
		return fmt.Sprintf("%.3g", v)
	case a >= 1e9:
		return trim(v/1e9) + "G"
	case a >= 1e6:
		return trim(v/1e6) + "M"
	case a >= 1e4:
		return trim(v/1e3) + "k"
	}
	return trim(v)
}

func trim(v float64) string { return strconv.FormatFloat(math.Round(v*1e6)/1e6, 'g', 6, 64) }

// place writes a coordinate.
func place(v float64) string { return fmt.Sprintf("%.1f", v) }
