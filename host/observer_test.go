package host

import (
	"errors"
	"io"
	"os"
	"path/filepath"
	"testing"

	"github.com/xtts-host/xtts-host/host/checkpoint"
	"github.com/xtts-host/xtts-host/host/config"
	"github.com/xtts-host/xtts-host/host/event"
	"github.com/xtts-host/xtts-host/host/loop"
	"github.com/xtts-host/xtts-host/host/plan"
	"github.com/xtts-host/xtts-host/host/report"
	"github.com/xtts-host/xtts-host/host/world"
)

// TestSaveNeedsDurableMetrics fails at lines that cannot be made durable: no checkpoint is taken, and none is tried
// again at the end.
func TestSaveNeedsDurableMetrics(t *testing.T) {
	metrics, err := report.OpenMetrics(filepath.Join(t.TempDir(), report.MetricsFile), nil, 0)
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	r := &run{outputs: &outputs{bus: event.NewBus(), console: Console{Out: io.Discard}}, plan: &plan.Plan{Config: new(config.Config), World: world.World{Size: 1}}, loop: new(loop.Loop), dir: dir, store: checkpoint.NewStore(dir)}
	defer r.bus.Close()
	r.bus.Require(report.MetricsFile, metrics)
	if err := errors.Join(metrics.Close(), r.bus.Publish(&event.Step{Step: 1})); err != nil { // to a closed file
		t.Fatal(err)
	}
	s := newSaver(r, nil, nil)
	if err := s.save(event.Periodic); !errors.Is(err, os.ErrClosed) || !errors.Is(r.bus.Flush(), err) {
		t.Errorf("error %v, and the bus has %v", err, r.bus.Flush())
	}
	if _, err := os.Stat(filepath.Join(dir, checkpoint.Folder)); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("a checkpoint was begun: %v", err)
	}
}
