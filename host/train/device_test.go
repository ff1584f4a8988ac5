package train

import (
	"errors"
	"testing"

	"github.com/xtts-host/xtts-host/host/train/checkpoint"
)

// input is where a test writes the batch of slot 0.
func input(t testing.TB, m *Model) []byte {
	t.Helper()
	slot := &m.slots[0]
	if slot.host == nil {
		pinned, err := m.device.Context.AllocateHost(slot.size)
		if err != nil {
			t.Fatal(err)
		}
		m.add(pinned.Close)
		slot.host = pinned.Bytes()
	}
	return slot.host
}

// load moves it to the device.
func load(t testing.TB, m *Model, bucket int) {
	t.Helper()
	if err := m.Load(0, bucket, input(t, m)); err != nil {
		t.Fatal(err)
	}
}

func trainOn(t *testing.T, m *Model, bucket int, seed int64) Result {
	t.Helper()
	load(t, m, bucket)
	r, err := m.Train(0, 0, bucket, seed)
	if err != nil {
		t.Fatal(err)
	}
	return r
}

// step ends a window on the batch that was trained on last.
func step(t *testing.T, m *Model, o *Optimizer, lr float64) (gradNorm float64, updated bool) {
	t.Helper()
	if err := errors.Join(o.Step(lr), m.Drain()); err != nil {
		t.Fatal(err)
	}
	return o.Outcome()
}

func gradients(t *testing.T, m *Model) []checkpoint.Tensor {
	t.Helper()
	grads, err := m.Gradients()
	if err != nil {
		t.Fatal(err)
	}
	return grads
}
