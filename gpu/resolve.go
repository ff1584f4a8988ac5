package gpu

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
)

// Resolve finds a GPU by index ("2"), by UUID ("GPU-8f1c..."), or by a unique prefix of a UUID ("GPU-8f"), ignoring
// case. The error lists the GPUs.
func Resolve(name string, devices []Device) (Device, error) {
	if index, err := strconv.Atoi(name); err == nil {
		for _, d := range devices {
			if d.Index == index {
				return d, nil
			}
		}
		return Device{}, fmt.Errorf("no GPU %d: %s", index, thereAre(devices))
	}
	if !hasPrefixFold(name, uuidPrefix) || len(name) == len(uuidPrefix) {
		return Device{}, fmt.Errorf("neither an index nor a UUID, or the beginning of one (%s...): %s", uuidPrefix,
			thereAre(devices))
	}
	var found []Device
	for _, d := range devices {
		if hasPrefixFold(d.UUID, name) {
			found = append(found, d)
		}
	}
	switch len(found) {
	case 0:
		return Device{}, fmt.Errorf("no such GPU: %s", thereAre(devices))
	case 1:
		return found[0], nil
	}
	return Device{}, fmt.Errorf("ambiguous: %s", thereAre(found))
}

const uuidPrefix = "GPU-"

func hasPrefixFold(s, prefix string) bool {
	return len(s) >= len(prefix) && strings.EqualFold(s[:len(prefix)], prefix)
}

// thereAre lists GPUs for messages.
func thereAre(devices []Device) string {
	switch len(devices) {
	case 0:
		return "there is none"
	case 1:
		return "there is " + devices[0].String()
	}
	names := make([]string, len(devices))
	for i, d := range devices {
		names[i] = d.String()
	}
	return "there are " + strings.Join(names, ", ")
}

// Visible returns the GPUs that CUDA_VISIBLE_DEVICES shows, in the order of their Index. CUDA uses no others, and the
// variable may be set by a scheduler that has assigned the others elsewhere. As in CUDA, an entry is an index (in the
// order of PCI addresses), a UUID or a prefix of one, and a negative number ends the list. CUDA silently stops at an
// unknown entry; Visible returns an error.
func Visible(list string, devices []Device) ([]Device, error) {
	var shown []Device
	for name := range strings.SplitSeq(list, ",") {
		name = strings.TrimSpace(name)
		if name == "" || strings.HasPrefix(name, "-") {
			break
		}
		d, err := Resolve(name, devices)
		if err != nil {
			return nil, &AdvisedError{
				Reason: fmt.Sprintf("CUDA_VISIBLE_DEVICES=%s: %s: %v", list, name, err),
				Advice: "correct the variable, or unset it",
			}
		}
		shown = append(shown, d)
	}
	slices.SortFunc(shown, func(a, b Device) int { return a.Index - b.Index })
	return slices.Compact(shown), nil
}
