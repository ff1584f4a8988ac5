package doctor

import (
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/xtts-host/xtts-host/gpu"
	"github.com/xtts-host/xtts-host/shared/hint"
)

// State is the meaning of a finding for training.
type State string

// The states.
const (
	OK   State = "ok"
	Note State = "note" // works, but could be better; or is not needed for the request
	Bad  State = "bad"  // training with the requested settings cannot work
)

// Finding is one line.
type Finding struct {
	State State  `json:"state"`
	Text  string `json:"text"`
	Hint  string `json:"hint,omitzero"` // the fix
}

// Section holds findings of one kind.
type Section struct {
	Title    string    `json:"title"`
	Findings []Finding `json:"findings"`
}

// Report is the result of Examine. As JSON it is the output of `xtts-host doctor --json`, specified in docs/doctor.md.
type Report struct {
	Version int `json:"version"` // of this format: 1
	// Works is true when no finding is Bad. Then Unchecked says whether a setting could not be checked.
	Works     bool           `json:"works"`
	Unchecked bool           `json:"unchecked,omitzero"`
	Sections  []Section      `json:"sections"`
	Driver    gpu.Driver     `json:"driver"`
	GPUs      []GPU          `json:"gpus"`
	Links     []gpu.CardLink `json:"links"`
	Placement *Placement     `json:"placement"` // null if training would be refused

	fault error // of the first finding that is Bad, if it is of a setting: it has the exit status of a run
}

// GPU is a GPU with the recommended memory limit of each role.
type GPU struct {
	gpu.Card
	OptimalDataBytes  int64 `json:"optimal_data_bytes"`
	OptimalModelBytes int64 `json:"optimal_model_bytes"`
}

// Placement is the placement of a training run.
type Placement struct {
	Data   RolePlacement `json:"data"`
	Model  RolePlacement `json:"model"`
	Reason string        `json:"reason"`
}

// RolePlacement is the placement of a role: a GPU, or the CPU if UUID is empty.
type RolePlacement struct {
	UUID       string `json:"uuid"`
	LimitBytes int64  `json:"limit_bytes"` // 0: none
}

// add appends a finding to the last section.
func (r *Report) add(state State, advice, format string, args ...any) {
	s := &r.Sections[len(r.Sections)-1]
	s.Findings = append(s.Findings, Finding{state, fmt.Sprintf(format, args...), local(advice)})
	r.Works = r.Works && state != Bad
}

// local returns a hint of another command without the advice to run this one.
func local(advice string) string {
	steps := slices.DeleteFunc(strings.Split(advice, "; "),
		func(step string) bool { return strings.HasPrefix(step, hint.Command("doctor ")) })
	if len(steps) == 0 {
		return "see the lines above"
	}
	return strings.Join(steps, "; ")
}

func (r *Report) section(title string) {
	r.Sections = append(r.Sections, Section{Title: title, Findings: []Finding{}})
}

// Bad counts the crosses.
func (r *Report) Bad() int {
	n := 0
	for _, s := range r.Sections {
		for _, f := range s.Findings {
			if f.State == Bad {
				n++
			}
		}
	}
	return n
}

var marks = map[State]string{OK: "✓", Note: "-", Bad: "✗"}

// Write prints the report as text.
func (r *Report) Write(out io.Writer) error {
	var text strings.Builder
	for _, s := range r.Sections {
		fmt.Fprintf(&text, "%s\n", s.Title)
		for _, f := range s.Findings {
			fmt.Fprintf(&text, "  %s %s\n", marks[f.State], strings.ReplaceAll(f.Text, "\n", "\n    "))
			if f.Hint != "" {
				fmt.Fprintf(&text, "    hint: %s\n", f.Hint)
			}
		}
	}
	switch {
	case r.Works && r.Unchecked:
		text.WriteString("no problem was found; not all settings were checked\n")
	case r.Works:
		text.WriteString("training with these settings can work on this machine\n")
	}
	_, err := io.WriteString(out, text.String())
	return err
}
