package watch

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"math"
	"os"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"github.com/xtts-host/xtts-host/gpu"
	"github.com/xtts-host/xtts-host/gpu/gputest"
	"github.com/xtts-host/xtts-host/host/observe/event"
	"github.com/xtts-host/xtts-host/host/settings/place"
)

// The processes of a test. No process of the machine has such ids, so none is in their process groups.
const (
	host   = 1 << 30
	plugin = 1<<30 + 100 // and later ones
)

// rig is two GPUs, or a shared one, with a host and plugin processes, under a Watch. It runs in a bubble of synctest.
type rig struct {
	t         *testing.T
	inventory *gputest.Inventory
	*Watch
	step int64

	mu      sync.Mutex // guards the rest
	plugins []Process
	said    []string // lines, warnings and requests to processes
}

func (r *rig) say(text string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.said = append(r.said, text)
}

// memory keeps the lines of steps.
func (r *rig) memory(m *event.Memory) {
	if m.Step > 0 {
		r.say(m.String())
	}
}

// warnings is a slog.Handler.
type warnings struct {
	slog.Handler
	say func(string)
}

func (w warnings) Enabled(context.Context, slog.Level) bool { return true }
func (w warnings) Handle(_ context.Context, r slog.Record) error {
	w.say("warning: " + r.Message)
	return nil
}

// newRig lets the test change the roles. The cards have 16384 MB.
func newRig(t *testing.T, plugins int, change func(data, model *Role)) *rig {
	t.Helper()
	r := &rig{t: t, inventory: &gputest.Inventory{Cards: gputest.Cards(2, 16384*gpu.MB)}}
	for n := range plugins {
		name := fmt.Sprintf("plugin codes, process %d", n)
		r.plugins = append(r.plugins,
			Process{Name: name, PID: plugin + n, Relieve: func(why string) { r.say(name + " is replaced: " + why) }})
	}
	data := Role{Name: "Data", Place: place.Role{GPU: r.inventory.Cards[0].Device}, Processes: func() []Process {
		r.mu.Lock()
		defer r.mu.Unlock()
		return slices.Clone(r.plugins)
	}}
	model := Role{Name: "Model", Place: place.Role{GPU: r.inventory.Cards[1].Device}, Processes: func() []Process {
		return []Process{
			{Name: "training", PID: host, Share: 0, Relieve: func(why string) { r.say("arenas are shrunk: " + why) }},
		}
	}}
	if change != nil {
		change(&data, &model)
	}
	w, err := New(
		Config{Inventory: r.inventory, Roles: []Role{data, model}, Log: slog.New(warnings{say: r.say}), Say: r.memory})
	if err != nil {
		t.Fatal(err)
	}
	r.Watch = w
	t.Cleanup(func() { w.Close() })
	return r
}

// use sets the memory use of processes on a card, in MB.
func (r *rig) use(card int, mb map[int]int64) {
	r.inventory.Update(card, func(c *gpu.Card) {
		c.Processes, c.Used = nil, 618*gpu.MB // including the driver's reserve
		for pid, n := range mb {
			c.Processes = append(c.Processes, gpu.Process{PID: pid, Used: n * gpu.MB})
			c.Used += n * gpu.MB
		}
	})
}

// train runs so many steps of one second.
func (r *rig) train(steps int) {
	for range steps {
		time.Sleep(time.Second)
		r.step++
		r.Window(r.step, false)
	}
	synctest.Wait()
}

// expect compares the output since the last call.
func (r *rig) expect(want ...string) {
	r.t.Helper()
	r.mu.Lock()
	defer r.mu.Unlock()
	if !slices.Equal(r.said, want) {
		r.t.Errorf("step %d: said\n%s\nwant\n%s", r.step, strings.Join(r.said, "\n"), strings.Join(want, "\n"))
	}
	r.said = nil
}

