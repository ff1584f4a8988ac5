package train

import (
	"bytes"
	"testing"

	"github.com/xtts-host/xtts-host/host/train/checkpoint"
	"github.com/xtts-host/xtts-host/ortgraphs"
)

// TestEvaluatedIsRead: each tensor that an evaluation reads can be read as it is now: the average where there is one,
// and the state.
func TestEvaluatedIsRead(t *testing.T) {
	policy := ortgraphs.Policy{Frozen: map[string]bool{}}
	for i, p := range open(t, pico).Manifest.Parameters {
		policy.Frozen[p.Name] = i%3 == 0
	}
	for name, device := range cpuAndGPU {
		t.Run(name, func(t *testing.T) {
			averaged, o := averaging(t, device(t), policy, 0.5)
			trainOn(t, averaged, 0, 3)
			step(t, averaged, o, plainSGD.LR)
			stateful, _, _ := stateful(t, device(t), 1)
			for _, m := range []*Model{averaged, stateful} {
				if err := m.Pull(); err != nil {
					t.Fatal(err)
				}
				want := map[string]checkpoint.Tensor{}
				for _, tensor := range append(m.Weights(), m.Average()...) {
					want[tensor.Name] = tensor
				}
				if len(want) != len(m.Evaluated.Tensors) {
					t.Errorf("%d tensors, want %d", len(m.Evaluated.Tensors), len(want))
				}
				for name, tensor := range want {
					info, ok := m.Evaluated.Tensor(name)
					got := make([]byte, info.Bytes)
					if err := m.Evaluated.Read(name, got); !ok || err != nil || !bytes.Equal(got, tensor.Data) {
						t.Errorf("%s: other values, %v", name, err)
					}
				}
			}
			err := averaged.Evaluated.Read("none", nil)
			if err == nil || err.Error() != `the model has no tensor "none"` {
				t.Error(err)
			}
		})
	}
}
