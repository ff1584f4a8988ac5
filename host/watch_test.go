package host

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/xtts-host/xtts-host/gpu"
	"github.com/xtts-host/xtts-host/gpu/gputest"
	"github.com/xtts-host/xtts-host/host/config"
	"github.com/xtts-host/xtts-host/host/event"
	"github.com/xtts-host/xtts-host/host/place"
	"github.com/xtts-host/xtts-host/host/record"
	"github.com/xtts-host/xtts-host/host/report"
)

// watched is a run before its first step, whose model counts as that of GPU 1 of two, and is on the CPU in truth. Its plugins, which are
// to see GPU 0, are not started.
func watched(t *testing.T, out *bytes.Buffer) (*run, *gputest.Inventory) {
	t.Helper()
	set := config.New()
	if err := set.Parse([]string{"--plugins", plugins, "--graph", pico, "--train-data", clips, "--batch-size", "4"}, []string{"XTTS_HOST_DEVICE=cpu"}); err != nil {
		t.Fatal(err)
	}
	j := &job{set: set, cfg: &set.Config, log: slog.New(record.Warnings(func(w *event.Warning) { fmt.Fprintln(out, w) }))}
	t.Cleanup(func() { j.close(context.Background()) })
	if err := j.plan(t.Context()); err != nil {
		t.Fatal(err)
	}
	if err := j.openGraphs(); err != nil {
		t.Fatal(err)
	}
	inventory := &gputest.Inventory{Cards: gputest.Cards(2, 16384*gpu.MB)}
	j.placement = place.Placement{
		Data:  place.Role{GPU: inventory.Cards[0].Device, Limit: 8192 * gpu.MB},
		Model: place.Role{GPU: inventory.Cards[1].Device},
	}
	if err := j.openWatch(func() (gpu.Inventory, error) { return inventory, nil }, func(m *event.Memory) { fmt.Fprintln(out, m) }); err != nil {
		t.Fatal(err)
	}
	return &run{job: j}, inventory
}

// TestWatch follows the process of the test as the one that trains.
func TestWatch(t *testing.T) {
	var out bytes.Buffer
	r, inventory := watched(t, &out)
	inventory.Update(1, func(c *gpu.Card) {
		c.Processes = []gpu.Process{{PID: os.Getpid(), Used: 14336 * gpu.MB}}
		c.Utilization = &gpu.Utilization{GPU: 0.9}
	})
	r.watch.Start()
	r.watch.Window(100, true)
	if err := r.watch.Close(); err != nil {
		t.Fatal(err)
	}
	if want := "[Step 100] Data GPU 0: 0/8192MB (0.0%)\n[Step 100] Model GPU 1: 14336/16384MB (87.5%)\n"; out.String() != want {
		t.Errorf("%q, want %q", &out, want)
	}
	out.Reset()

	for range 2 { // without being asked to, it does nothing
		if err := r.relieve(); err != nil {
			t.Fatal(err)
		}
		r.training()[0].Relieve("it uses 9800 MB of GPU 1")
		if err := r.relieve(); err != nil {
			t.Fatal(err)
		}
	}
	if want := strings.Repeat("warning: training gives back what its arenas do not need: it uses 9800 MB of GPU 1\n", 2); out.String() != want {
		t.Errorf("%q, want %q", &out, want)
	}

	r.arenas = 7 << 30 // what ONNX Runtime had at most
	memory, utilization, err := r.usage(time.Hour)
	if err != nil || len(memory) != 3 || len(utilization) != 3 {
		t.Fatalf("%+v, %+v, %v", memory, utilization, err)
	}
	weights, grads, slots := r.model.Bytes()
	want := []report.Memory{
		{Device: inventory.Cards[0].String(), Role: "data", LimitBytes: 8192 * gpu.MB},
		{Device: inventory.Cards[1].String(), Role: "model", ArenaPeakBytes: int64(weights + grads + slots + r.optimizer.Bytes() + 7<<30), ProcessPeakBytes: 14336 * gpu.MB},
	}
	if !slices.Equal(memory[1:], want) || memory[0].Device != "cpu" || memory[0].Role != "data" || memory[0].ArenaPeakBytes != 0 {
		t.Errorf("got  %+v\nwant %+v", memory, want)
	}
	if u := utilization[2]; u.Role != "model" || u.Mean != 0.9 || u.Std != 0 || u.Samples != 1 || utilization[0].Samples != 0 {
		t.Errorf("%+v", utilization)
	}
}

func TestNothingIsWatchedOnTheCPU(t *testing.T) {
	j := &job{}
	if err := j.openWatch(func() (gpu.Inventory, error) { return nil, errors.New("asked") }, nil); err != nil || j.watch != nil {
		t.Errorf("%v, %v", j.watch, err)
	}
}

func TestWatchWithoutDriver(t *testing.T) {
	j := &job{placement: place.Placement{Model: place.Role{GPU: gpu.Device{UUID: "GPU-1"}}}}
	if err := j.openWatch(func() (gpu.Inventory, error) { return nil, errors.New("it is gone") }, nil); err == nil || err.Error() != "it is gone" {
		t.Errorf("error %v", err)
	}
}
