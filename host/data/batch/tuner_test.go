package batch

import (
	"fmt"
	"log/slog"
	"slices"
	"testing"
	"time"

	"github.com/xtts-host/xtts-host/host/observe/event"
	"github.com/xtts-host/xtts-host/host/stages/adapt"
	"github.com/xtts-host/xtts-host/host/stages/catalog"
	"github.com/xtts-host/xtts-host/host/stages/pipeline"
	"github.com/xtts-host/xtts-host/host/stages/supervise"
	"github.com/xtts-host/xtts-host/shared/manifest"
	"github.com/xtts-host/xtts-host/shared/ring"
)

// sizedPool is a plugin whose processes start and end when the test says so. It counts them as supervise.Pool does.
type sizedPool struct {
	fakePool     // its workers include those that start or end
	running  int // processes accept calls
	asked    []int
	cpu      time.Duration
}

func (p *sizedPool) Resize(n int) {
	p.asked = append(p.asked, n)
	p.workers, p.running = max(p.workers, n), min(p.running, n)
}

func (p *sizedPool) Running() []supervise.Running { return make([]supervise.Running, p.running) }

func (p *sizedPool) Stats() supervise.Stats { return supervise.Stats{CPU: p.cpu} }

// started has all processes accept calls.
func (p *sizedPool) started() { p.running = p.workers }

// gone has those end that do not accept calls: they have ended, or could not be started.
func (p *sizedPool) gone() { p.workers = p.running }

// tunerTest is a tuner of two decoders and the plugins uneven and other, and what it has published.
type tunerTest struct {
	*tuner
	pipe   *pipeline.Pipeline
	uneven *sizedPool
	said   []string
}

func newTunerTest(t *testing.T, change func(*Config)) *tunerTest {
	t.Helper()
	r := fakeCommon(t, 8)
	test := &tunerTest{uneven: &sizedPool{fakePool: fakePool{workers: 1}, running: 1}}
	stages := &catalog.Resolved{Instances: []catalog.Instance{{Name: "a"}, {Name: "b", Plugin: 1}}}
	for _, id := range []string{"uneven", "other"} {
		stages.Plugins = append(stages.Plugins, catalog.Entry{Manifest: &manifest.Plugin{ID: id}})
	}
	c := Config{
		Ring: r.ring, Depths: Depths{Ring: 8, Device: 3, Workers: 4}, Stages: stages,
		Pools: []supervise.Processes{test.uneven, &fakePool{workers: 1}}, Log: slog.New(slog.DiscardHandler),
		Adaptive: &Adaptive{
			Slots: 2, Decoders: 2, Workers: 4, Fixed: []bool{false, false}, Changed: func(e *event.Adapted) {
				test.said = append(test.said, fmt.Sprintf("%d: %s %d %d", e.Step, e.What, e.From, e.To))
			},
		},
	}
	if change != nil {
		change(&c)
	}
	test.tuner = newTuner(&c, r.guards)
	var err error
	if test.pipe, err = pipeline.New(pipeline.Config{
		Source: &Source{}, Decoder: &decoder{}, Device: &copier{}, RingSlots: 8, DeviceSlots: 3, Workers: 4,
		Adapt: test.adapt(),
	}); err != nil {
		t.Fatal(err)
	}
	return test
}

// decideAt lets the tuner decide at a step of a pipeline that takes 60 ms for a batch, with training of 20 ms.
func (t *tunerTest) decideAt(step int64) {
	ms := func(v float64) adapt.Times { return adapt.Times{N: 64, Mean: v / 1000} }
	const one = 1e6
	t.decide(t.pipe, &pipeline.Batch{Step: step - 1},
		adapt.Measured{Ready: ms(60), Train: ms(20), Work: 0.070, Queue: 0.2},
		[]pipeline.Phase{{Busy: 9 * one}, {Busy: 60 * one, Queue: 200 * one}, {Busy: one}, {}})
}

