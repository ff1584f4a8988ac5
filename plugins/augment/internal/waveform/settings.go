package waveform

import (
	"fmt"
	"math"
	"slices"
	"strings"

	"github.com/xtts-host/xtts-host/shared/hint"
)

const bothEnds = "an omitted key has its default from plugin.json: give both ends of the range"

// Range is a range of a setting: the keys NAME_min and NAME_max.
type Range struct {
	Name      string
	Low, High float64
}

// Ordered refuses what a JSON Schema cannot: ranges whose lower end is above the upper end.
func Ordered(ranges ...Range) error {
	for _, r := range ranges {
		if r.Low > r.High {
			return hint.Errorf(bothEnds, "config: %s_min %g is above %[1]s_max %[3]g", r.Name, r.Low, r.High)
		}
	}
	return nil
}

// Audible refuses frequencies that a sample rate cannot have, in Hz.
func Audible(rate int, key string, hz float64) error {
	if limit := float64(rate) / 2; hz >= limit {
		return hint.Errorf(fmt.Sprintf("set %s below %g", key, math.Floor(limit)),
			"config: %s %g Hz is not below half the sample rate of the waveforms, %d Hz", key, hz, rate)
	}
	return nil
}

// Names refuses an empty list of names, and names twice.
func Names(key string, names []string) error {
	if len(names) == 0 {
		return hint.Errorf("give at least one, or leave the key out", "config: %s is empty", key)
	}
	for i, name := range names {
		if slices.Contains(names[:i], name) {
			return hint.Errorf("leave one of them out", "config: %s has %q twice: %s", key, name,
				strings.Join(names, ", "))
		}
	}
	return nil
}

// Samples converts milliseconds to samples, to the nearest.
func Samples(ms float64, rate int) int { return int(math.Round(ms / 1000 * float64(rate))) }
