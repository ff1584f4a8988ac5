package host

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"testing"

	"github.com/xtts-host/xtts-host/gpu"
	"github.com/xtts-host/xtts-host/host/batch"
	"github.com/xtts-host/xtts-host/host/config"
	"github.com/xtts-host/xtts-host/host/exit"
	"github.com/xtts-host/xtts-host/host/place"
	"github.com/xtts-host/xtts-host/host/train"
	"github.com/xtts-host/xtts-host/ortgraphs"
	"github.com/xtts-host/xtts-host/ortgraphs/ort"
)

// TestSearchLargest has graphs that take memory in other ways than the shapes say: something fixed, something for each row, and from
// some row on more than before, as a new block of an arena.
func TestSearchLargest(t *testing.T) {
	type memory struct{ fixed, row, from, more int } // from: rows
	const room = 10_000
	for _, high := range []int{1, 2, 17, 128, 5000} {
		for _, m := range []memory{{0, 500, 0, 0}, {3000, 400, 0, 0}, {0, 300, 20, 2500}, {0, 1, 0, 0}, {9_999, 1, 0, 0}, {0, 20_000, 0, 0}} {
			took := func(rows int) int {
				n := m.fixed + rows*m.row
				if rows >= m.from {
					n += m.more
				}
				return n
			}
			want := 0
			for want+1 < high && took(want+1) <= room {
				want++
			}
			for _, guess := range []int{0, want / 2, want, want + 7, high} {
				for _, told := range []float64{0, 0.7, 1, 1.5} { // what fits says that it takes nothing, less, so much, and more than the room
					tries := 0
					got, sure := searchLargest(high, guess, room, func(rows int) (int, error) {
						tries++
						if rows < 1 || rows >= high {
							t.Fatalf("%d rows are tried, of 1 to %d", rows, high-1)
						}
						switch {
						case took(rows) > room && tries%2 == 0:
							return 0, fmt.Errorf("run: %w", ort.ErrOutOfMemory)
						case took(rows) > room:
							return 0, fmt.Errorf("allocate: %w", gpu.ErrOutOfMemory)
						}
						return int(told * float64(took(rows))), nil
					})
					if got != want || !sure || tries > 20 {
						t.Errorf("%+v, below %d, from %d, told %v: %d after %d tries, sure: %t; want %d", m, high, guess, told, got, tries, sure, want)
					}
				}
			}
		}
	}
}

// A search that ends early names what it knows to fit.
func TestSearchLargestUnsure(t *testing.T) {
	tries := 0
	got, sure := searchLargest(100, 40, 1000, func(rows int) (int, error) {
		if tries++; tries > 1 {
			return 0, errors.New("no time left")
		}
		return 0, nil
	})
	if got != 40 || sure {
		t.Errorf("%d, sure: %t; want 40, and not sure", got, sure)
	}
}

// A search whose context is over tries nothing: there is no GPU here to try on.
func TestLargestBatchStops(t *testing.T) {
	j := &job{log: slog.New(slog.DiscardHandler), bundle: picoBundle(t), cfg: &config.Config{BatchSize: 64}}
	j.device.plan = memoryPlan{limit: 2 * libraries}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if rows, sure := j.largestBatch(ctx); rows != 0 || sure {
		t.Errorf("%d rows, sure: %t", rows, sure)
	}
}

// TestGuessBatch: the batch fits by the shapes of the graph, and one more row does not.
func TestGuessBatch(t *testing.T) {
	b := picoBundle(t)
	room := int(b.Step(len(b.Manifest.Buckets)-1, 24).ActivationBytes) + 1
	if got := (&job{bundle: b, cfg: &config.Config{BatchSize: 64}}).guessBatch(room); got != 24 {
		t.Errorf("%d rows, want 24", got)
	}
}

func picoBundle(t *testing.T) *ortgraphs.Bundle {
	t.Helper()
	b, err := ortgraphs.Load(pico)
	if err != nil {
		t.Fatal(err)
	}
	return b
}