func TestLines(t *testing.T) {
	const other = plugin + 50 // a process of someone else
	for _, tt := range []struct {
		name   string
		change func(data, model *Role)
		data   map[int]int64
		model  map[int]int64
		want   []string
	}{
		{"limits", func(d, m *Role) { d.Place.Limit, m.Place.Limit = 8192*gpu.MB, 16384*gpu.MB },
			map[int]int64{plugin: 5000, plugin + 1: 248, other: 900}, map[int]int64{host: 14336},
			[]string{"[Step 100] Data GPU 0: 5248/8192MB (64.1%)", "[Step 100] Model GPU 1: 14336/16384MB (87.5%)"}},
		{"no limits", nil, map[int]int64{plugin: 812}, map[int]int64{host: 9098, other: 2000},
			[]string{"[Step 100] Data GPU 0: 812/16384MB (5.0%)", "[Step 100] Model GPU 1: 9098/16384MB (55.5%)"}},
		{"over the limit", func(_, m *Role) { m.Place.Limit = 8192 * gpu.MB }, nil, map[int]int64{host: 8400},
			[]string{"[Step 100] Data GPU 0: 0/16384MB (0.0%)", "[Step 100] Model GPU 1: 8400/8192MB (102.5%)"}},
		{"one card", func(d, m *Role) { d.Place = m.Place }, nil, map[int]int64{host: 9098, plugin: 812},
			[]string{"[Step 100] Data GPU 1: 812/16384MB (5.0%)", "[Step 100] Model GPU 1: 9098/16384MB (55.5%)"}},
		{
			"no plugin on the card", func(d, _ *Role) { d.Processes = func() []Process { return nil } }, nil,
			map[int]int64{host: 9098},
			[]string{"[Step 100] Data GPU 0: 0/16384MB (0.0%)", "[Step 100] Model GPU 1: 9098/16384MB (55.5%)"},
		},
	} {
		t.Run(tt.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				r := newRig(t, 2, tt.change)
				r.use(0, tt.data)
				r.use(1, tt.model)
				r.Start()
				synctest.Wait()
				r.Window(99, false)
				r.Window(100, true)
				synctest.Wait()
				r.expect(tt.want...)
				r.Window(101, true) // written at the latest when the Watch ends
				r.Close()
				r.Close()
				r.mu.Lock()
				defer r.mu.Unlock()
				if len(r.said) != len(tt.want) || !strings.HasPrefix(r.said[0], "[Step 101] ") {
					t.Errorf("at the end: %q", r.said)
				}
				if _, err := r.inventory.Memory(r.inventory.Cards[0].UUID); !errors.Is(err, gpu.ErrClosed) {
					t.Errorf("the inventory after Close: %v", err)
				}
			})
		})
	}
}

// TestNothingToWatch: the Watch of a run on the CPU is nil.
func TestNothingToWatch(t *testing.T) {
	var w *Watch
	w.Start()
	w.Window(100, true)
	if err := w.Close(); err != nil || w.Figures() != nil {
		t.Errorf("%v, %v", err, w.Figures())
	}
}

func TestFigures(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t, 1, nil)
		busy := func(share float64) {
			r.inventory.Update(1, func(c *gpu.Card) { c.Utilization = &gpu.Utilization{GPU: share} })
		}
		r.inventory.Update(0, func(c *gpu.Card) { c.Utilization = nil }) // a part of a card
		r.use(1, map[int]int64{host: 4000})
		busy(0.8)
		r.Start()
		synctest.Wait()
		r.use(1, map[int]int64{host: 9000})
		busy(1)
		r.train(1)
		r.use(1, map[int]int64{host: 5000})
		r.train(2)
		r.Close()
		got := r.Figures()
		if len(got) != 2 || got[0].Role != "Data" || got[0].Samples != 0 || got[1].Role != "Model" ||
			got[1].Peak != 9000*gpu.MB || got[1].Samples != 4 || math.Abs(got[1].Busy-0.95) > 1e-9 ||
			math.Abs(got[1].BusyStd-0.0866025) > 1e-6 || got[1].Memory.N != 4 || got[1].Memory.Mean != 5750*gpu.MB {
			t.Errorf("%+v", got)
		}
	})
}

