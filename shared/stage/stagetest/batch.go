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
	"github.com/xtts-host/xtts-host/shared/stagepb"
)

// bystander is a tensor of the batch that is not bound to any port of the stage.
const bystander = "bystander"

// tensorName makes the names of tensors differ from those of ports, to find a stage that confuses the two.
func tensorName(port string) string { return "tensor_" + port }

// layout places the tensors of the stage's ports, with the bystander between them. f32 rows are padded with a number
// that a stage does not write by chance, integers with 0.
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

// batch describes a test batch: row i has the sample number order[i].
type batch struct {
	bucket int
	order  [rows]int
	empty  bool // all rows are empty
	report bool // ask for what is drawn
}

// keys returns the row keys.
func (b batch) keys() []byte {
	var out []byte
	for _, sample := range b.order {
		out = append(out, bytes.Repeat([]byte{byte(sample + 1)}, stage.KeySize)...)
	}
	return out
}

// sources returns the parts of clips that the rows are.
func (b batch) sources() []*stagepb.Source {
	out := make([]*stagepb.Source, rows)
	for i, sample := range b.order {
		if out[i] = new(stagepb.Source); b.length(i, 1) > 0 {
			out[i] = &stagepb.Source{
				Clip: fmt.Sprintf("sample-%d", sample), Start: int64(100 * sample), End: int64(100*sample + 1000),
			}
		}
	}
	return out
}

// fill writes the batch to a slot: noise in the inputs, and invalid values everywhere else.
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
				continue // filled together with its tensor
			}
			n := -1
			if p.Lengths != "" {
				n = b.length(row, t.Shape[1])
				lengths := l.View(slot, tensorName(p.Lengths))
				binary.LittleEndian.PutUint32(lengths[4*row:], uint32(n))
			}
			fillRow(t, t.Row(slot, row), n, b.order[row])
		}
	}
}

// length returns the valid length of a row of the given width. Sample 0 is full, sample 1 is empty, the others have
// different lengths.
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

// fillRow writes n elements along axis 1 (all of them if n is negative), which depend only on the sample, and then the
// padding.
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
		default: // small integers; all bits zero is a zero in every type
			clear(at[:size])
			if i < valid && (t.DType == manifest.I32 || t.DType == manifest.I64 || t.DType == manifest.U8) {
				at[0] = byte(rng.IntN(10))
			}
		}
	}
}
