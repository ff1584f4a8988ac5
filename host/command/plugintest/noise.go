package plugintest

import (
	"encoding/binary"
	"fmt"
	"math"
	"math/rand/v2"

	"github.com/xtts-host/xtts-host/ortgraphs"
	"github.com/xtts-host/xtts-host/shared/manifest"
	"github.com/xtts-host/xtts-host/shared/ring"
)

// bystander is a tensor of the batch that is bound to no port of the stage.
const bystander = "bystander"

// tensorName makes the names of tensors differ from those of ports, to find a stage that confuses the two.
func tensorName(port string) string { return "tensor_" + port }

// padding follows each row of an f32 tensor: a number that a stage does not write by chance.
const padding = -2.5

// seconds are the lengths of the buckets.
var seconds = []float64{0.25, 1}

// other is the size of an axis that the bundle knows nothing about, by bucket.
var other = []int{33, 128}

// noise makes batches for a stage.
type noise struct {
	stage   manifest.Stage
	layouts []ring.Layout // by bucket
	short   map[string]int
}

// newNoise lays out the tensors of the stage's ports, with the bystander among them.
func newNoise(stage manifest.Stage, b *ortgraphs.Bundle) (*noise, error) {
	n := &noise{stage: stage, short: map[string]int{manifest.SymbolWav: b.Manifest.Features.WinLength}}
	for i := range seconds {
		values := b.Manifest.Fit(manifest.Bucket{
			manifest.SymbolWav:  int(seconds[i]*float64(b.Manifest.Features.SampleRate)) | 1,
			manifest.SymbolText: other[i],
		}).Values(rows)
		values["n_mels"] = b.Manifest.Features.NMels
		var tensors []ring.Tensor
		seen := map[string]bool{}
		for _, p := range append(append([]manifest.TensorSpec{}, stage.Inputs...), stage.Outputs...) {
			if seen[p.Name] {
				continue
			}
			seen[p.Name] = true
			for _, d := range p.Shape {
				if _, known := values[d.Symbol]; d.Symbol != "" && !known {
					values[d.Symbol] = other[i]
				}
			}
			shape, err := p.Shape.Resolve(values)
			if err != nil {
				return nil, fmt.Errorf("port %q: %w", p.Name, err)
			}
			t := ring.Tensor{Name: tensorName(p.Name), DType: p.DType, Shape: shape}
			if p.DType == manifest.F32 {
				t.Pad = padding
			}
			if tensors = append(tensors, t); len(tensors) == 1 {
				tensors = append(tensors, ring.Tensor{Name: bystander, DType: manifest.U8, Shape: []int{rows, 100}})
			}
		}
		n.layouts = append(n.layouts, ring.NewLayout(tensors, nil))
	}
	return n, nil
}

// slotSize is the size of a slot for any bucket.
func (n *noise) slotSize() int {
	size := 0
	for _, l := range n.layouts {
		size = max(size, l.Size)
	}
	return size
}

// length returns the length of a clip on an axis of that width.
func (n *noise) length(clip int32, width int, axis manifest.Dim) int {
	shortest := min(width, max(1, n.short[axis.Symbol]))
	switch clip {
	case empty:
		return 0
	case 0:
		return width
	case 1:
		return shortest
	}
	return max(shortest, width*2/(int(clip)+1)|1)
}

// fill writes the clips of a batch to a slot: noise in the inputs, and impossible values everywhere else.
func (n *noise) fill(slot []byte, bucket int, clips []int32) {
	l := &n.layouts[bucket]
	for _, t := range l.Tensors {
		view := t.In(slot)
		for i := range view {
			view[i] = 0xff // NaN as f32, -1 as i32
		}
	}
	for i := range l.View(slot, bystander) {
		l.View(slot, bystander)[i] = byte(i)
	}
	lengths := map[string]bool{}
	for _, p := range n.stage.Inputs {
		lengths[p.Lengths] = true
	}
	for _, p := range n.stage.Inputs {
		if lengths[p.Name] {
			continue // filled together with its tensor
		}
		t, _ := l.Find(tensorName(p.Name))
		for row, clip := range clips {
			valid := t.Bytes() / t.DType.Size() / t.Shape[0]
			if p.Lengths != "" && len(t.Shape) > 1 {
				length := n.length(clip, t.Shape[1], p.Shape[1])
				binary.LittleEndian.PutUint32(l.View(slot, tensorName(p.Lengths))[4*row:], uint32(length))
				valid = valid / t.Shape[1] * length
			} else if clip == empty {
				valid = 0
			}
			fillRow(t, t.Row(slot, row), valid, clip)
		}
	}
}

// fillRow writes elements that depend only on the clip, and then the padding.
func fillRow(t ring.Tensor, row []byte, valid int, clip int32) {
	size := t.DType.Size()
	rng := rand.New(rand.NewPCG(uint64(clip), 7))
	for i := range len(row) / size {
		at := row[i*size:]
		switch {
		case t.DType == manifest.F32 && i < valid:
			binary.LittleEndian.PutUint32(at, math.Float32bits(float32(rng.Float64()-0.5)))
		case t.DType == manifest.F32:
			binary.LittleEndian.PutUint32(at, math.Float32bits(padding))
		default: // small integers; all bits zero is a zero in every type
			clear(at[:size])
			if i < valid && (t.DType == manifest.I32 || t.DType == manifest.I64 || t.DType == manifest.U8) {
				at[0] = byte(rng.IntN(10))
			}
		}
	}
}

// badPadding says which element after the end of a row of the outputs is not padding, or returns "". Of the rows of a
// batch of these clips it looks at the empty ones, or at the others.
func (n *noise) badPadding(slot []byte, bucket int, clips []int32, ofEmpty bool) string {
	l := &n.layouts[bucket]
	for _, p := range n.stage.Outputs {
		t, _ := l.Find(tensorName(p.Name))
		if p.Lengths == "" || t.DType != manifest.F32 || len(t.Shape) < 2 {
			continue
		}
		for row := range t.Shape[0] {
			if (clips[row] == empty) != ofEmpty {
				continue
			}
			data := t.Row(slot, row)
			length := int(int32(binary.LittleEndian.Uint32(l.View(slot, tensorName(p.Lengths))[4*row:])))
			if ofEmpty && length != 0 {
				return fmt.Sprintf("row %d is empty, and its length of port %s is %d", row, p.Name, length)
			}
			first := len(data) / 4 / t.Shape[1] * length
			for i := first; i < len(data)/4; i++ {
				if v := math.Float32frombits(binary.LittleEndian.Uint32(data[4*i:])); v != padding {
					return fmt.Sprintf(
						"row %d of port %s has %d valid elements, and element %d is %v, not the pad value %v", row,
						p.Name, first, i, v, padding)
				}
			}
		}
	}
	return ""
}
