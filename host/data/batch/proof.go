package batch

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"hash/maphash"
	"slices"
	"sync"

	"github.com/xtts-host/xtts-host/shared/manifest"
	"github.com/xtts-host/xtts-host/shared/ring"
)

// proof shows that plugins write only to the outputs of their calls. While a process works on a batch, all others are
// stopped (supervise.Config.Pause) and the host writes nothing, so every change of the ring outside the call's outputs
// is that process's. A nil proof checks nothing.
type proof struct {
	ring    *ring.Ring
	seed    maphash.Seed
	regions [][]region // by bucket

	// turn is held for writing by a call with its checks, for reading by a decoder. It guards seals: a decoder uses
	// only that of its own slot.
	turn  sync.RWMutex
	seals []seal // by slot
}

// region is a part of a slot: a row of a tensor, or what lies between two tensors.
type region struct {
	tensor   string
	row      int // -1: the bytes after the tensor
	from, to int // offsets in the slot
}

// seal is what a slot contained when the host, or a call, had written to it.
type seal struct {
	regions []region // none: the slot has had no batch, or its batch is being decoded
	sums    []uint64
}

// set seals what the slot contains now.
func (p *proof) set(slot int, regions []region) {
	s, memory := &p.seals[slot], p.ring.Slot(slot)
	s.regions, s.sums = regions, s.sums[:0]
	for _, r := range regions {
		s.sums = append(s.sums, maphash.Bytes(p.seed, memory[r.from:r.to]))
	}
}

func newProof(r *ring.Ring, layouts []ring.Layout) *proof {
	p := &proof{ring: r, seed: maphash.MakeSeed(), seals: make([]seal, r.Slots())}
	for i := range layouts {
		p.regions = append(p.regions, regionsOf(&layouts[i], r.SlotSize()))
	}
	return p
}

// regionsOf divides a whole slot.
func regionsOf(l *ring.Layout, size int) []region {
	var all []region
	for i, t := range l.Tensors {
		rows, end := t.Shape[0], size
		if i+1 < len(l.Tensors) {
			end = l.Tensors[i+1].Offset
		}
		each := t.Bytes() / rows
		for row := range rows {
			all = append(all, region{t.Name, row, t.Offset + row*each, t.Offset + (row+1)*each})
		}
		all = append(all, region{t.Name, -1, t.Offset + t.Bytes(), end})
	}
	return all
}

// decode begins the decoding of a batch, decoded ends it.
func (p *proof) decode(slot int) {
	if p != nil {
		p.turn.RLock()
		p.seals[slot].regions = nil
	}
}

func (p *proof) decoded(slot, bucket int) {
	if p == nil {
		return
	}
	p.set(slot, p.regions[bucket])
	p.turn.RUnlock()
}

// edit has the host change regions of a slot with a batch between two calls. The error says which of them it did not
// leave as they are.
func (p *proof) edit(slot int, mine func(region) bool, do func()) error {
	if p == nil {
		do()
		return nil
	}
	p.turn.RLock()
	defer p.turn.RUnlock()
	s, memory := &p.seals[slot], p.ring.Slot(slot)
	for i, r := range s.regions {
		if mine(r) && maphash.Bytes(p.seed, memory[r.from:r.to]) != s.sums[i] {
			return fmt.Errorf("%s in ring slot %d was written to between two calls", r, slot)
		}
	}
	do()
	for i, r := range s.regions {
		if mine(r) {
			s.sums[i] = maphash.Bytes(p.seed, memory[r.from:r.to])
		}
	}
	return nil
}

// begin begins the call of a stage with these outputs. It fills those that the stage is to write as a whole with what
// no stage writes.
func (p *proof) begin(slot int, out *outputs) {
	if p == nil {
		return
	}
	p.turn.Lock()
	for _, t := range out.fresh {
		view := t.In(p.ring.Slot(slot))
		for i := range view {
			view[i] = unwritten
		}
	}
}

// unwritten fills the outputs of a call before it. As a float it is a NaN that no arithmetic gives, as a length it is
// -1.
const unwritten = 0xff

// end ends the call. answered says that the stage has reported success. The error says what it wrote though it must
// not, or has not written though it must.
func (p *proof) end(slot int, out *outputs, answered bool) error {
	if p == nil {
		return nil
	}
	defer p.turn.Unlock()
	if err := p.check(slot, out); err != nil {
		for i := range p.seals { // the change is not that of the next call
			p.set(i, p.seals[i].regions)
		}
		return err
	}
	memory, s := p.ring.Slot(slot), &p.seals[slot]
	if answered {
		for _, t := range out.fresh {
			if row := unwrittenRow(t, memory); row >= 0 {
				return fmt.Errorf("it answered without writing row %d of %s", row, t.Name)
			}
		}
	}
	for i, r := range s.regions {
		if out.writes(r) {
			s.sums[i] = maphash.Bytes(p.seed, memory[r.from:r.to])
		}
	}
	return nil
}

// check compares all slots with their seals, but for the outputs of the call in a slot.
func (p *proof) check(called int, out *outputs) error {
	for slot, s := range p.seals {
		memory := p.ring.Slot(slot)
		for i, r := range s.regions {
			own := slot == called
			if own && out.writes(r) || maphash.Bytes(p.seed, memory[r.from:r.to]) == s.sums[i] {
				continue
			}
			switch place := fmt.Sprintf("%s in ring slot %d", r, slot); {
			case own && r.row >= 0:
				return fmt.Errorf("it changed %s, but %s is not an output of the stage", place, r.tensor)
			case own:
				return fmt.Errorf("it wrote to %s", place)
			default:
				return fmt.Errorf("it wrote to %s, but its call was for slot %d", place, called)
			}
		}
	}
	return nil
}

func (r region) String() string {
	if r.row < 0 {
		return "the bytes after " + r.tensor
	}
	return fmt.Sprintf("row %d of %s", r.row, r.tensor)
}

// writes reports whether the region is an output of the stage.
func (o *outputs) writes(r region) bool { return r.row >= 0 && slices.Contains(o.written, r.tensor) }

// unwrittenRow returns the first row of a tensor with an element that is still unwritten, or -1.
func unwrittenRow(t ring.Tensor, slot []byte) int {
	size := t.DType.Size()
	empty := bytes.Repeat([]byte{unwritten}, size)
	for row := range t.Shape[0] {
		view := t.Row(slot, row)
		if t.DType == manifest.F32 { // nearly all
			for ; len(view) >= 4; view = view[4:] {
				if binary.LittleEndian.Uint32(view) == 1<<32-1 {
					return row
				}
			}
			continue
		}
		for ; len(view) > 0; view = view[size:] {
			if bytes.Equal(view[:size], empty) {
				return row
			}
		}
	}
	return -1
}
