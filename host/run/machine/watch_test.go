package machine

import (
	"errors"
	"testing"

	"github.com/xtts-host/xtts-host/gpu"
	"github.com/xtts-host/xtts-host/host/run/plan"
	"github.com/xtts-host/xtts-host/host/settings/place"
)

func TestNothingIsWatchedOnTheCPU(t *testing.T) {
	m := &Machine{plan: new(plan.Plan)}
	err := m.openWatch(func() (gpu.Inventory, error) { return nil, errors.New("asked") }, nil)
	if err != nil || m.Watch != nil {
		t.Errorf("%v, %v", m.Watch, err)
	}
}

func TestWatchWithoutDriver(t *testing.T) {
	m := &Machine{plan: &plan.Plan{Placement: place.Placement{Model: place.Role{GPU: gpu.Device{UUID: "GPU-1"}}}}}
	err := m.openWatch(func() (gpu.Inventory, error) { return nil, errors.New("it is gone") }, nil)
	if err == nil || err.Error() != "it is gone" {
		t.Errorf("error %v", err)
	}
}
