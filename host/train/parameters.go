package train

import (
	"errors"

	"github.com/xtts-host/xtts-host/host/train/checkpoint"
	"github.com/xtts-host/xtts-host/ortgraphs"
	"github.com/xtts-host/xtts-host/shared/manifest"
)

// parameters are the weights and gradients of a player, and its state.
type parameters struct {
	params []manifest.Parameter
	arena  *ortgraphs.Arena

	weights, grads vector
	copies         vector // of the weights, in bf16; empty in f32

	averages vector  // moving averages of the trained weights; empty without
	decay    float64 // of the averages

	state state // which is not trained
}

// allocate allocates the vectors. It adds the parameters as the training graphs read them to copied, and returns the
// gradients.
func (p *parameters) allocate(m *memory, copied tensors) (grads tensors) {
	p.weights, p.grads = m.vector(p.arena, ortgraphs.Weights), m.vector(p.arena, ortgraphs.Gradients)
	if p.arena.Bytes(ortgraphs.Copies) > 0 {
		p.copies = m.vector(p.arena, ortgraphs.Copies)
	}
	if p.decay > 0 {
		p.averages = m.vector(p.arena, ortgraphs.State)
	}
	grads = tensors{}
	for i, param := range p.params {
		read, at := &p.weights, ortgraphs.Span{}
		if copy, ok := p.arena.Parameter(ortgraphs.Copies, i); ok {
			read, at = &p.copies, copy
		} else {
			at, _ = p.arena.Parameter(ortgraphs.Weights, i)
		}
		copied[param.Name] = m.view(read.block, at, param.Shape...)
		if at, ok := p.arena.Parameter(ortgraphs.Gradients, i); ok {
			grads[gradientOutput(param)] = m.view(p.grads.block, at, param.Shape...)
		}
	}
	return grads
}

// load reads the initial weights and state. read reads a tensor by its name.
func (p *parameters) load(m *memory, read func(name string, to []byte) error) error {
	if err := errors.Join(m.mirror(&p.weights.block), p.state.mirror(m)); err != nil {
		return err
	}
	all := allCores()
	for _, t := range append(p.views("", p.weights), p.state.views()...) {
		all.Go(func() error { return read(t.Name, t.Data) })
	}
	if err := all.Wait(); err != nil {
		return err
	}
	if p.averages.arena != nil {
		if err := m.mirror(&p.averages.block); err != nil {
			return err
		}
		p.beginAverage()
		if err := m.push(&p.averages.block); err != nil {
			return err
		}
	}
	return p.upload(m)
}

// upload copies the weights and the state to the device and makes the bf16 copies of weights there.
func (p *parameters) upload(m *memory) error {
	if err := errors.Join(m.push(&p.weights.block), p.state.push(m)); err != nil || p.copies.arena == nil {
		return err
	}
	if err := m.mirror(&p.copies.block); err != nil {
		return err
	}
	all := allCores()
	for i := range p.params {
		if short, ok := p.arena.Parameter(ortgraphs.Copies, i); ok {
			all.Go(func() error {
				narrow(p.copies.host[short.Offset:short.Offset+short.Bytes()], p.weightsOf(i))
				return nil
			})
		}
	}
	all.Wait()
	return m.push(&p.copies.block)
}

// views returns a vector's parameters, in its types.
func (p *parameters) views(kind string, v vector) []checkpoint.Tensor {
	var out []checkpoint.Tensor
	for i, param := range p.params {
		at, ok := p.arena.Parameter(v.kind, i)
		if !ok {
			continue
		}
		name := param.Name
		if kind != "" {
			name = checkpoint.Moment(kind, param.Name)
		}
		out = append(out, checkpoint.Tensor{
			Name: name, DType: at.DType, Shape: param.Shape, Data: v.host[at.Offset : at.Offset+at.Bytes()],
			Frozen: !p.arena.Role(i).Trained,
		})
	}
	return out
}
