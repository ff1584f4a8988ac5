package batch

import (
	"fmt"
	"math"
	"slices"

	"github.com/xtts-host/xtts-host/host/settings/config"
	"github.com/xtts-host/xtts-host/host/stages/catalog"
	"github.com/xtts-host/xtts-host/host/stages/pipeline"
	"github.com/xtts-host/xtts-host/host/stages/supervise"
	"github.com/xtts-host/xtts-host/shared/hint"
	"github.com/xtts-host/xtts-host/shared/manifest"
	"github.com/xtts-host/xtts-host/shared/ring"
)

// judge holds the outputs of an instance in one bucket to their ranges and to the level of its input.
type judge struct {
	outputs []judged
	ears    heard
	hears   bool // the stage reads a waveform
}

type judged struct {
	port
	limit     float32 // 0: none
	sound     bool
	spectrum  bool
	mayBeZero bool
}

func newJudge(in catalog.Instance, layout *ring.Layout, limits ranges) (j judge) {
	j.ears, j.hears = hearing(in, layout)
	for _, p := range in.Stage.Outputs {
		t, ok := layout.Find(in.Outputs[p.Name])
		if !ok || t.DType != manifest.F32 {
			continue
		}
		kind := kindOf(t.Name, p)
		o := judged{
			port: port{Tensor: t}, limit: limits[t.Name], sound: kind == sound, spectrum: kind == spectrum,
			mayBeZero: p.MayBeZero,
		}
		name := in.Outputs[p.Lengths]
		if name == "" {
			name = in.Inputs[p.Lengths]
		}
		if l, found := layout.Find(name); found && l.DType == manifest.I32 && len(t.Shape) > 1 {
			o.lengths, o.counted = l, true
		}
		j.outputs = append(j.outputs, o)
	}
	return j
}

// levels measures the rows of the waveform that the stage reads, before the stage edits it.
func (j *judge) levels(slot []byte, rows []int32, to []level) []level {
	if !j.hears {
		return to
	}
	for i, row := range rows {
		l := level{}
		if row >= 0 {
			l = levelOf(j.ears.valid(slot, i))
		}
		to = append(to, l)
	}
	return to
}

// wrong says what is wrong with a row of an output whose values are finite, or returns "". before has the levels of the
// input, none if the stage reads no waveform. zeros says that all rows are zero.
func (o *judged) wrong(slot []byte, row int, before []level, zeros bool) string {
	data := o.Row(slot, row)
	if o.limit > 0 && beyond(o.Tensor, slot, row, o.limit) {
		at, v := farthest(data)
		return fmt.Sprintf("has the value %g at element %d, beyond its range of %g", v, at, o.limit)
	}
	if before == nil {
		if zeros && !o.mayBeZero {
			return "is zero, as all rows are"
		}
		return ""
	}
	in := before[row]
	switch valid := o.valid(slot, row); {
	case in.rms >= audible && !o.mayBeZero && (o.sound || o.spectrum) && constant(valid):
		return fmt.Sprintf("has the value %g everywhere, but the recording is not silent", floatAt(valid, 0)+0)
	case in.rms >= audible && zeros && !o.mayBeZero:
		return "is zero, as all rows are, but the recording is not silent"
	case o.sound && in.rms > 0:
		switch out := levelOf(valid); {
		case out.peak > 1 && out.rms > louder*in.rms:
			return fmt.Sprintf("is %.0f dB louder than before the stage, and beyond full scale (a peak of %.3g)",
				20*math.Log10(out.rms/in.rms), out.peak)
		case in.rms >= audible && len(valid) > 0 && out.rms*softer < in.rms:
			return fmt.Sprintf("is %.0f dB softer than before the stage", 20*math.Log10(in.rms/out.rms))
		}
	}
	return ""
}

// beyond reports whether a row has an element of a larger magnitude than the limit, or a NaN.
func beyond(t ring.Tensor, slot []byte, row int, limit float32) bool {
	size := t.Bytes() / t.Shape[0]
	one := ring.Tensor{
		Name: t.Name, DType: t.DType, Shape: append([]int{1}, t.Shape[1:]...), Offset: t.Offset + row*size,
	}
	return one.Beyond(slot, limit) >= 0
}

// farthest returns the first NaN of a row of f32, or its element of the largest magnitude.
func farthest(row []byte) (at int, value float32) {
	for i := range len(row) / 4 {
		v := floatAt(row, i)
		if v != v {
			return i, v
		}
		if math.Abs(float64(v)) > math.Abs(float64(value)) {
			at, value = i, v
		}
	}
	return at, value
}

// flaw is what is wrong with one row of a batch.
type flaw struct {
	row    int
	tensor string
	why    string
	finite bool
}

