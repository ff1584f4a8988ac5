package batch

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/xtts-host/xtts-host/host/data/choice"
	"github.com/xtts-host/xtts-host/host/observe/report"
	"github.com/xtts-host/xtts-host/host/stages/catalog"
	"github.com/xtts-host/xtts-host/host/stages/pipeline"
	"github.com/xtts-host/xtts-host/host/stages/supervise"
	"github.com/xtts-host/xtts-host/shared/ring"
)

// The numbers below 0 in a list of rows like Batch.Rows.
const (
	empty   = -1 // no clip
	leftOut = -2 // a clip whose row a call leaves out
)

// blank is a tensor whose rows can be shown as empty.
type blank struct {
	ring.Tensor
	padding []byte // one element; nil for one in half precision that is not 0: then the lengths alone show it
}

// blanks are the tensors that an instance reads, each once: two ports can have one.
func blanks(in catalog.Instance, layout *ring.Layout) (all []blank) {
	for _, spec := range in.Stage.Inputs {
		t, found := layout.Find(in.Inputs[spec.Name])
		if !found || slices.ContainsFunc(all, func(o blank) bool { return o.Name == t.Name }) {
			continue
		}
		padding, _ := t.Padding()
		all = append(all, blank{t, padding})
	}
	return all
}

// aside holds rows of a batch that a call leaves out. The stage sees them as empty, and afterwards they have the bits
// that they had.
type aside struct {
	rows  []int
	saved []byte
}

// asides are not kept with the slots: a run has more of these than calls at a time.
var asides = sync.Pool{New: func() any { return new(aside) }}

// hide makes rows empty, and keeps what they had.
func (a *aside) hide(slot []byte, tensors []blank, rows []int) {
	size := 0
	for i := range tensors {
		size += len(rows) * tensors[i].Bytes() / tensors[i].Shape[0]
	}
	a.rows, a.saved = append(a.rows[:0], rows...), slices.Grow(a.saved[:0], size)
	for _, row := range rows {
		for i := range tensors {
			data := tensors[i].Row(slot, row)
			a.saved = append(a.saved, data...)
			if tensors[i].padding != nil {
				ring.Fill(data, tensors[i].padding)
			}
		}
	}
}

// restore puts back what hide has kept.
func (a *aside) restore(slot []byte, tensors []blank) {
	saved := a.saved
	for _, row := range a.rows {
		for i := range tensors {
			saved = saved[copy(tensors[i].Row(slot, row), saved):]
		}
	}
}

// part says which rows of a batch a call is for.
type part struct {
	sent     []int32      // as Batch.Rows, with a number below 0 for all that the stage sees as empty
	judged   []int32      // as Batch.Rows, with leftOut for a row whose content is not of the stage
	complete func() error // adds what was not sent; nil if all was
}

// chosen counts the rows of training batches that an instance was given, and that it was not. A batch that is built
// again counts once.
type chosen struct{ given, left int64 }

// choose replaces the rows that do not get the instance by leftOut, and lists them.
func (s *stageRunner) choose(b *pipeline.Batch, a *attempts) (given int) {
	clips := s.data.splitOf(b).Index.Rows
	a.given, a.left = append(a.given[:0], b.Rows...), a.left[:0]
	row := choice.Row{Seed: s.seed, Epoch: b.Epoch, Step: b.Step}
	for i, of := range b.Rows {
		if of < 0 {
			continue
		}
		if row.ID = clips[of].ID; row.Gets(&s.instance) {
			given++
			continue
		}
		a.given[i] = leftOut
		a.left = append(a.left, i)
	}
	return given
}

// some has the stage compute the rows that get it. The others keep their bits.
func (s *stageRunner) some(ctx context.Context, b *pipeline.Batch) ([]pipeline.Rejected, time.Duration, error) {
	a, tensors, slot := &s.attempts[b.Slot], s.blanks[b.Bucket], s.ring.Slot(b.Slot)
	began := time.Now()
	edit := func(do func()) error {
		why := s.proof.edit(b.Slot, func(r region) bool {
			return slices.Contains(a.left, r.row) &&
				slices.ContainsFunc(tensors, func(t blank) bool { return t.Name == r.tensor })
		}, do)
		if why != nil {
			return supervise.Violation(s.plugin, fmt.Errorf("%w (%s)", why, s.describe(b)))
		}
		return nil
	}
	kept := asides.Get().(*aside)
	defer asides.Put(kept)
	if err := edit(func() { kept.hide(slot, tensors, a.left) }); err != nil {
		return nil, time.Since(began), err
	}
	own := time.Since(began)
	rejected, busy, err := s.compute(ctx, b, part{a.given, a.given, func() error {
		began := time.Now()
		defer func() { own += time.Since(began) }()
		return edit(func() { kept.restore(slot, tensors) })
	}})
	return rejected, own + busy, err
}

// count counts a batch that the stage has finished, or that it was not called for.
func (s *stageRunner) count(b *pipeline.Batch, given int) {
	a := &s.attempts[b.Slot]
	if !s.instance.Chosen() || a.counted == b.Order()+1 {
		return
	}
	a.counted = b.Order() + 1
	s.mu.Lock()
	defer s.mu.Unlock()
	s.chosen.given += int64(given)
	s.chosen.left += int64(len(a.left))
}

// Augmentations returns how many rows the chosen instances were given, nil if there are none.
func (p *Path) Augmentations() (all []report.Augmentation) {
	for _, s := range p.runners {
		if !s.instance.Chosen() {
			continue
		}
		s.mu.Lock()
		one := report.Augmentation{Name: s.instance.Name, Given: s.chosen.given, Left: s.chosen.left}
		s.mu.Unlock()
		if g := s.instance.Group; g != nil {
			one.Group = g.Name
		}
		all = append(all, one)
	}
	return all
}
