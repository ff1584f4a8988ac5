package run

import (
	"bytes"
	"fmt"
	"log/slog"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/xtts-host/xtts-host/gpu"
	"github.com/xtts-host/xtts-host/gpu/gputest"
	"github.com/xtts-host/xtts-host/host/data/batch"
	"github.com/xtts-host/xtts-host/host/observe/event"
	"github.com/xtts-host/xtts-host/host/observe/report"
	"github.com/xtts-host/xtts-host/host/observe/runlog"
	"github.com/xtts-host/xtts-host/host/run/machine"
	"github.com/xtts-host/xtts-host/host/run/plan"
	"github.com/xtts-host/xtts-host/host/run/session"
	"github.com/xtts-host/xtts-host/host/settings/config"
	"github.com/xtts-host/xtts-host/host/settings/place"
)

// watched is a run before its first step, whose model counts as that of GPU 1 of two, and is on the CPU in truth. Its
// plugins, which are to see GPU 0, are not started.
func watched(t *testing.T, out *bytes.Buffer) (*machine.Machine, *session.Session, *gputest.Inventory) {
	t.Helper()
	set := config.New()
	if err := set.Parse(
		[]string{"--plugins", plugins, "--graph", pico, "--train-data", clips, "--batch-size", "4"},
		[]string{"XTTS_HOST_DEVICE=cpu"},
	); err != nil {
		t.Fatal(err)
	}
	p, err := plan.New(t.Context(), set, nil, nil)
	if err != nil {
		t.Fatal(err)
	}
	log := slog.New(runlog.NewWarnings(func(w *event.Warning) { fmt.Fprintln(out, w) }))
	s := session.New(p, batch.Overlapped, nil, log)
	t.Cleanup(func() { s.Close() })
	if err := s.Open(nil); err != nil {
		t.Fatal(err)
	}
	inventory := &gputest.Inventory{Cards: gputest.Cards(2, 16384*gpu.MB)}
	p.Placement = place.Placement{
		Data:  place.Role{GPU: inventory.Cards[0].Device, Limit: 8192 * gpu.MB},
		Model: place.Role{GPU: inventory.Cards[1].Device},
	}
	m, err := machine.Open(t.Context(), machine.Config{
		Plan: p, Log: log, Inventory: func() (gpu.Inventory, error) { return inventory, nil },
		Memory: func(m *event.Memory) { fmt.Fprintln(out, m) },
	})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { m.Close() })
	return m, s, inventory
}

// TestWatch follows the process of the test as the one that trains.
func TestWatch(t *testing.T) {
	var out bytes.Buffer
	m, s, inventory := watched(t, &out)
	inventory.Update(1, func(c *gpu.Card) {
		c.Processes = []gpu.Process{{PID: os.Getpid(), Used: 14336 * gpu.MB}}
		c.Utilization = &gpu.Utilization{GPU: 0.9}
	})
	m.Watch.Start()
	m.Watch.Window(100, true)
	if err := m.Watch.Close(); err != nil {
		t.Fatal(err)
	}
	if want := "[Step 100] Data GPU 0: 0/8192MB (0.0%)\n" +
		"[Step 100] Model GPU 1: 14336/16384MB (87.5%)\n"; out.String() != want {
		t.Errorf("%q, want %q", &out, want)
	}
	out.Reset()

	for range 2 {
		if reason := m.Grown(); reason != "" { // without being asked to, training does nothing
			t.Fatal(reason)
		}
		m.Training()[0].Relieve("it uses 9800 MB of GPU 1")
		if err := s.Relieve(m.Grown()); err != nil {
			t.Fatal(err)
		}
	}
	if want := strings.Repeat(
		"warning: training releases unused arena memory: it uses 9800 MB of GPU 1\n", 2,
	); out.String() != want {
		t.Errorf("%q, want %q", &out, want)
	}

	memory, utilization, err := s.Usage(time.Hour, m.Watch.Figures())
	if err != nil || len(memory) != 3 || len(utilization) != 3 {
		t.Fatalf("%+v, %+v, %v", memory, utilization, err)
	}
	weights, grads, slots := s.Model.Bytes()
	arenas := arenaBytes(t, s)
	want := []report.Memory{
		{Device: inventory.Cards[0].String(), Role: "data", LimitBytes: 8192 * gpu.MB},
		{
			Device: inventory.Cards[1].String(), Role: "model",
			ArenaPeakBytes:   int64(weights + grads + slots + s.Optimizers.Bytes() + arenas),
			ProcessPeakBytes: 14336 * gpu.MB, MeanBytes: 14336 * gpu.MB,
		},
	}
	if !slices.Equal(memory[1:], want) || memory[0].Device != "cpu" || memory[0].Role != "data" ||
		memory[0].ArenaPeakBytes != 0 {
		t.Errorf("got  %+v\nwant %+v", memory, want)
	}
	u := utilization[2]
	if u.Role != "model" || u.Mean != 0.9 || u.Std != 0 || u.Samples != 1 || utilization[0].Samples != 0 {
		t.Errorf("%+v", utilization)
	}
}

// arenaBytes is what ONNX Runtime's arenas hold.
func arenaBytes(t *testing.T, s *session.Session) int {
	t.Helper()
	model, err := s.Model.ArenaBytes()
	if err != nil {
		t.Fatal(err)
	}
	optimizer, err := s.Optimizers.ArenaBytes()
	if err != nil {
		t.Fatal(err)
	}
	return model + optimizer
}