// find returns the first flaw of each row that was not left out. before has the levels of the input.
func (j *judge) find(out *outputs, slot []byte, rows []int32, before []level) (flaws []flaw) {
	known := func(row int) bool { return slices.ContainsFunc(flaws, func(f flaw) bool { return f.row == row }) }
	out.notFinite(slot, func(row int, tensor string) {
		if !known(row) && rows[row] != leftOut {
			flaws = append(flaws, flaw{row: row, tensor: tensor, why: "is not finite"})
		}
	})
	for i := range j.outputs {
		o := &j.outputs[i]
		zeros := allZero(o.Tensor, slot, rows)
		for row, of := range rows {
			switch {
			case known(row), of == leftOut:
			case of >= 0:
				if why := o.wrong(slot, row, before, zeros); why != "" {
					flaws = append(flaws, flaw{row, o.Name, why, true})
				}
			case o.limit > 0 && beyond(o.Tensor, slot, row, o.limit):
				flaws = append(flaws,
					flaw{row, o.Name, fmt.Sprintf("is empty and has values beyond its range of %g", o.limit), true})
			}
		}
	}
	return flaws
}

// allZero reports whether a batch has rows and the tensor is zero in all of them, left out or not: a stage may make one
// row zero.
func allZero(t ring.Tensor, slot []byte, rows []int32) bool {
	any := false
	for i, row := range rows {
		if row == empty {
			continue
		}
		if any = true; !zero(t.Row(slot, i)) {
			return false
		}
	}
	return any
}

// examine decides what follows from the flaws of the rows of a batch that a stage has worked on. Rows with a flaw get a
// second attempt, because the process may have been in a bad state.
func (s *stageRunner) examine(
	b *pipeline.Batch, id supervise.ProcessID, rows []int32,
) ([]pipeline.Rejected, error) {
	a, rejected := &s.attempts[b.Slot], s.misaligned(b, rows)
	flaws := s.judges[b.Bucket].find(&s.outputs[b.Bucket], s.ring.Slot(b.Slot), rows, a.before)
	if s.onRange == config.WarnOnly {
		flaws = slices.DeleteFunc(flaws, func(f flaw) bool {
			if f.finite {
				s.warnOf(b, f)
			}
			return f.finite
		})
	}
	ended, known, again := map[int32]string{}, a.rows, 0
	for _, f := range flaws {
		row := rows[f.row]
		switch {
		case s.onRange == config.StopAtOnce && (f.finite || s.ranges[f.tensor] > 0):
			return nil, s.violated(b, f, "")
		case row < 0: // once, however many rows: a process ends once
			return nil, s.replace(b, id, fmt.Errorf("the empty row %d of %s %s", f.row, f.tensor, f.why))
		case slices.ContainsFunc(rejected, func(r pipeline.Rejected) bool { return r.Row == f.row }):
		case slices.Contains(known, row):
			ended[row] = fmt.Sprintf("%s %s, twice", f.tensor, f.why)
			rejected = append(rejected, pipeline.Rejected{Row: f.row, Reason: s.reason(ended[row])})
		default:
			a.rows = append(a.rows, row)
			if again++; again == 1 {
				s.log.Warn(fmt.Sprintf("plugin %s: stage %s: %s of clip %s %s; rebuilding the batch", s.plugin,
					s.instance.Name, f.tensor, s.data.splitOf(b).Index.Rows[row].ID, f.why))
			}
		}
	}
	right := 0
	for i, row := range rows {
		if row >= 0 && !slices.ContainsFunc(flaws, func(f flaw) bool { return f.row == i }) {
			right++
		}
	}
	fresh := s.right.Add(int64(right)) == int64(right) // no row of an earlier batch was right
	switch {
	case len(ended) > 0 && right == 0 && (len(ended) > 1 || fresh):
		return nil, s.violated(b, flaws[0], ", and no other row is right")
	case len(rejected) > 0:
		return rejected, nil
	case again > 0:
		first := flaws[0]
		return nil, fmt.Errorf("%w: stage %s: %s %s", pipeline.ErrRebuild, s.instance.Name, first.tensor, first.why)
	}
	a.rows = known[:0]
	return nil, nil
}

// violated ends the run for a flaw.
func (s *stageRunner) violated(b *pipeline.Batch, f flaw, also string) error {
	advice := "correct the stage (docs/plugin-protocol.md, Ranges)"
	if f.finite {
		advice += ", or train all the same with --on-range warn"
	}
	return supervise.Violation(s.plugin,
		hint.Errorf(advice, "row %d of %s %s%s (%s)", f.row, f.tensor, f.why, also, s.describe(b)))
}

// warnOf warns of the first flaw of each tensor.
func (s *stageRunner) warnOf(b *pipeline.Batch, f flaw) {
	if _, known := s.reported.LoadOrStore(f.tensor, true); !known {
		s.log.Warn(fmt.Sprintf("plugin %s: stage %s: row %d of %s %s (%s); further batches are not reported", s.plugin,
			s.instance.Name, f.row, f.tensor, f.why, s.describe(b)))
	}
}
