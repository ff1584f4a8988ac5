package session

import (
	"testing"

	"github.com/xtts-host/xtts-host/gpu"
	"github.com/xtts-host/xtts-host/host/data/batch"
	"github.com/xtts-host/xtts-host/host/run/plan"
	"github.com/xtts-host/xtts-host/host/settings/place"
)

// TestNoSearch: benchmarks, and models that share a GPU with plugins without a limit, are refused without trials.
func TestNoSearch(t *testing.T) {
	one := place.Role{GPU: gpu.Device{UUID: "GPU-1"}}
	two, capped := place.Role{GPU: gpu.Device{UUID: "GPU-2"}}, one
	capped.Limit = 1 << 30
	for _, tt := range []struct {
		data, model place.Role
		mode        batch.InputMode
		want        bool
	}{
		{one, two, batch.Overlapped, true}, {one, two, batch.ComputeOnly, false}, {one, two, batch.NoCheckpoint, false},
		{one, one, batch.Overlapped, false}, {one, capped, batch.Overlapped, true},
	} {
		p := &plan.Plan{Placement: place.Placement{Data: tt.data, Model: tt.model}}
		if got := searched(p, tt.mode); got != tt.want {
			t.Errorf("%+v: %t", tt, got)
		}
	}
}