// TestPluginThatGrows: a plugin process that grows causes a warning, is replaced, and gets a new baseline.
func TestPluginThatGrows(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t, 2, nil)
		memory := map[int]int64{plugin: 500, plugin + 1: 500}
		set := func(pid int, mb int64) { memory[pid] = mb; r.use(0, memory) }
		r.use(1, map[int]int64{host: 9000})
		set(plugin, 500)
		r.Start()
		r.train(10)
		set(plugin, 1500) // the first batches
		set(plugin+1, 1400)
		r.train(25)
		r.expect()
		set(plugin+1, 1599)
		r.train(2)
		r.expect()
		set(plugin, 1501)
		r.train(5)
		r.expect("warning: Data GPU 0: memory has grown by 200 MB to 3100 MB, most of it in plugin codes, process 1; " +
			"at 500 MB of growth that process must release memory")
		set(plugin, 1700)
		set(plugin+1, 1700)
		r.train(5)
		r.expect("plugin codes, process 1 is replaced: it uses 1700 MB of GPU 0, 300 MB more than after its warm-up")
		// The new process allocates its memory, which is not growth.
		r.mu.Lock()
		r.plugins[1].PID = plugin + 2
		r.mu.Unlock()
		delete(memory, plugin+1)
		set(plugin+2, 500)
		r.train(5)
		set(plugin+2, 1400)
		r.train(40)
		r.expect() // the rest was reported before
		set(plugin+2, 1701)
		r.train(5)
		r.expect("plugin codes, process 1 is replaced: it uses 1701 MB of GPU 0, 301 MB more than after its warm-up")
	})
}

// TestTrainingThatGrows: training shrinks its arenas, and the rest is its new baseline.
func TestTrainingThatGrows(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t, 0, nil)
		set := func(mb int64) { r.use(1, map[int]int64{host: mb}) }
		set(9000)
		r.Start()
		r.train(10)
		set(9700)
		r.train(40)
		r.expect()
		set(10200)
		r.train(5)
		r.expect("arenas are shrunk: it uses 10200 MB of GPU 1, 500 MB more than after its warm-up")
		set(10100) // nothing else was reported
		r.train(40)
		r.expect()
		set(10650)
		r.train(5)
		r.expect("arenas are shrunk: it uses 10650 MB of GPU 1, 550 MB more than after its warm-up")
	})
}

// TestSamplesAreNoGrowth: what samples take before the first step is in the baseline, and hides no growth after it.
func TestSamplesAreNoGrowth(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t, 0, nil)
		set := func(mb int64) { r.use(1, map[int]int64{host: mb}) }
		set(9600) // of which 600 are a rehearsal of samples
		r.Start()
		r.train(140)
		r.expect()
		set(9800)
		r.train(2)
		r.expect("warning: Model GPU 1: memory has grown by 200 MB to 9800 MB, most of it in training; at 500 MB of " +
			"growth that process must release memory")
	})
}

// TestGivenBaseline: growth counts from the start.
func TestGivenBaseline(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t, 0, func(_, m *Role) { m.Baseline = 9000 * gpu.MB })
		r.use(1, map[int]int64{host: 9300})
		r.Start()
		r.train(4)
		r.expect("warning: Model GPU 1: memory has grown by 300 MB to 9300 MB, most of it in training; at 500 MB of " +
			"growth that process must release memory")
	})
}

// TestShare: a process that exceeds its share of the limit is named and replaced, even if the sum is below the limit.
func TestShare(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t, 2, func(d, _ *Role) { d.Place.Limit = 8192 * gpu.MB })
		for i := range r.plugins {
			r.plugins[i].Share = 4096 * gpu.MB
		}
		r.use(1, map[int]int64{host: 9000})
		r.use(0, map[int]int64{plugin: 4096, plugin + 1: 4097})
		r.Start()
		r.train(10)
		r.expect("plugin codes, process 1 is replaced: it uses 4097 MB of GPU 0, but may use 4096")
	})
}

