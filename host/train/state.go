package train

import (
	"errors"

	"github.com/xtts-host/xtts-host/host/train/checkpoint"
	"github.com/xtts-host/xtts-host/ortgraphs"
	"github.com/xtts-host/xtts-host/ortgraphs/ort"
	"github.com/xtts-host/xtts-host/shared/manifest"
)

// state is what the training of a player changes without a gradient, such as running statistics. The graphs of the
// other players read what is kept.
//
// It has three blocks of one layout. A batch begins with what the batch before it left, also within a window. kept
// changes once per window, with the weights: it is what is saved and evaluated, although a GPU may be computing the
// next batch, or a window may be abandoned after some of its batches. No graph writes what it reads, so a trial run
// changes nothing.
type state struct {
	tensors []manifest.State
	places  []ortgraphs.Span

	kept block // after the last window
	now  block // what the next batch begins with
	next block // what the last batch left
}

// allocate allocates the blocks, and returns the tensors of training by name. It adds those of an evaluation to kept,
// and those that training writes to next.
func (s *state) allocate(m *memory, list []manifest.State, kept, next tensors) (now tensors) {
	now = tensors{}
	if len(list) == 0 {
		return now
	}
	places, bytes := ortgraphs.PlaceState(list)
	s.tensors, s.places = list, places
	s.kept, s.now, s.next = m.block(bytes), m.block(bytes), m.block(bytes)
	for i, t := range list {
		kept[t.Name] = m.view(s.kept, s.places[i], t.Shape...)
		now[t.Name] = m.view(s.now, s.places[i], t.Shape...)
		next[ortgraphs.StatePrefix+t.Name] = m.view(s.next, s.places[i], t.Shape...)
	}
	return now
}

// pull and push move what is kept from and to the device. A push is the beginning of the next batch, too.
func (s *state) pull(m *memory) error {
	if len(s.tensors) == 0 {
		return nil
	}
	return m.pull(&s.kept)
}

func (s *state) push(m *memory) error {
	if len(s.tensors) == 0 {
		return nil
	}
	return errors.Join(m.push(&s.kept), copyBlock(m, &s.now, &s.kept))
}

// mirror allocates Go's side of what is kept.
func (s *state) mirror(m *memory) error {
	if len(s.tensors) == 0 {
		return nil
	}
	return m.mirror(&s.kept)
}

// views returns what is kept as tensors.
func (s *state) views() (out []checkpoint.Tensor) {
	for i, t := range s.tensors {
		at := s.places[i]
		out = append(out, checkpoint.Tensor{
			Name: t.Name, DType: at.DType, Shape: t.Shape, Data: s.kept.host[at.Offset : at.Offset+at.Bytes()],
		})
	}
	return out
}

// advance queues that the next batch begins with what the last one left.
func (s *state) advance(m *memory) error {
	if len(s.tensors) == 0 {
		return nil
	}
	return copyBlock(m, &s.now, &s.next)
}

// stateUpdate ends a window for the model's state.
type stateUpdate struct {
	choose execution // kept becomes next, unless the window is skipped
}

// chooseGraph is the name of a graph that is made here, not exported.
const chooseGraph = "choose"

// bind makes what ends a window, if the model has state.
func (u *stateUpdate) bind(o *Optimizer, g *graphs) {
	s := &o.player.state
	if len(s.tensors) == 0 {
		return
	}
	integers := func(b block) *ort.Tensor { return o.tensor(b, 0, manifest.I32, b.size/manifest.I32.Size()) }
	kept := integers(s.kept)
	u.choose = o.execution(g.session(graph{name: chooseGraph}),
		tensors{"flag": o.finite.tensor, "new": integers(s.next), "old": kept}, tensors{"chosen": kept})
}

// end queues the end of a window, after its norm: a skipped window leaves the state that was before it.
func (u *stateUpdate) end(o *Optimizer) error {
	s := &o.player.state
	if len(s.tensors) == 0 {
		return nil
	}
	return errors.Join(o.run(u.choose), copyBlock(&o.memory, &s.now, &s.kept))
}

// rehearsals lists what a step may run.
func (u *stateUpdate) rehearsals(o *Optimizer) []rehearsal {
	s := &o.player.state
	if len(s.tensors) == 0 {
		return nil
	}
	return []rehearsal{{&u.choose, "state", []region{{s.kept.dev, 0, s.kept.size, manifest.F32}}}}
}

// bytes returns the memory of the blocks.
func (s *state) bytes() int { return s.kept.size + s.now.size + s.next.size }

// copyBlock queues the copy of a block to one of the same size.
func copyBlock(m *memory, to, from *block) error {
	if m.device.onGPU() {
		return m.device.Compute.Copy(to.dev, 0, from.dev, 0, from.size)
	}
	copy(to.host, from.host)
	return nil
}
