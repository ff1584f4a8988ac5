package engine

import (
	"errors"

	"github.com/xtts-host/xtts-host/gpu"
	"github.com/xtts-host/xtts-host/ortgraphs/ort"
	"github.com/xtts-host/xtts-host/plugins/internal/gpustage"
	"github.com/xtts-host/xtts-host/shared/manifest"
)

// align is the alignment of tensors that GPU kernels require of their operands.
const align = 256

func aligned(n int) int { return (n + align - 1) / align * align }

// place is the layout of a bucket's tensors in a lane's memory.
type place struct {
	gpustage.Bucket
	parts []part
	size  int            // on the GPU
	own   map[string]int // offsets in pinned memory
	host  int            // size of the pinned memory
}

// part is a run of rows that are computed together.
type part struct {
	from, to int
	at       map[string]int // offsets in GPU memory
}

func newPlace(b gpustage.Bucket) place {
	p := place{Bucket: b, own: map[string]int{}}
	together := b.Together
	if together <= 0 {
		together = b.Rows
	}
	tensors := append(append([]gpustage.Tensor{}, b.Inputs...), b.Outputs...)
	for from := 0; from < b.Rows; from += together {
		c := part{from: from, to: min(from+together, b.Rows), at: map[string]int{}}
		for _, t := range tensors {
			c.at[t.Name] = p.size
			p.size = aligned(p.size + (c.to-c.from)*t.RowBytes())
		}
		p.parts = append(p.parts, c)
	}
	for _, t := range tensors {
		if t.Own {
			p.own[t.Name] = p.host
			p.host = aligned(p.host + b.Rows*t.RowBytes())
		}
	}
	return p
}

// lane holds the resources of one batch in flight.
type lane struct {
	memory   gpu.Memory
	host     gpu.HostMemory
	crossed  gpu.Event // the inputs are on the GPU
	computed gpu.Event // the outputs are in host memory
	buckets  []bound
}

// bound is a bucket with its bindings in a lane.
type bound struct {
	place
	chunks []chunk
}

type chunk struct {
	part
	binding *ort.Binding
}

// newLane creates a lane that is large enough for any bucket.
func (p *program) newLane(places []place) (*lane, error) {
	size, host := 0, 0
	for _, b := range places {
		size, host = max(size, b.size), max(host, b.host)
	}
	l, context := new(lane), p.device.config.Context
	var err error
	if l.memory, err = p.allocate(size); err != nil {
		return nil, err
	}
	if l.host, err = context.AllocateHost(max(1, host)); err != nil {
		return nil, err
	}
	p.add(l.host.Close)
	for _, e := range []*gpu.Event{&l.crossed, &l.computed} {
		if *e, err = context.NewEvent(); err != nil {
			return nil, err
		}
		p.add((*e).Close)
	}
	return l, nil
}

// bind creates the bindings of a bucket in a lane.
func (p *program) bind(l *lane, b place, tables map[string]table) error {
	done := bound{place: b}
	for _, part := range b.parts {
		binding, err := p.graph.session.NewBinding()
		if err != nil {
			return err
		}
		p.add(binding.Close)
		for _, t := range tables {
			if err := p.tensor(t.memory, 0, t.DType, t.Shape, func(x *ort.Tensor) error {
				return binding.BindInput(t.Name, x)
			}); err != nil {
				return err
			}
		}
		for i, list := range [][]gpustage.Tensor{b.Inputs, b.Outputs} {
			bind := binding.BindInput
			if i == 1 {
				bind = binding.BindOutput
			}
			for _, t := range list {
				shape := append([]int{part.to - part.from}, t.Row...)
				if err := p.tensor(l.memory, part.at[t.Name], t.DType, shape, func(x *ort.Tensor) error {
					return bind(t.Name, x)
				}); err != nil {
					return err
				}
			}
		}
		done.chunks = append(done.chunks, chunk{part, binding})
	}
	l.buckets = append(l.buckets, done)
	return nil
}

// tensor creates a view of GPU memory for a binding, which keeps ONNX Runtime's value alive.
func (p *program) tensor(m gpu.Memory, at int, dtype manifest.DType, shape []int, bind func(*ort.Tensor) error) error {
	x, err := ort.NewTensorAt(p.device.place(), m.Pointer()+uintptr(at), m.Size()-at, dtype, shape)
	if err != nil {
		return err
	}
	return errors.Join(bind(x), x.Close())
}
