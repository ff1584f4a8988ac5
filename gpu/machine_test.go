package gpu_test

import (
	"errors"
	"testing"

	"github.com/xtts-host/xtts-host/gpu"
	"github.com/xtts-host/xtts-host/gpu/gputest"
)

func TestLookFails(t *testing.T) {
	i := &gputest.Inventory{Cards: gputest.Cards(1, 1<<30)}
	i.Cards[0].Utilization = nil // which is not a failure
	if m, err := gpu.Look(i); err != nil || m.Cards[0].Utilization != nil {
		t.Errorf("%+v, %v", m, err)
	}
	i.Close()
	if _, err := gpu.Look(i); !errors.Is(err, gpu.ErrClosed) {
		t.Errorf("error %v", err)
	}
}
