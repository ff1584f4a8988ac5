package batch

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"log/slog"
	"math"
	"slices"
	"strings"
	"testing"

	"github.com/xtts-host/xtts-host/host/data/dataset"
	"github.com/xtts-host/xtts-host/host/stages/catalog"
	"github.com/xtts-host/xtts-host/host/stages/pipeline"
	"github.com/xtts-host/xtts-host/host/stages/supervise"
	"github.com/xtts-host/xtts-host/shared/manifest"
	"github.com/xtts-host/xtts-host/shared/ring"
)

// fakePool is a plugin whose calls do what call says. It notes who is kicked.
type fakePool struct {
	call    func(slot int) (supervise.Result, error)
	workers int
	kicked  []string
	clips   []string // of the last request
}

func (p *fakePool) Call(_ context.Context, req supervise.Request) (supervise.Result, error) {
	p.clips = slices.Clone(req.ClipIDs)
	return p.call(req.Slot)
}
func (p *fakePool) Kick(id supervise.ProcessID, reason string) {
	p.kicked = append(p.kicked, fmt.Sprint(id, " ", reason))
}
func (p *fakePool) Workers() int          { return p.workers }
func (p *fakePool) KickAll(reason string) { p.kicked = append(p.kicked, "all "+reason) }

// fakeCommon has slots for batches of empty rows, and no stage's tensors in them.
func fakeCommon(t *testing.T, slots int) *common {
	t.Helper()
	layout := ring.NewLayout([]ring.Tensor{{Name: "mel", DType: manifest.F32, Shape: []int{3, 5, 2}}}, nil)
	memory, err := ring.Create(slots, layout.Size)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { memory.Close() })
	layouts := []ring.Layout{layout}
	return &common{
		ring: memory, layouts: layouts, guards: newGuards(memory, layouts),
		data: Data{Train: &Split{Index: &dataset.Index{}}},
	}
}

func fakeRunner(r *common, pool supervise.Processes, name string) *stageRunner {
	return newStageRunner(r, pool, name+"-plugin", catalog.Instance{Name: name}, nil, 1, slog.New(slog.DiscardHandler))
}

// TestBatchThatEndsEveryProcess is given up the fifth time, though other batches are finished between; batches that are
// lost now and then, or because of others, never are.
func TestBatchThatEndsEveryProcess(t *testing.T) {
	lost := func(kicked bool) error {
		return &supervise.PluginError{Plugin: "mix-plugin", Kicked: kicked, LastStderr: "oh\n", Err: fmt.Errorf(
			"%w: stage mix: no result within 6s", supervise.ErrLost)}
	}
	r := fakeCommon(t, 2)
	var outcome error
	pool := &fakePool{call: func(slot int) (supervise.Result, error) {
		if slot == 1 {
			return supervise.Result{}, nil
		}
		return supervise.Result{}, outcome
	}}
	s := fakeRunner(r, pool, "mix")
	poison, other := &pipeline.Batch{Slot: 0}, &pipeline.Batch{Slot: 1}
	process := func(b *pipeline.Batch) error {
		r.guards.begin(b)
		_, _, err := s.Process(t.Context(), b)
		return err
	}
	attempt := func(err error, times int) {
		t.Helper()
		for range times {
			if outcome = err; err == nil {
				if got := process(poison); got != nil {
					t.Fatal(got)
				}
				continue
			}
			if got := process(poison); !errors.Is(got, pipeline.ErrRebuild) {
				t.Fatal(got)
			}
			if got := process(other); got != nil {
				t.Fatal(got)
			}
		}
	}
	attempt(lost(true), 20)
	for range 3 {
		attempt(lost(false), 4)
		attempt(nil, 1)
	}
	attempt(lost(false), 4)
	attempt(lost(true), 5)
	outcome = lost(false)
	err := process(poison)
	const want = "plugin mix-plugin: it keeps crashing: 5 processes in a row failed on the same batch (step 1, batch " +
		"1 of epoch 1); the last time: stage mix: no result within 6s\nits last lines on stderr:\n  mix-plugin: oh"
	if !errors.Is(err, supervise.ErrCrashLoop) || errors.Is(err, pipeline.ErrRebuild) || err.Error() != want {
		t.Errorf("%v\nwant %s", err, want)
	}
}

