package train

import (
	"bytes"
	"errors"

	"github.com/xtts-host/xtts-host/ortgraphs"
	"github.com/xtts-host/xtts-host/ortgraphs/ort"
)

// varyState adds noise to state whose values are all the same, as varyWeights does to weights. restore takes it away.
func varyState(t *trial) (restore func() error, err error) {
	s := &t.state
	restore = func() error { return nil }
	if len(s.tensors) == 0 {
		return restore, nil
	}
	if err := t.mirror(&s.now); err != nil {
		return nil, err
	}
	copy(s.now.host, s.kept.host)
	for _, at := range s.places {
		if values := stateValues(s.now.host, at); constant(values) {
			for i := range values {
				values[i] += float32(0.02 * t.random.NormFloat64())
			}
		}
	}
	return func() error { return copyBlock(&t.memory, &s.now, &s.kept) }, t.push(&s.now)
}

func stateValues(block []byte, at ortgraphs.Span) []float32 {
	return ort.View[float32](block[at.Offset : at.Offset+at.Bytes()])
}

// leftState returns a copy of the state that the last batch left.
func leftState(t *trial) ([]byte, error) {
	if len(t.state.tensors) == 0 {
		return nil, nil
	}
	err := t.pull(&t.state.next)
	return bytes.Clone(t.state.next.host), err
}

// clearState forgets what the last batch left: a graph that leaves some out must not pass.
func clearState(t *trial) error {
	if len(t.state.tensors) == 0 {
		return nil
	}
	return t.device.Compute.Clear(t.state.next.dev, 0, t.state.next.size)
}

// compareState compares the state that the last batch left with that of want, by tensor.
func compareState(t *trial, want []byte) ([]difference, error) {
	got, err := leftState(t)
	if err != nil {
		return nil, err
	}
	return t.state.between(got, want), nil
}

// between compares two blocks, by tensor.
func (s *state) between(a, b []byte) (list []difference) {
	for _, at := range s.places {
		list = append(list, between(stateValues(a, at), stateValues(b, at)))
	}
	return list
}

// sampleState queues copies of the beginnings of what the last batch left to stage.
func sampleState(t *trial, stage []byte) (samples []sample, err error) {
	for _, at := range t.state.places {
		n := min(sampledBytes, at.Bytes())
		err = errors.Join(err, t.device.Compute.Download(stage[:n], t.state.next.dev, at.Offset))
		samples, stage = append(samples, sample{stage[:n], at.DType}), stage[sampledBytes:]
	}
	return samples, err
}
