package train

import (
	"errors"

	"github.com/xtts-host/xtts-host/ortgraphs"
	"github.com/xtts-host/xtts-host/ortgraphs/ort"
	"github.com/xtts-host/xtts-host/shared/manifest"
)

// stateMean gives the ranks one state: after each micro-batch the mean of what they left, each weighted by its rows.
//
// A mean over rows, such as a running mean of batch norm, is then that of the rows of all ranks. The ranks add up how
// far they are from rank 0, not the values: what all of them left with the same bits, such as a counter or the vectors
// of spectral norm, stays as it is.
type stateMean struct {
	lead            block // what rank 0 left
	deviation, mean execution
	broadcast, sum  []Part
}

// Names of graphs that are made here, not exported.
const (
	deviationGraph = "deviation"
	stateMeanGraph = "mean of ranks"
)

// bind makes the mean of the player's state, if it has any.
func (s *stateMean) bind(o *Optimizer) {
	state, share := &o.player.state, &o.window.share
	if len(state.tensors) == 0 {
		return
	}
	s.lead = o.block(state.next.size)
	all := ortgraphs.Span{DType: manifest.F32, Elements: s.lead.size / manifest.F32.Size()}
	flat := func(b block) *ort.Tensor { return o.tensor(b, 0, manifest.F32, all.Elements) }
	own, lead, rows := flat(state.next), flat(s.lead), share.rows.tensor
	s.deviation = o.execution(share.graphs.session(graph{name: deviationGraph}),
		tensors{"own": own, "lead": lead, "rows": rows}, tensors{"deviation": own})
	s.mean = o.execution(share.graphs.session(graph{name: stateMeanGraph}),
		tensors{"deviation": own, "lead": lead, "rows": rows}, tensors{"mean": own})
	if o.err == nil {
		s.broadcast, s.sum = []Part{s.lead.part(all)}, []Part{state.next.part(all), share.in.one(share.rows)}
	}
}

// average queues the replacement of what the last micro-batch left by the mean over the ranks.
func (s *stateMean) average(o *Optimizer) error {
	state, share := &o.player.state, &o.window.share
	if len(state.tensors) == 0 {
		return nil
	}
	*share.rows.value = float32(o.model.rows)
	ranks := share.ranks
	return errors.Join(
		o.send(share.in), copyBlock(&o.memory, &s.lead, &state.next), ranks.Broadcast(s.broadcast),
		o.run(s.deviation), ranks.Sum(o.device.Compute, s.sum),
		o.run(s.mean),
	)
}

// rehearsals lists what a micro-batch may run.
func (s *stateMean) rehearsals(o *Optimizer) []rehearsal {
	next := &o.player.state.next
	if s.lead.size == 0 {
		return nil
	}
	written := []region{{next.dev, 0, next.size, manifest.F32}}
	return []rehearsal{{&s.deviation, "deviation of the state", written}, {&s.mean, "mean of the state", written}}
}
