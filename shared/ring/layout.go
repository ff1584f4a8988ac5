package ring

import (
	"encoding/binary"
	"fmt"
	"math/bits"

	"github.com/xtts-host/xtts-host/shared/manifest"
)

// Align is the alignment of every tensor in a slot, in bytes; GuardSize bytes behind each are never written
// by a stage.
const (
	Align     = 256
	GuardSize = 64
)

// guardWord fills the guard behind a tensor. It is no small integer, no pad value and, read as two f32 or one f64,
// no number that audio or features contain, so a stray write of any of those shows.
const guardWord = 0xa5c3_96e1_7f0b_d24d

// Tensor is one tensor of a slot: its type, its concrete shape, the value that fills rows behind their
// length, and where it lies.
type Tensor struct {
	Name   string
	DType  manifest.DType
	Shape  []int
	Pad    float64
	Offset int
}

// Bytes returns the tensor's size.
func (t Tensor) Bytes() int {
	n := t.DType.Size()
	for _, d := range t.Shape {
		n *= d
	}
	return n
}

// Layout places the tensors of one bucket in a slot.
type Layout struct {
	Tensors []Tensor
	// InputBytes is the length of the leading part that holds the graph's inputs: one copy of it moves a
	// batch to the device.
	InputBytes int
	// Size is the length of the whole slot.
	Size int
}

// NewLayout places the graph's inputs first and together, then the tensors that only stages exchange.
// The Offset of the given tensors is ignored.
func NewLayout(inputs, intermediates []Tensor) Layout {
	var l Layout
	place := func(ts []Tensor) {
		for _, t := range ts {
			t.Offset = l.Size
			l.Size = (t.Offset + t.Bytes() + GuardSize + Align - 1) &^ (Align - 1)
			l.Tensors = append(l.Tensors, t)
		}
	}
	place(inputs)
	l.InputBytes = l.Size
	place(intermediates)
	return l
}

// Find returns the tensor of that name, or false.
func (l *Layout) Find(name string) (Tensor, bool) {
	for _, t := range l.Tensors {
		if t.Name == name {
			return t, true
		}
	}
	return Tensor{}, false
}

// View returns the bytes of a tensor in a slot, nil for a name that is not in the layout.
func (l *Layout) View(slot []byte, name string) []byte {
	t, ok := l.Find(name)
	if !ok {
		return nil
	}
	return t.In(slot)
}

// In returns the bytes of the tensor in a slot. The capacity ends with the tensor.
func (t Tensor) In(slot []byte) []byte {
	end := t.Offset + t.Bytes()
	return slot[t.Offset:end:end]
}

// WriteGuards fills the guards of a slot. The host calls it when it takes the slot for a batch.
func (l *Layout) WriteGuards(slot []byte) {
	for i := range l.Tensors {
		g := l.guard(slot, i)
		for len(g) >= 8 {
			binary.LittleEndian.PutUint64(g, guardWord)
			g = g[8:]
		}
	}
}

// GuardError says that something wrote beyond a tensor.
type GuardError struct {
	Tensor string // the tensor in front of the damaged guard
	Offset int    // of the first damaged byte, from that tensor's end
}

func (e *GuardError) Error() string {
	return fmt.Sprintf("byte %d behind the end of tensor %q was overwritten", e.Offset, e.Tensor)
}

// CheckGuards returns a *GuardError for the first damaged guard.
func (l *Layout) CheckGuards(slot []byte) error {
	for i, t := range l.Tensors {
		g := l.guard(slot, i)
		for at := 0; at+8 <= len(g); at += 8 {
			if diff := binary.LittleEndian.Uint64(g[at:]) ^ guardWord; diff != 0 {
				gap := guardStart(t) - (t.Offset + t.Bytes())
				return &GuardError{Tensor: t.Name, Offset: gap + at + bits.TrailingZeros64(diff)/8}
			}
		}
	}
	return nil
}

// guardStart returns where the guard behind a tensor begins. A tensor of odd size leaves up to seven unchecked bytes in
// front of it.
func guardStart(t Tensor) int { return (t.Offset + t.Bytes() + 7) &^ 7 }

// guard returns the whole words behind tensor i.
func (l *Layout) guard(slot []byte, i int) []byte {
	start := guardStart(l.Tensors[i])
	return slot[start : start+GuardSize-8]
}
