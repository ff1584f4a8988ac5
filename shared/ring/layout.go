package ring

import (
	"encoding/binary"
	"fmt"
	"math/bits"

	"github.com/xtts-host/xtts-host/shared/manifest"
)

// Align is the alignment of every tensor in a slot, in bytes. GuardSize is the space after each tensor that stages must
// not write to, in bytes.
const (
	Align     = 256
	GuardSize = 64
)

// guardWord fills the guard after a tensor. It is not a small integer or a pad value. Read as two f32 or one f64, it is
// not a number that occurs in audio or features. So a stray write of any of those is detected.
const guardWord = 0xa5c3_96e1_7f0b_d24d

// Tensor is one tensor of a slot: name, type, concrete shape, pad value, and offset in the slot in bytes.
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
	// InputBytes is the length of the first part of a slot, which holds the graph's inputs. One copy of it transfers a
	// batch to the device.
	InputBytes int
	// Size is the length of the whole slot, in bytes.
	Size int
}

// NewLayout places the graph's inputs first, then the tensors that only stages use. It ignores the Offset of the given
// tensors.
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

// View returns the bytes of a tensor in a slot, or nil if the layout has no tensor of that name.
func (l *Layout) View(slot []byte, name string) []byte {
	t, ok := l.Find(name)
	if !ok {
		return nil
	}
	return t.In(slot)
}

// In returns the bytes of the tensor in a slot. The slice's capacity ends with the tensor.
func (t Tensor) In(slot []byte) []byte {
	end := t.Offset + t.Bytes()
	return slot[t.Offset:end:end]
}

// Row returns the bytes of one row of a tensor whose first axis is the batch.
func (t Tensor) Row(slot []byte, row int) []byte {
	all := t.In(slot)
	size := len(all) / t.Shape[0]
	return all[row*size : (row+1)*size]
}

// WriteGuards fills the guards of a slot. The host calls it when it assigns the slot to a batch.
func (l *Layout) WriteGuards(slot []byte) {
	for i := range l.Tensors {
		g := l.guard(slot, i)
		for len(g) >= 8 {
			binary.LittleEndian.PutUint64(g, guardWord)
			g = g[8:]
		}
	}
}

// GuardError means that something wrote past the end of a tensor.
type GuardError struct {
	Tensor string // the tensor before the damaged guard
	Offset int    // of the first damaged byte, from the end of that tensor
}

func (e *GuardError) Error() string {
	return fmt.Sprintf("byte %d after the end of tensor %q was overwritten", e.Offset, e.Tensor)
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

// guardStart returns the start of the guard after a tensor. Up to seven bytes between the tensor and the guard are not
// checked.
func guardStart(t Tensor) int { return (t.Offset + t.Bytes() + 7) &^ 7 }

// guard returns the whole words after tensor i.
func (l *Layout) guard(slot []byte, i int) []byte {
	start := guardStart(l.Tensors[i])
	return slot[start : start+GuardSize-8]
}
