package train

import (
	"errors"
	"math"
	"slices"

	"github.com/xtts-host/xtts-host/ortgraphs"
	"github.com/xtts-host/xtts-host/ortgraphs/ort"
	"github.com/xtts-host/xtts-host/shared/manifest"
	"github.com/xtts-host/xtts-host/shared/ring"
)

// synthetic says what synthetic batches contain: noise for numbers, 0 and 1 for possible indices, and lengths within
// the bucket.
type synthetic struct {
	edges    bool // the first row has the full length, and the last row of several is empty
	positive bool // numbers are between 0 and 1: some graphs have the logarithm of an input
}

// anyRows is for trial runs.
var anyRows = synthetic{}

// fill fills a synthetic batch.
func (t *trial) fill(slot, bucket int, with synthetic) error {
	layout, mem := &t.layouts[bucket], t.slots[slot].host
	if t.stage != nil {
		mem = t.stage.Bytes()
	}
	axis := map[string]int{} // the axis that each lengths tensor counts
	for _, in := range t.inputs {
		if tensor, ok := layout.Find(in.Name); ok && in.Lengths != "" && len(tensor.Shape) > 1 {
			axis[in.Lengths] = tensor.Shape[1]
		}
	}
	for _, tensor := range layout.Tensors {
		if tensor.Offset < layout.InputBytes {
			t.fillTensor(tensor, mem, axis[tensor.Name], with.positive)
			if with.edges && axis[tensor.Name] > 0 {
				if v := ort.View[int32](tensor.In(mem)); len(v) > 1 {
					v[0], v[len(v)-1] = int32(axis[tensor.Name]), 0
				}
			}
		}
	}
	if t.stage == nil {
		return nil
	}
	if err := t.device.Compute.Upload(t.slots[slot].dev, 0, mem[:layout.InputBytes]); err != nil {
		return err
	}
	return t.device.Compute.Synchronize()
}

func (t *trial) fillTensor(tensor ring.Tensor, mem []byte, longest int, positive bool) {
	data := tensor.In(mem)
	clear(data)
	switch tensor.DType {
	case manifest.F32:
		for i, v := 0, ort.View[float32](data); i < len(v); i++ {
			if v[i] = float32(t.random.NormFloat64()); positive {
				v[i] = 1 - t.random.Float32() // not 0
			}
		}
	case manifest.I32:
		for i, v := 0, ort.View[int32](data); i < len(v); i++ {
			if v[i] = int32(t.random.IntN(2)); longest > 0 {
				v[i] = int32(1 + t.random.IntN(longest))
			}
		}
	case manifest.I64:
		for i, v := 0, ort.View[int64](data); i < len(v); i++ {
			v[i] = int64(t.random.IntN(2))
		}
	case manifest.U8, manifest.Bool:
		for i := range data {
			data[i] = byte(t.random.IntN(2))
		}
	}
}

// varyWeights adds noise to variables whose values are all the same. With the zeros and ones of fresh weights,
// gradients of much of a graph may be zero, and a kernel that forgets a bias would give the right result. restore gives
// them their values back; after an error the model is not used any more.
func varyWeights(t *trial) (restore func() error, err error) {
	list := slices.DeleteFunc(t.variables(), func(v variable) bool { return !constant(v.values) })
	var same []float32
	restore = func() (err error) {
		for i, v := range list {
			for j := range v.values {
				v.values[j] = same[i]
			}
			err = errors.Join(err, v.send())
		}
		return err
	}
	for _, v := range list {
		same = append(same, v.values[0])
		for i := range v.values {
			noise := 0.02 * t.random.NormFloat64()
			if v.state {
				noise = math.Abs(noise)
			}
			v.values[i] += float32(noise)
		}
		if err := v.send(); err != nil {
			return nil, err
		}
	}
	return restore, nil
}

// constant reports whether all values have the same bits. A single one does if it is zero, as that of a closed gate.
func constant(values []float32) bool {
	if len(values) == 0 || len(values) == 1 && values[0] != 0 {
		return false
	}
	for _, x := range values {
		if math.Float32bits(x) != math.Float32bits(values[0]) {
			return false
		}
	}
	return true
}

// weightsOf returns a parameter's values on the host.
func (p *parameters) weightsOf(i int) []float32 {
	at, _ := p.arena.Parameter(ortgraphs.Weights, i)
	return ort.View[float32](p.weights.host[at.Offset : at.Offset+at.Bytes()])
}

// sendWeights copies a parameter's values, and their copies in bf16, to the GPU.
func sendWeights(t *trial, p *player, i int) error {
	at, _ := p.arena.Parameter(ortgraphs.Weights, i)
	if err := sendSpan(t, &p.weights.block, at); err != nil {
		return err
	}
	short, ok := p.arena.Parameter(ortgraphs.Copies, i)
	if !ok {
		return nil
	}
	narrow(p.copies.host[short.Offset:short.Offset+short.Bytes()], p.weightsOf(i))
	return sendSpan(t, &p.copies.block, short)
}

func sendSpan(t *trial, b *block, at ortgraphs.Span) error {
	stage := t.stage.Bytes()
	for from, end := at.Offset, at.Offset+at.Bytes(); from < end; from += len(stage) {
		n := copy(stage, b.host[from:end])
		if err := errors.Join(
			t.device.Compute.Upload(b.dev, from, stage[:n]), t.device.Compute.Synchronize(),
		); err != nil {
			return err
		}
	}
	return nil
}
