package checkpoint

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"
)

// Difference is one thing that changes numbers and is not what it was. Saved or Now is empty where the
// name stands on one side only.
type Difference struct {
	Name, Saved, Now string
}

func (d Difference) String() string {
	return fmt.Sprintf("%s was %s, is %s", d.Name, short(d.Saved), short(d.Now))
}

// short cuts a hash to what a person can compare and leaves plain values whole.
func short(value string) string {
	switch {
	case value == "":
		return "absent"
	case len(value) == 64 && strings.Trim(value, "0123456789abcdef") == "":
		return value[:12]
	}
	return value
}

// unnamed says what a name stands for that is absent: what runs did before there was a choice.
var unnamed = map[string]string{"precision": "f32"}

// Diff compares the hashes of a checkpoint with those of the run that wants to go on from it, by name.
func Diff(saved, now map[string]string) []Difference {
	names := map[string]bool{}
	for _, m := range []map[string]string{saved, now} {
		for name := range m {
			names[name] = true
		}
	}
	var out []Difference
	for _, name := range slices.Sorted(maps.Keys(names)) {
		was, is := cmp.Or(saved[name], unnamed[name]), cmp.Or(now[name], unnamed[name])
		if was != is {
			out = append(out, Difference{Name: name, Saved: was, Now: is})
		}
	}
	return out
}

// MismatchError refuses to resume a run with something else than it was started with.
type MismatchError struct {
	// Path is the checkpoint's folder.
	Path        string
	Differences []Difference
}

func (e *MismatchError) Error() string {
	parts := make([]string, len(e.Differences))
	for i, d := range e.Differences {
		parts[i] = d.String()
	}
	return fmt.Sprintf("%s: cannot go on with other settings: %s", e.Path, strings.Join(parts, "; "))
}

// Hint says what to do instead.
func (e *MismatchError) Hint() string {
	return "resume with what the run was started with, or start a new run from its weights with --init " + e.Path
}
