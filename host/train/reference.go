package train

import (
	"fmt"
	"slices"

	"github.com/xtts-host/xtts-host/ortgraphs"
)

// reference is what the graph as exported computes of a synthetic batch.
type reference struct {
	batch     synthetic    // the kind of the batch
	scalars   []float32    // loss, weight and the player's metrics
	gradients []byte       // as in their arena
	sizes     []difference // of the gradients from themselves, by parameter
	state     []byte       // that the batch left
	values    []difference // of the state from itself, by tensor
}

// references are the batches of a proof, in the order in which they are tried: with another one, some graphs give
// finite results. The last one is of the first kind again, for the case that none does.
var references = []synthetic{{edges: true}, {edges: true, positive: true}, {positive: true}, {edges: true}}

// reference runs the graph as exported on the first batch for which its results are finite. It uses memory for
// gradients.
func (t *trial) reference(bucket int, gradients []byte) (*reference, error) {
	f, r := t.fusion, &reference{gradients: gradients}
	list := pieces(t.arena, len(t.params), pieceBytes)
	for _, with := range references {
		if err := t.fill(0, bucket, with); err != nil {
			return nil, err
		}
		*t.seeds[0].value = t.random.Int64()
		r.batch = with
		var err error
		if r.scalars, err = t.scalars(t.execution(f.exported, f.inputs[0][bucket], f.outputs)); err != nil {
			return nil, err
		}
		if err := read(&t.memory, &t.grads.block, func(at int, data []byte) error {
			copy(gradients[at:], data)
			return nil
		}); err != nil {
			return nil, err
		}
		if r.state, err = leftState(t); err != nil {
			return nil, err
		}
		r.values = t.state.between(r.state, r.state)
		found := make([]difference, len(list))
		comparePieces(found, list, 0, gradients, gradients)
		if r.sizes = byParameter(found, list, len(t.params)); r.finite() {
			break
		}
	}
	return r, nil
}

// finite reports whether loss, weight, gradients and state are. A metric may be infinite.
func (r *reference) finite() bool {
	for _, x := range r.scalars[:2] { // loss and weight
		if x-x != 0 {
			return false
		}
	}
	blind := func(d difference) bool { return d.blind > 0 }
	return !slices.ContainsFunc(r.sizes, blind) && !slices.ContainsFunc(r.values, blind)
}

// unproved names the results that show nothing of a kernel, because they are zero or not finite.
func (r *reference) unproved(m *trial) (names []string) {
	all := []string{"loss", "loss_weight"}
	for i, name := range m.names {
		if m.returns(i) {
			all = append(all, "metric."+name)
		}
	}
	for i, x := range r.scalars {
		if d := between([]float32{x}, []float32{x}); !d.proves() {
			names = append(names, all[i])
		}
	}
	for i, d := range r.sizes {
		if m.arena.Role(i).Trained && !d.proves() {
			names = append(names, fmt.Sprintf("grad.%s", m.params[i].Name))
		}
	}
	for i, d := range r.values {
		if !d.proves() {
			names = append(names, ortgraphs.StatePrefix+m.state.tensors[i].Name)
		}
	}
	return names
}
