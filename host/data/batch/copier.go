package batch

import (
	"encoding/binary"
	"runtime"

	"github.com/xtts-host/xtts-host/gpu"
	"github.com/xtts-host/xtts-host/host/stages/pipeline"
	"github.com/xtts-host/xtts-host/shared/manifest"
	"github.com/xtts-host/xtts-host/shared/ring"
)

// Loader transfers a batch from a ring slot to a device slot. *train.Model implements it.
type Loader interface {
	Load(device, bucket int, slot []byte) error
}

// copier is the pipeline's device.
type copier struct {
	*common
	model   Loader
	frames  []int       // by device slot
	lengths string      // the tensor whose values count frames, "" if there is none
	gpu     gpu.Context // nil on the CPU
	bound   bool
	hooks   Hooks
}

// bind binds the thread of the pipeline's copier goroutine to the GPU, for the rest of its life.
func (c *copier) bind() error {
	if c.gpu == nil || c.bound {
		return nil
	}
	runtime.LockOSThread()
	c.bound = true
	return c.gpu.Bind()
}

// Copy implements pipeline.Device. It checks the batch after the transfer: if it is intact, the data was intact too.
func (c *copier) Copy(dst int, b *pipeline.Batch) error {
	if err := c.bind(); err != nil {
		return err
	}
	if c.hooks.Copy != nil {
		c.hooks.Copy()
	}
	slot, layout := c.ring.Slot(b.Slot), &c.layouts[b.Bucket]
	if err := c.model.Load(dst, b.Bucket, slot); err != nil {
		return err
	}
	if err := c.intact(b, c.inputs(layout), nil); err != nil {
		return err
	}
	c.frames[dst] = int(sum(layout.View(slot, c.lengths), 0))
	if c.hooks.Copied != nil {
		return c.hooks.Copied(b, layout, slot)
	}
	return nil
}

// inputs are the tensors that are transferred.
func (c *copier) inputs(l *ring.Layout) []ring.Tensor {
	n := 0
	for n < len(l.Tensors) && l.Tensors[n].Offset < l.InputBytes {
		n++
	}
	return l.Tensors[:n]
}

// sum adds up the values of a lengths tensor, and perRow for each that is not 0.
func sum(lengths []byte, perRow int) (n float64) {
	for ; len(lengths) >= 4; lengths = lengths[4:] {
		if length := binary.LittleEndian.Uint32(lengths); length > 0 {
			n += float64(length) + float64(perRow)
		}
	}
	return n
}

// measure returns what the pipeline sums over the batches of a step for the bundle's scalars; nil if there is nothing.
func (c *copier) measure(scalars []manifest.Scalar) func(b *pipeline.Batch) []float64 {
	var windows []manifest.Scalar
	for _, s := range scalars {
		if s.Origin == manifest.OriginWindow {
			windows = append(windows, s)
		}
	}
	if len(windows) == 0 {
		return nil
	}
	return func(b *pipeline.Batch) []float64 {
		out := make([]float64, len(windows))
		for i, s := range windows {
			out[i] = sum(c.layouts[b.Bucket].View(c.ring.Slot(b.Slot), s.Lengths), s.PerRow)
		}
		return out
	}
}

// frameLengths names the tensor that counts frames: the lengths of the first graph input that a stage produces, or of
// the first that has lengths.
func frameLengths(inputs []manifest.TensorSpec) string {
	first := ""
	for _, t := range inputs {
		switch {
		case t.Lengths == "":
		case t.Origin == "stage":
			return t.Lengths
		case first == "":
			first = t.Lengths
		}
	}
	return first
}
