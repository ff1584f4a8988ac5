package batch

import (
	"fmt"
	"hash/maphash"
	"maps"
	"slices"

	"github.com/xtts-host/xtts-host/host/stages/catalog"
	"github.com/xtts-host/xtts-host/host/stages/pipeline"
	"github.com/xtts-host/xtts-host/shared/ring"
)

// seals notice that a tensor of a batch has changed between the call that made it and the one that reads it, or the
// transfer: a plugin wrote to it after its answer, or wrote to a batch that it had no call for. proof finds more, and
// names the plugin, but lets only one process work at a time. A nil seals checks nothing.
type seals struct {
	ring *ring.Ring
	seed maphash.Seed
	// by slot: of the rows of the tensors that are finished. Only the holder of the slot uses it
	sums []map[string][]uint64
}

func newSeals(r *ring.Ring) *seals {
	s := &seals{ring: r, seed: maphash.MakeSeed(), sums: make([]map[string][]uint64, r.Slots())}
	for i := range s.sums {
		s.sums[i] = map[string][]uint64{}
	}
	return s
}

// begin forgets the batch that the slot had before.
func (s *seals) begin(slot int) {
	if s != nil {
		clear(s.sums[slot])
	}
}

// set seals tensors that are finished.
func (s *seals) set(slot int, tensors []ring.Tensor) {
	if s == nil {
		return
	}
	memory := s.ring.Slot(slot)
	for _, t := range tensors {
		sums := s.sums[slot][t.Name][:0]
		for row := range t.Shape[0] {
			sums = append(sums, maphash.Bytes(s.seed, t.Row(memory, row)))
		}
		s.sums[slot][t.Name] = sums
	}
}

// check compares tensors with their seals.
func (s *seals) check(slot int, tensors []ring.Tensor) error {
	if s == nil {
		return nil
	}
	memory := s.ring.Slot(slot)
	for _, t := range tensors {
		for row, sum := range s.sums[slot][t.Name] {
			if maphash.Bytes(s.seed, t.Row(memory, row)) != sum {
				return fmt.Errorf(
					"row %d of %s in ring slot %d was written to after the answer of the call that made it", row,
					t.Name, slot)
			}
		}
	}
	return nil
}

// intact returns an error that wraps pipeline.ErrRebuild if a process has written to memory of the batch that it must
// not write to: its guards, or tensors that are finished. by is the process that worked on it just now, nil if none
// did.
func (c *common) intact(b *pipeline.Batch, tensors []ring.Tensor, by *worker) error {
	changed := c.seals.check(b.Slot, tensors)
	if err := c.guards.check(b, by); err != nil || changed == nil {
		return err
	}
	return c.guards.changed(b, changed)
}

// traffic is what an instance reads and writes in one bucket.
type traffic struct {
	edited  []ring.Tensor // both: they are compared before the call
	read    []ring.Tensor // only: they are compared after it
	written []ring.Tensor
}

func newTraffic(in catalog.Instance, layout *ring.Layout) (t traffic) {
	bound := func(ports map[string]string, tensor string) bool {
		return slices.Contains(slices.Collect(maps.Values(ports)), tensor)
	}
	for _, tensor := range layout.Tensors {
		reads, writes := bound(in.Inputs, tensor.Name), bound(in.Outputs, tensor.Name)
		switch {
		case reads && writes:
			t.edited = append(t.edited, tensor)
		case reads:
			t.read = append(t.read, tensor)
		}
		if writes {
			t.written = append(t.written, tensor)
		}
	}
	return t
}
