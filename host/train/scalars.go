package train

import (
	"github.com/xtts-host/xtts-host/host/stages/pipeline"
	"github.com/xtts-host/xtts-host/ortgraphs/ort"
	"github.com/xtts-host/xtts-host/shared/manifest"
)

// batchScalars are the scalar inputs that the host computes for each batch: the seed, and those of the bundle.
type batchScalars struct {
	specs []manifest.Scalar
	// By device slot: those of a slot are read while those of the next are queued.
	seeds    []word[int64]
	slots    [][]word[float32]
	weighted bool  // the bundle's accumulation
	rows     int   // of the batch whose scalars were set last; empty ones do not count
	ranks    Ranks // that share the totals of a step; nil alone
	// summed has the totals of all ranks, by slot and scalar. They are apart from what SetScalars writes, because the
	// next player may send that for the same slot before they have arrived.
	summed *words
}

// scalarWords returns the number of words for so many slots.
func (s *batchScalars) scalarWords(slots int) int { return slots * len(s.specs) }

// addSlot allocates the scalars of a slot, with the values of a trial: the end of a schedule, a total of 1.
func (s *batchScalars) addSlot(m *memory, in *words) {
	var slot []word[float32]
	for _, spec := range s.specs {
		w := newWord[float32](m, in, manifest.F32)
		if *w.value = 1; spec.Origin == manifest.OriginSchedule {
			*w.value = float32(spec.Last())
		}
		slot = append(slot, w)
	}
	s.slots = append(s.slots, slot)
}

// bindScalars adds the scalars of a slot to the inputs of a graph.
func (s *batchScalars) bindScalars(slot int, inputs tensors) {
	for i, w := range s.slots[slot] {
		inputs[s.specs[i].Name] = w.tensor
	}
}

// SetScalars computes the scalars for the batch in a device slot. Evaluations have the last value of a schedule, so
// that their losses can be compared.
func (s *batchScalars) SetScalars(slot int, b *pipeline.Batch) {
	total := 0
	s.rows = b.Samples()
	for i, spec := range s.specs {
		v := s.slots[slot][i].value
		switch {
		case spec.Origin == manifest.OriginWindow:
			*v = float32(max(s.least(), b.Totals[total]))
			total++
		case b.Eval:
			*v = float32(spec.Last())
		default:
			*v = float32(spec.At(b.Step))
		}
	}
}

// least is the least total of a step. With other ranks it is what changes no sum of theirs: a rank may have no rows.
func (s *batchScalars) least() float64 {
	if s.ranks == nil {
		return 1
	}
	return 1e-30
}

// shareTotals has the ranks add up the totals of a step from now on.
func (s *batchScalars) shareTotals(m *memory, r Ranks) {
	if s.weighted && s.ranks == nil {
		s.ranks, s.summed = r, m.words(len(s.slots)*len(s.specs))
	}
}

// summedAt is where the sum of a scalar of a slot arrives.
func (s *batchScalars) summedAt(slot, scalar int) []byte {
	return s.summed.host[(slot*len(s.specs)+scalar)*apart:][:manifest.F32.Size()]
}

// sumTotals queues, before a step's graph, the sums over the ranks of the totals for the batch in a device slot, and
// their transfer to the host.
func (s *batchScalars) sumTotals(m *memory, in *words, slot int) error {
	if s.ranks == nil {
		return nil
	}
	var parts []Part
	var to [][]byte
	for i, spec := range s.specs {
		if spec.Origin == manifest.OriginWindow {
			parts, to = append(parts, in.one(s.slots[slot][i])), append(to, s.summedAt(slot, i))
		}
	}
	if err := s.ranks.Sum(m.device.Compute, parts); err != nil {
		return err
	}
	for i, p := range parts {
		if p.Block == nil {
			copy(to[i], p.Host)
			continue
		}
		if err := m.device.Compute.Download(to[i], p.Block, int(p.Address-uint64(p.Block.Pointer()))); err != nil {
			return err
		}
	}
	return nil
}

// read returns what the graph got with the batch in a slot: with ranks, the totals of all.
func (s *batchScalars) read(slot int) (values []float32) {
	for i, w := range s.slots[slot] {
		value := *w.value
		if s.ranks != nil && s.specs[i].Origin == manifest.OriginWindow {
			value = ort.View[float32](s.summedAt(slot, i))[0]
		}
		values = append(values, value)
	}
	return values
}

// appendScheduled appends the scheduled values of a step, counted from 0, or of an evaluation.
func (s *batchScalars) appendScheduled(values []float64, step int64, evaluation bool) []float64 {
	for _, spec := range s.specs {
		switch {
		case spec.Origin != manifest.OriginSchedule:
		case evaluation:
			values = append(values, spec.Last())
		default:
			values = append(values, spec.At(step))
		}
	}
	return values
}
