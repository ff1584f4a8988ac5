package nans

import (
	"bytes"
	"cmp"
	"fmt"
	"slices"
	"strings"

	"github.com/xtts-host/xtts-host/host/base/units"
	"github.com/xtts-host/xtts-host/host/base/visible"
	"github.com/xtts-host/xtts-host/host/observe/event"
	"github.com/xtts-host/xtts-host/host/observe/report"
	"github.com/xtts-host/xtts-host/host/train/nantrace"
	"github.com/xtts-host/xtts-host/shared/manifest"
)

// Trace is what was found of a step: the file nan-step-N.json.
type Trace struct {
	Step   int64  `json:"step"`
	Epoch  int    `json:"epoch"`
	Micro  int    `json:"micro_batch"`
	Player string `json:"player,omitempty"`
	// Rank is the one whose rows they are, of so many Ranks, which is 0 in a run of one process.
	Rank  int `json:"rank,omitempty"`
	Ranks int `json:"ranks,omitempty"`
	*nantrace.Found
	// Stage is the last stage that writes the tensor, if it is one of the batch.
	Stage string `json:"stage,omitempty"`
	// Clips are those of Rows, or all of the batch if the rows are not known.
	Clips []Clip `json:"clips"`
	// Device and Precision are those of the run. The trace is computed on the CPU, in f32.
	Device    string  `json:"device"`
	Precision string  `json:"precision"`
	Seconds   float64 `json:"seconds"`
}

// Clip is a row with a clip, of a rank that is named where Rows are not known.
type Clip struct {
	Rank int    `json:"rank,omitempty"`
	Row  int    `json:"row"`
	ID   string `json:"id"`
}

// result completes what was found with what the plan knows.
func (t *Tracer) result(s *event.Step, player string, k *kept, found *nantrace.Found) *Trace {
	out := &Trace{
		Step: s.Step, Epoch: k.epoch, Micro: k.micro, Player: player, Found: found, Device: t.Plan.Device(),
		Precision: string(cmp.Or(t.Plan.Precision.Graph, manifest.F32)), Clips: []Clip{},
	}
	for place, row := range k.rows {
		if row >= 0 && (len(found.Rows) == 0 || slices.Contains(found.Rows, place)) {
			out.Clips = append(out.Clips, Clip{Row: place, ID: t.Plan.TrainingRow(row)})
		}
	}
	if found.Tensor != nil {
		for _, in := range t.Plan.Stages.Resolved.Instances {
			for _, tensor := range in.Outputs {
				if tensor == found.Tensor.Name {
					out.Stage = in.Name
				}
			}
		}
	}
	return out
}

func (t *Trace) encode() ([]byte, error) {
	var text bytes.Buffer
	err := report.JSON(&text, t)
	return text.Bytes(), err
}

// named is how many clips a line names.
const named = 3

// String says what was found, in a line.
func (t *Trace) String() string {
	begin := report.NotFinite(t.Step)
	if t.Ranks > 0 && t.Where != nowhere {
		begin += fmt.Sprintf(" on rank %d", t.Rank)
	}
	if t.Player != "" {
		begin += " for the player " + visible.Text(t.Player)
	}
	begin += ": "
	switch t.Where {
	case "operation":
		return begin + t.operation()
	case nowhere:
		text := "the exported graph returns finite numbers on the CPU in f32"
		if t.Precision != string(manifest.F32) {
			return begin + text + ", so what is rounded to " + t.Precision +
				" overflows, or a kernel of the GPU is wrong"
		}
		return begin + text + ", so the sum of squares of the gradients overflows, or a kernel is wrong"
	}
	text := fmt.Sprintf("the %s %s has %s itself", t.Where, visible.Text(t.Tensor.Name), amount(t.Tensor))
	if t.Stage != "" {
		text += ", which the stage " + visible.Text(t.Stage) + " wrote"
	}
	return begin + text + t.clips()
}

// operation describes the operation and its place.
func (t *Trace) operation() string {
	o := t.Operation
	where := visible.Text(o.Value)
	if o.Line != "" {
		where += ", " + visible.Text(o.Line)
	}
	text := fmt.Sprintf("%s (%s) returns %s in the %s pass", visible.Text(o.Operator), where, amount(o.Gives), o.Pass)
	switch {
	case o.After != "" && o.Before != "":
		text += fmt.Sprintf(", after %s and before %s", visible.Text(o.After), visible.Text(o.Before))
	case o.After != "":
		text += ", near " + visible.Text(o.After)
	case o.Before != "":
		text += ", near " + visible.Text(o.Before)
	}
	var read []string
	for _, v := range o.Reads {
		if v.At != nil {
			read = append(read, units.Number(*v.At))
		} else {
			read = append(read, fmt.Sprintf("%s to %s", units.Number(v.Min), units.Number(v.Max)))
		}
	}
	switch {
	case len(read) == 1:
		text += "; its input is " + read[0]
	case read != nil:
		text += "; its inputs are " + strings.Join(read, " and ")
	}
	if t.Becomes != nil {
		text += fmt.Sprintf("; %s (%s) turns that into NaN", visible.Text(t.Becomes.Operator),
			visible.Text(t.Becomes.Value))
	}
	return text + t.clips()
}

// amount says how much of a tensor is not finite.
func amount(v *nantrace.Values) string {
	switch {
	case v.NaN > 0 && v.Infinite > 0:
		return fmt.Sprintf("NaN (%s) and infinities (%s)", elements(v.NaN), elements(v.Infinite))
	case v.NaN > 0:
		return fmt.Sprintf("NaN (%s)", elements(v.NaN))
	}
	return fmt.Sprintf("infinities (%s)", elements(v.Infinite))
}

func elements(n int) string { return units.Count(int64(n), "element") }

// clips names the rows.
func (t *Trace) clips() string {
	if t.RowsBy == nantrace.Unknown {
		return "; the search for its rows was not finished"
	}
	if len(t.Rows) == 0 {
		return "; for the whole batch"
	}
	var names []string
	for _, c := range t.Clips[:min(named, len(t.Clips))] {
		names = append(names, fmt.Sprintf("%s (row %d)", visible.Text(c.ID), c.Row))
	}
	if names == nil {
		return "; in empty rows"
	}
	text := "; clip "
	if len(t.Clips) > 1 {
		text = "; clips "
	}
	text += strings.Join(names, ", ")
	if n := len(t.Clips) - len(names); n > 0 {
		text += fmt.Sprintf(" and %d more", n)
	}
	return text
}
