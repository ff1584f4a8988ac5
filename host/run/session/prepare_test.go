package session

import (
	"os"
	"strings"
	"testing"

	"github.com/xtts-host/xtts-host/gpu"
	"github.com/xtts-host/xtts-host/gpu/gputest"
	"github.com/xtts-host/xtts-host/host/observe/watch"
	"github.com/xtts-host/xtts-host/host/settings/place"
	"github.com/xtts-host/xtts-host/host/train/memory"
)

// TestLimitByDriver: the limit of the model GPU holds for all that the driver counts for the process. What CUDA and its
// libraries take is measured, whether it is more or less than expected.
func TestLimitByDriver(t *testing.T) {
	const graphs = 700 * gpu.MB
	plan := memory.Plan{Limit: 2048 * gpu.MB, Arenas: 400 * gpu.MB, Slots: 20 * gpu.MB}
	for _, tt := range []struct {
		name    string
		process int64 // by the driver, in MB; 0 if it does not report it
		refused string
	}{
		{"as expected", 1120 + 900, ""},
		{"more than expected", 1120 + 1000, "CUDA, its libraries and CUDA graphs, by the driver     1016 MB\n"},
		{"less than expected", 1120 + 300, ""},
		{"unknown", 0, ""},
	} {
		inventory := &gputest.Inventory{Cards: gputest.Cards(1, 24<<30)}
		model := place.Role{GPU: inventory.Cards[0].Device, Limit: int64(plan.Limit)}
		w, err := watch.New(watch.Config{Inventory: inventory, Roles: []watch.Role{{Name: watch.Model, Place: model,
			Processes: func() []watch.Process { return []watch.Process{{Name: "host", PID: os.Getpid()}} }}}})
		if err != nil {
			t.Fatal(err)
		}
		if tt.process > 0 {
			inventory.Update(0,
				func(c *gpu.Card) { c.Processes = []gpu.Process{{PID: os.Getpid(), Used: tt.process * gpu.MB}} })
		}
		use := (&Memory{watch: w}).measure(graphs)
		if use.Graphs != graphs || use.Process != int(tt.process*gpu.MB) {
			t.Errorf("%s: %d MB of graphs, %d MB of the process", tt.name, use.Graphs/gpu.MB, use.Process/gpu.MB)
		}
		err = plan.Check(use)
		if (err == nil) != (tt.refused == "") || err != nil && !strings.Contains(err.Error(), tt.refused) {
			t.Errorf("%s: %v, want %q", tt.name, err, tt.refused)
		}
		if err := w.Close(); err != nil {
			t.Error(err)
		}
	}
}