func TestRefuseBatch(t *testing.T) {
	const (
		less   = ", then a smaller --buffer-size than 50, then --accumulate 4 with a smaller batch"
		arenas = "a batch of 64 rows in bucket 2 needs more memory than the 100 MB that --model-gpu-memory 1120MB leaves for it: "
	)
	limited := memoryPlan{limit: 1120 * gpu.MB, arenas: 60 * gpu.MB, slots: 40 * gpu.MB}
	trial := func(err error) error {
		return fmt.Errorf("model: %w", &train.TooLargeError{Bucket: 2, Err: fmt.Errorf("run: %w", err)})
	}
	for name, tt := range map[string]struct {
		err        error
		plan       memoryPlan
		graphs     int
		rows       int
		sure       bool
		want, hint string
	}{
		"the limit, in a trial run": {trial(ort.ErrOutOfMemory), limited, 0, 17, true, arenas + "run: out of memory",
			"try --batch-size 17, the largest that fits" + less + ", then --model-gpu-memory above 1120"},
		"the search was stopped": {trial(ort.ErrOutOfMemory), limited, 0, 17, false, arenas + "run: out of memory",
			"try --batch-size 17, which fits" + less + ", then --model-gpu-memory above 1120"},
		"nothing was tried": {trial(ort.ErrOutOfMemory), limited, 0, 0, false, arenas + "run: out of memory",
			"try a smaller --batch-size" + less + ", then --model-gpu-memory above 1120"},
		"no row": {trial(ort.ErrOutOfMemory), limited, 0, 0, true, "not even one row fits: " + arenas + "run: out of memory",
			"try --model-gpu-memory above 1120"},
		"the table": {limited.check(101 * gpu.MB), limited, 101 * gpu.MB, 17, true, limited.check(101 * gpu.MB).Error(),
			"try --batch-size 17, the largest that fits" + less + ", then --model-gpu-memory 1177"},
		"the card, under a limit": {gpu.ErrOutOfMemory, limited, 0, 17, true, "a batch of 64 rows needs more memory than the GPU has: out of GPU memory",
			"try --batch-size 17, the largest that fits" + less},
		"the card": {trial(ort.ErrOutOfMemory), memoryPlan{}, 0, 0, true, "not even one row fits: a batch of 64 rows in bucket 2 needs more memory than the GPU has: run: out of memory",
			"try a GPU with more memory"},
	} {
		j := &job{cfg: &config.Config{BatchSize: 64, BufferSize: 50, Accumulate: 2}}
		err := j.refuseBatch(tt.err, tt.plan, tt.graphs, tt.rows, tt.sure)
		if err.Error() != tt.want || exit.Hint(err) != tt.hint || exit.Code(exit.Refused(err)) != 3 {
			t.Errorf("%s:\n%v\nhint: %s\nexit status %d; want\n%s\nhint: %s", name, err, exit.Hint(err), exit.Code(exit.Refused(err)), tt.want, tt.hint)
		}
	}
}

// TestNoSearch: benchmarks, and models that share a GPU with plugins without a limit, are refused without trials.
func TestNoSearch(t *testing.T) {
	one := place.Role{GPU: gpu.Device{UUID: "GPU-1"}}
	two, capped := place.Role{GPU: gpu.Device{UUID: "GPU-2"}}, one
	capped.Limit = 1 << 30
	for _, tt := range []struct {
		data, model place.Role
		feeding     batch.Feeding
		want        bool
	}{
		{one, two, batch.Overlapped, true}, {one, two, batch.Resident, false}, {one, two, batch.Unsaved, false},
		{one, one, batch.Overlapped, false}, {one, capped, batch.Overlapped, true},
	} {
		j := &job{placement: place.Placement{Data: tt.data, Model: tt.model}, feeding: tt.feeding}
		if got := !j.benchmarked() && !j.growsWithPlugins(); got != tt.want {
			t.Errorf("%+v: %t", tt, got)
		}
	}
}
