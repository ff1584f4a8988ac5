package stagetest

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"math"
	"math/rand/v2"

	"github.com/xtts-host/xtts-host/shared/manifest"
	"github.com/xtts-host/xtts-host/shared/ring"
	"github.com/xtts-host/xtts-host/shared/stage"
)

// bystander is a tensor of the batch that the stage was given no port for.
const bystander = "bystander"

// tensorName keeps tensors apart from ports: a stage that confuses the two is found.
func tensorName(port string) string { return "tensor_" + port }

// layout places the tensors of the stage's ports, and the bystander between them. Rows are padded with a number
// that no stage writes by chance; lengths and other integers with 0.
func layout(spec manifest.Stage, bucket manifest.Bucket) (ring.Layout, error) {
	var tensors []ring.Tensor
	seen := map[string]bool{}
	for _, p := range append(append([]manifest.TensorSpec{}, spec.Inputs...), spec.Outputs...) {
		if seen[p.Name] {
			continue
		}
		seen[p.Name] = true
		shape, err := p.Shape.Resolve(bucket.Values(rows))
		if err != nil {
			return ring.Layout{}, fmt.Errorf("port %q: %w", p.Name, err)
		}
		t := ring.Tensor{Name: tensorName(p.Name), DType: p.DType, Shape: shape}
		if p.DType == manifest.F32 {
			t.Pad = -2.5
		}
		tensors = append(tensors, t)
		if len(tensors) == 1 {
			tensors = append(tensors, ring.Tensor{Name: bystander, DType: manifest.U8, Shape: []int{rows, 100}})
		}
	}
	return ring.NewLayout(tensors, nil), nil
}

// batch is what the rows of a test batch hold: row i of the batch is the sample with number order[i].
type batch struct {
	bucket int
	order  [rows]int
	empty  bool // all rows are
}

// keys returns the row keys.
func (b batch) keys() []byte {
	var out []byte
	for _, sample := range b.order {
		out = append(out, bytes.Repeat([]byte{byte(sample + 1)}, stage.KeySize)...)
	}
	return out
}

// fill writes the batch to a slot: noise in the inputs, poison in the outputs and wherever else nothing is promised.
func (k *kit) fill(slot []byte, b batch) {
	for i := range slot {
		slot[i] = 0xff // NaN as f32, -1 as i32
	}
	l := &k.layouts[b.bucket]
	l.WriteGuards(slot)
	for i := range l.View(slot, bystander) {
		l.View(slot, bystander)[i] = byte(i)
	}
	lengthsOf := map[string]bool{}
	for _, p := range k.spec.Inputs {
		lengthsOf[p.Lengths] = true
	}
	for _, p := range k.spec.Inputs {
		t, _ := l.Find(tensorName(p.Name))
		for row := range rows {
			if lengthsOf[p.Name] {
				continue // written with its tensor
			}
			n := -1
			if p.Lengths != "" {
				n = b.length(row, t.Shape[1])
				lengths := l.View(slot, tensorName(p.Lengths))
				binary.LittleEndian.PutUint32(lengths[4*row:], uint32(n))
			}
			fillRow(t, rowOf(t, slot, row), n, b.order[row])
		}
	}
}

// length is the valid part of a row of the given width. Sample 0 is full, sample 1 is empty, the others differ.
func (b batch) length(row, width int) int {
	switch sample := b.order[row]; {
	case b.empty || sample == 1:
		return 0
	case sample == 0:
		return width
	default:
		return width - (sample-1)*width/(2*rows)
	}
}

// fillRow writes n elements along axis 1 (all, when n is negative), which depend on the sample only, and then the pad.
func fillRow(t ring.Tensor, row []byte, n, sample int) {
	size := t.DType.Size()
	valid := len(row) / size
	if n >= 0 && len(t.Shape) > 1 {
		valid = valid / t.Shape[1] * n
	}
	rng := rand.New(rand.NewPCG(uint64(sample), 7))
	for i := range len(row) / size {
		at := row[i*size:]
		switch t.DType {
		case manifest.F32:
			v := float32(2*rng.Float64() - 1)
			if i >= valid {
				v = float32(t.Pad)
			}
			binary.LittleEndian.PutUint32(at, math.Float32bits(v))
		default: // small integers; bits of zero are a zero in every type
			clear(at[:size])
			if i < valid && (t.DType == manifest.I32 || t.DType == manifest.I64 || t.DType == manifest.U8) {
				at[0] = byte(rng.IntN(10))
			}
		}
	}
}

// rowOf returns the bytes of one row of a tensor whose first axis is B.
func rowOf(t ring.Tensor, slot []byte, row int) []byte {
	all := t.In(slot)
	size := len(all) / t.Shape[0]
	return all[row*size : (row+1)*size]
}