// TestProcessThatDamagesManyEmptyRows ends once for all of them: rebuilding the batch.
func TestProcessThatDamagesManyEmptyRows(t *testing.T) {
	mel := ring.Tensor{Name: "mel", DType: manifest.F32, Shape: []int{maxEnds + 1, 2}}
	layout := ring.NewLayout([]ring.Tensor{mel}, nil)
	memory, err := ring.Create(1, layout.Size)
	if err != nil {
		t.Fatal(err)
	}
	defer memory.Close()
	layouts := []ring.Layout{layout}
	r := &common{
		ring: memory, layouts: layouts, guards: newGuards(memory, layouts),
		data: Data{Train: &Split{Index: &dataset.Index{}}},
	}
	value := math.Float32bits(float32(math.NaN()))
	pool := &fakePool{call: func(slot int) (supervise.Result, error) {
		for view := layout.View(memory.Slot(slot), "mel"); len(view) > 0; view = view[4:] {
			binary.LittleEndian.PutUint32(view, value)
		}
		return supervise.Result{}, nil
	}}
	in := catalog.Instance{Name: "mix", Outputs: map[string]string{"mel": "mel"}}
	in.Stage.Outputs = []manifest.TensorSpec{{Name: "mel", DType: manifest.F32}}
	s := newStageRunner(r, pool, "mix-plugin", in, nil, maxEnds+1, slog.New(slog.DiscardHandler))
	b := &pipeline.Batch{Rows: slices.Repeat([]int32{-1}, maxEnds+1)}
	r.guards.begin(b)
	if _, _, err := s.Process(t.Context(), b); !errors.Is(err, pipeline.ErrRebuild) {
		t.Fatalf("the batch is not rebuilt: %v", err)
	}
	if want := []string{"{0 0} stage mix: the empty row 0 of mel is not finite"}; !slices.Equal(pool.kicked, want) {
		t.Errorf("kicked %q, want %q", pool.kicked, want)
	}
	value = 0
	if _, _, err := s.Process(t.Context(), b); err != nil {
		t.Errorf("a sound attempt: %v", err)
	}
}

// TestRejectOfEmptyRow ends the run as a fault of the plugin, which the error names with the row and the batch.
func TestRejectOfEmptyRow(t *testing.T) {
	r := fakeCommon(t, 1)
	pool := &fakePool{call: func(int) (supervise.Result, error) {
		return supervise.Result{Bad: []supervise.BadRow{{Row: 1, Reason: "too short"}}}, nil
	}}
	b := &pipeline.Batch{Rows: []int32{-1, -1}}
	r.guards.begin(b)
	_, _, err := fakeRunner(r, pool, "mix").Process(t.Context(), b)
	const want = "it rejects row 1, which is empty (step 1, batch 1 of epoch 1): too short"
	fault, ok := errors.AsType[*supervise.PluginError](err)
	if !ok || fault.Plugin != "mix-plugin" || !errors.Is(err, supervise.ErrViolation) ||
		!strings.HasSuffix(err.Error(), want) {
		t.Errorf("%v\nwant ... %s", err, want)
	}
}

// TestCallNamesClips: a plugin gets the ids of the list for its messages, and none for an empty row.
func TestCallNamesClips(t *testing.T) {
	r := fakeCommon(t, 1)
	r.data.Train.Index.Rows = []dataset.Row{{ID: "A/0001"}, {ID: "B/0002"}}
	pool := &fakePool{call: func(int) (supervise.Result, error) { return supervise.Result{}, nil }}
	s := newStageRunner(r, pool, "mix-plugin", catalog.Instance{Name: "mix"}, nil, 3, slog.New(slog.DiscardHandler))
	for _, c := range []struct {
		rows []int32
		want []string
	}{{[]int32{1, -1, 0}, []string{"B/0002", "", "A/0001"}}, {[]int32{-1, -1, -1}, []string{"", "", ""}}} {
		b := &pipeline.Batch{Rows: c.rows}
		r.guards.begin(b)
		if _, _, err := s.Process(t.Context(), b); err != nil || !slices.Equal(pool.clips, c.want) {
			t.Errorf("rows %v: clips %q, want %q; %v", c.rows, pool.clips, c.want, err)
		}
	}
}

// TestWarnFailed: a stage that fails with every batch warns a few times.
func TestWarnFailed(t *testing.T) {
	var log strings.Builder
	s := &stageRunner{log: slog.New(slog.NewTextHandler(&log, nil))}
	for i := range 5 {
		s.warnFailed(fmt.Errorf("failure %d", i))
	}
	for i, want := range []string{
		`level=WARN msg="failure 0; rebuilding the batch"`, `WARN msg="failure 1; rebuilding the batch"`,
		`WARN msg="failure 2; rebuilding the batch; further failures of this stage are counted, but not shown"`,
		`INFO msg="failure 3; rebuilding`, `INFO msg="failure 4; rebuilding`,
	} {
		if lines := strings.Split(log.String(), "\n"); len(lines) != 6 || !strings.Contains(lines[i], want) {
			t.Errorf("%s\nwant %s", log.String(), want)
		}
	}
}