// TestTunerMovesWorkers: at the largest depth, one decoder goes, a process comes, and nothing is decided before it
// accepts calls.
func TestTunerMovesWorkers(t *testing.T) {
	test := newTunerTest(t, nil)
	for _, step := range []int64{1, 5, 7} {
		test.decideAt(step)
	}
	for _, step := range []int64{9, 13, 17, 25} { // it is still being started
		if test.decideAt(step); !test.moving || len(test.said) != 4 {
			t.Fatalf("at step %d: %q, moving %t", step, test.said, test.moving)
		}
	}
	test.uneven.started()
	test.decideAt(33) // the first decision with it; its times are not yet of it alone
	want := []string{"1: depth 2 4", "5: depth 4 8", "7: decode 2 1", "7: uneven 1 2"}
	if !slices.Equal(test.said, want) || !slices.Equal(test.uneven.asked, []int{2}) || test.moving {
		t.Errorf("%q, asked for %v, moving %t; want %q", test.said, test.uneven.asked, test.moving, want)
	}
	test.decideAt(49) // no faster: back
	if want := []string{"49: uneven 2 1", "49: decode 1 2"}; !slices.Equal(test.said[4:], want) || !test.moving {
		t.Errorf("%q, want %q", test.said[4:], want)
	}
	test.decideAt(65) // two processes, of which one has not ended
	if !test.moving {
		t.Error("a process that ends is not waited for")
	}
	test.uneven.gone()
	for step := range int64(9) {
		test.decideAt(81 + 16*step)
	}
	if len(test.said) != 6 {
		t.Errorf("%q", test.said)
	}
}

// TestTunerLeavesBusyCores: a run that takes all cores gets no more processes.
func TestTunerLeavesBusyCores(t *testing.T) {
	test := newTunerTest(t, nil)
	for step := range int64(9) {
		test.uneven.cpu += time.Hour
		test.decideAt(1 + 16*step)
	}
	if want := []string{"1: depth 2 4", "17: depth 4 8"}; !slices.Equal(test.said, want) {
		t.Errorf("%q, want %q", test.said, want)
	}
}

// TestTunerWithoutSuccess: a process that cannot be started is not asked for again, even if that shows late.
func TestTunerWithoutSuccess(t *testing.T) {
	test := newTunerTest(t, nil)
	for step := range int64(9) {
		if test.decideAt(17 + 16*step); step == 4 {
			test.uneven.gone()
		}
	}
	if !slices.Equal(test.uneven.asked, []int{2}) || test.groups[1].Workers != 1 {
		t.Errorf("asked for %v, has %+v", test.uneven.asked, test.groups)
	}
}

// TestTunerLeavesFixedNumbers: processes that have a share of a GPU, or that belong to another rank.
func TestTunerLeavesFixedNumbers(t *testing.T) {
	for name, change := range map[string]func(*Config){
		"GPU":        func(c *Config) { c.Adaptive.Fixed[0] = true },
		"other rank": func(c *Config) { c.Pools[0] = &fakePool{workers: 1} },
	} {
		test := newTunerTest(t, change)
		for _, step := range []int64{17, 33, 49, 65} {
			test.decideAt(step)
		}
		if want := []string{"17: depth 2 4", "33: depth 4 8"}; !slices.Equal(test.said, want) {
			t.Errorf("%s: %q, want %q", name, test.said, want)
		}
	}
}

// TestTunerMemory: a slot that is shut gives its memory back, and its guards are not looked at. Without memory, the
// depth is no larger than what there is.
func TestTunerMemory(t *testing.T) {
	test := newTunerTest(t, func(c *Config) { c.Adaptive.Returns = true })
	test.guards.begin(&pipeline.Batch{Slot: 5})
	test.ring.Slot(5)[0] = 7
	if !test.open(5) || test.ring.Slot(5)[0] != 7 {
		t.Error("a slot is not open")
	}
	test.shut(5)
	if n, err := test.guards.damaged(); n != 0 || test.ring.Slot(5)[0] != 0 {
		t.Errorf("after it is shut, slot 5 holds %d, and %d slots are damaged: %v", test.ring.Slot(5)[0], n, err)
	}
	part := newTunerTest(t, func(c *Config) { c.Adaptive.Returns, c.Ring = true, (*ring.Ring).Part(c.Ring, 0, 8) })
	if !part.open(1) || part.open(2) { // the first two are reserved, and a part reserves nothing
		t.Error("memory that there is not")
	}
	part.decideAt(17)
	if part.depth.Max != 2 || slices.Contains(part.said, "17: depth 2 3") {
		t.Errorf("at most %d slots: %q", part.depth.Max, part.said)
	}
}
