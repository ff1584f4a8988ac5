package ortgraphs

import (
	"fmt"
	"strings"
)

// InvalidError lists all faults of a bundle.
type InvalidError struct {
	// Dir is the bundle's folder.
	Dir string
	// Faults has at least one entry.
	Faults []Fault
}

// Fault is one fault: in which file, where in it (empty for the whole file), and why.
type Fault struct {
	File, Place, Reason string

	advice string // the next step, if it is known
}

func (f Fault) String() string {
	if f.Place == "" {
		return f.File + ": " + f.Reason
	}
	return f.File + ": " + f.Place + ": " + f.Reason
}

// maxShown is the number of faults in a message. A wrong graph can have thousands; the first ones are sufficient.
const maxShown = 20

func (e *InvalidError) Error() string { return strings.Join(e.Lines(), "\n") }

// Lines returns the lines of the message (package visible).
func (e *InvalidError) Lines() []string {
	if len(e.Faults) == 1 {
		return []string{fmt.Sprintf("bundle %s: %s", e.Dir, e.Faults[0])}
	}
	lines := []string{fmt.Sprintf("bundle %s: %d faults:", e.Dir, len(e.Faults))}
	for _, f := range e.Faults[:min(maxShown, len(e.Faults))] {
		lines = append(lines, "  "+f.String())
	}
	if n := len(e.Faults) - maxShown; n > 0 {
		lines = append(lines, fmt.Sprintf("  and %d more", n))
	}
	return lines
}

// Hint returns the next step for the user.
func (e *InvalidError) Hint() string {
	for _, f := range e.Faults {
		if f.advice != "" {
			return f.advice
		}
	}
	for _, f := range e.Faults {
		if f.Place != "" {
			return "docs/bundle.md specifies graphs and weights; correct the export and export the bundle again"
		}
	}
	return "files were changed, added or lost after the export: copy the folder again or export it again"
}

// faults collects the faults of one file.
type faults struct {
	file string
	list []Fault
}

// maxFaults is the number of faults of one file that are kept, to bound the memory.
const maxFaults = 1000

func (f *faults) add(place, format string, args ...any) {
	if len(f.list) == maxFaults {
		return
	}
	f.list = append(f.list, Fault{File: f.file, Place: place, Reason: fmt.Sprintf(format, args...)})
}

// advise adds a fault of the whole file that the user can mend.
func (f *faults) advise(reason, advice string) {
	f.list = append(f.list, Fault{File: f.file, Reason: reason, advice: advice})
}
