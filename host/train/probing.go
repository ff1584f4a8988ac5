package train

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/xtts-host/xtts-host/ortgraphs"
	"github.com/xtts-host/xtts-host/ortgraphs/ort"
	"github.com/xtts-host/xtts-host/shared/manifest"
	"github.com/xtts-host/xtts-host/shared/ring"
)

// Probing computes probes of a batch with the parameters and the state that evaluations read. It runs on the CPU, also
// for a model on a GPU: it takes no memory there, and no step waits for its kernels. It is for the trainer's goroutine.
type Probing struct {
	memory  // of the host
	model   *Model
	session *ort.Session
	bound   tensors // all inputs but those of the batch
	copies  []weightCopy
	scalars []word[float32]

	batch  block
	layout *ring.Layout // nil before Take
}

// weightCopy is a tensor of a model on a GPU in the memory of the host.
type weightCopy struct {
	name string
	block
}

// NewProbing opens the probe graph of the model's bundle, pruned to the probes of these names. threads is the number of
// threads inside an operator, 0 means all cores.
func NewProbing(m *Model, b *ortgraphs.Bundle, names []string, threads int) (*Probing, error) {
	p := &Probing{model: m, memory: newMemory(Device{}), bound: tensors{}}
	p.batch = p.block(SlotBytes(m.layouts))
	if err := p.open(b, names, threads); err != nil {
		return nil, errors.Join(fmt.Errorf("probes: %w", err), p.Close())
	}
	return p, nil
}

func (p *Probing) open(b *ortgraphs.Bundle, names []string, threads int) error {
	g, _ := b.Manifest.ProbeGraph()
	program, err := b.Program(g, func(output string) bool {
		return slices.Contains(names, strings.TrimPrefix(output, manifest.ProbePrefix))
	})
	if err != nil {
		return err
	}
	p.session = p.memory.open(
		ort.SessionConfig{Model: program.Model, Dir: program.Dir, Name: g.File, Threads: threads}, false)
	if p.err != nil {
		return p.err
	}
	words := p.words(1 + len(p.model.specs))
	seed := newWord[int64](&p.memory, words, manifest.I64)
	*seed.value = -1
	p.bound[seedInput] = seed.tensor
	for _, spec := range p.model.specs {
		w := newWord[float32](&p.memory, words, manifest.F32)
		p.scalars, p.bound[spec.Name] = append(p.scalars, w), w.tensor
	}
	for _, in := range p.session.Inputs() {
		at, ok := p.model.Evaluated.places[in.Name]
		switch {
		case !ok: // of the batch
		case !p.model.device.onGPU():
			p.bound[in.Name] = p.model.Evaluated.Tensors[in.Name]
		default:
			c := weightCopy{in.Name, p.block(at.Bytes())}
			p.copies = append(p.copies, c)
			p.bound[in.Name] = p.tensor(c.block, 0, manifest.F32, p.model.Evaluated.Tensors[in.Name].Shape()...)
		}
	}
	return p.err
}

// Take copies the batch in a device slot, after all work queued so far, with the scalars of its evaluation.
func (p *Probing) Take(slot, bucket int) error {
	p.layout = &p.model.layouts[bucket]
	for i, w := range p.model.batchScalars.slots[slot] {
		*p.scalars[i].value = *w.value
	}
	from := &p.model.slots[slot]
	if !p.model.device.onGPU() {
		copy(p.batch.host[:p.layout.InputBytes], from.host)
		return nil
	}
	return readPart(&p.model.memory, from, 0, p.layout.InputBytes, func(at int, data []byte) error {
		copy(p.batch.host[at:], data)
		return nil
	})
}

// Taken returns an input of the batch that was taken, in integers; nil if there is none of that name.
func (p *Probing) Taken(name string) []int32 {
	for _, t := range p.layout.Tensors {
		if t.Name == name && t.DType == manifest.I32 && t.Offset < p.layout.InputBytes {
			return ort.View[int32](p.batch.host[t.Offset:][:t.Bytes()])
		}
	}
	return nil
}

// Run computes the probes of the batch that was taken, with the present weights, and calls take with each. The values
// are not valid afterwards.
func (p *Probing) Run(take func(name string, shape []int, values []float32) error) (err error) {
	for _, c := range p.copies {
		if err := p.model.Evaluated.Read(c.name, c.host); err != nil {
			return err
		}
	}
	b, err := p.session.NewBinding()
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, b.Close()) }()
	for _, t := range p.layout.Tensors {
		if !slices.ContainsFunc(p.session.Inputs(), func(in ort.ValueInfo) bool { return in.Name == t.Name }) {
			continue
		}
		tensor, err := ort.NewTensor(p.batch.host[t.Offset:], t.DType, t.Shape)
		if err != nil {
			return err
		}
		defer tensor.Close()
		b.BindInput(t.Name, tensor) // Run returns the first error
	}
	for _, in := range p.session.Inputs() {
		if t := p.bound[in.Name]; t != nil {
			b.BindInput(in.Name, t)
		}
	}
	for _, out := range p.session.Outputs() {
		b.BindOutputAt(out.Name, ort.Host)
	}
	if err := b.Run(nil); err != nil {
		return err
	}
	outputs, err := b.Outputs()
	if err != nil {
		return err
	}
	for name, t := range outputs {
		if err == nil {
			err = take(strings.TrimPrefix(name, manifest.ProbePrefix), t.Shape(), ort.View[float32](t.Bytes()))
		}
		err = errors.Join(err, t.Close())
	}
	return err
}

// Close releases everything. It is idempotent.
func (p *Probing) Close() error {
	if p == nil {
		return nil
	}
	return p.memory.Close()
}