// TestUnknownProcesses: in a container with its own process ids, the figure of the card replaces those of a role's
// processes.
func TestUnknownProcesses(t *testing.T) {
	for _, tt := range []struct {
		name string
		one  bool // card
		pid  int
		used int64 // in MB; -1 if the driver does not report it
		want []string
	}{
		{"other ids", false, 4, 3000, []string{
			"[Step 1] Data GPU 0: 3000/16384MB (18.3%)", "[Step 1] Model GPU 1: 3000/16384MB (18.3%)",
		}},
		{"no figures", false, host, -1, []string{
			"[Step 1] Data GPU 0: 3000/16384MB (18.3%)", "[Step 1] Model GPU 1: 3000/16384MB (18.3%)",
		}},
		{"one card", true, 4, 3000, []string{"[Step 1] Model GPU 1: 3000/16384MB (18.3%)"}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				r := newRig(t, 2, func(d, m *Role) {
					if tt.one {
						d.Place = m.Place
					}
				})
				for card := range 2 {
					r.inventory.Update(card, func(c *gpu.Card) {
						c.Used += 3000 * gpu.MB
						c.Processes = []gpu.Process{{PID: tt.pid, Used: max(-1, tt.used*gpu.MB)}}
					})
				}
				r.Start()
				r.train(1)
				r.Window(1, true)
				synctest.Wait()
				r.expect(append([]string{"warning: the driver does not report the GPU memory of our processes: the " +
					"growth of each card's memory use since the start is used instead (this happens in a container " +
					"with its own process ids; --pid=host avoids it)"},
					tt.want...)...)
				r.inventory.Update(1, func(c *gpu.Card) { c.Used += 600 * gpu.MB })
				r.train(40) // 3600 MB are in use after the warm-up
				r.inventory.Update(1, func(c *gpu.Card) { c.Used += 600 * gpu.MB })
				r.train(2)
				r.expect("arenas are shrunk: it uses 4200 MB of GPU 1, 600 MB more than after its warm-up")
			})
		})
	}
}

// TestLostCard: the loss is reported once, and no more lines are written.
func TestLostCard(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t, 0, nil)
		r.use(1, map[int]int64{host: 9000})
		r.Start()
		r.train(2)
		r.inventory.Close()
		r.train(3)
		r.Window(4, true)
		synctest.Wait()
		r.expect("warning: the memory of Data GPU 0 is not known: "+gpu.ErrClosed.Error(),
			"warning: the memory of Model GPU 1 is not known: "+gpu.ErrClosed.Error())
	})
}

func TestNewFails(t *testing.T) {
	i := &gputest.Inventory{Cards: gputest.Cards(1, gpu.MB)}
	if _, err := New(Config{
		Inventory: i, Roles: []Role{{Place: place.Role{GPU: gpu.Device{UUID: "GPU-none"}}}},
	}); err == nil {
		t.Error("a GPU that is not there is watched")
	}
	if _, err := i.Memory(i.Cards[0].UUID); !errors.Is(err, gpu.ErrClosed) {
		t.Errorf("the inventory after it: %v", err)
	}
}

// TestChildOfProcess: memory of a child process counts as that of its parent.
func TestChildOfProcess(t *testing.T) {
	group, err := syscall.Getpgid(0)
	if err != nil {
		t.Fatal(err)
	}
	r := reading{processes: []Process{{PID: group}}}
	if got := r.owner(os.Getpid()); got != group {
		t.Errorf("the test is of process %d, want %d", got, group)
	}
	if got := r.owner(host); got != 0 {
		t.Errorf("a process that is not there is of process %d", got)
	}
}

// TestFaults: a fault of one of the run's GPUs is reported once, with its meaning. A fault of another card is not.
func TestFaults(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t, 1, func(data, model *Role) { data.Place = model.Place })
		r.use(1, map[int]int64{host: 900})
		r.Start()
		r.train(1)
		r.inventory.Fault(gpu.Fault{UUID: r.inventory.Cards[0].Device.UUID, XID: 79})
		r.inventory.Fault(gpu.Fault{UUID: r.inventory.Cards[1].Device.UUID, XID: 31})
		r.inventory.Fault(gpu.Fault{XID: 79})
		r.train(1)
		name := r.inventory.Cards[1].Device.String()
		r.expect("warning: "+name+": XID 31: a kernel accessed memory that it does not own",
			"warning: "+name+": XID 79: the GPU has fallen off the bus; the card is at fault, not a program")
		if err := r.Close(); err != nil {
			t.Error(err)
		}
	})
}
