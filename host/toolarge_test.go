package host

import (
	"errors"
	"fmt"
	"testing"

	"github.com/xtts-host/xtts-host/gpu"
	"github.com/xtts-host/xtts-host/host/config"
	"github.com/xtts-host/xtts-host/ortgraphs"
	"github.com/xtts-host/xtts-host/ortgraphs/ort"
)

// TestSearchLargest has graphs that take memory in other ways than the shapes say: something fixed, something for each row, and from
// some row on more than before, as a new block of an arena.
func TestSearchLargest(t *testing.T) {
	type memory struct{ fixed, row, from, more int }
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
				for _, known := range []bool{true, false} { // what fits may say how much it takes
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
						case known:
							return took(rows), nil
						}
						return 0, nil
					})
					if got != want || !sure || tries > 16 {
						t.Errorf("%+v, below %d, from %d, known %t: %d after %d tries, sure: %t; want %d", m, high, guess, known, got, tries, sure, want)
					}
				}
			}
		}
	}
}

// A search that is over before its time names what it knows to fit.
func TestSearchLargestUnsure(t *testing.T) {
	tries := 0
	got, sure := searchLargest(100, 40, 1000, func(rows int) (int, error) {
		if tries++; tries > 2 {
			return 0, errors.New("no time left")
		}
		return 10 * rows, nil
	})
	if got != 99 || !sure {
		t.Errorf("%d, sure: %t; want 99 by two tries", got, sure)
	}
	tries = 1
	if got, sure = searchLargest(100, 40, 1000, func(rows int) (int, error) {
		if tries++; tries > 2 {
			return 0, errors.New("no time left")
		}
		return 10 * rows, nil
	}); got != 40 || sure {
		t.Errorf("%d, sure: %t; want 40, and not sure", got, sure)
	}
}

// TestGuessBatch: the batch fits by the shapes of the graph, and one more row does not.
func TestGuessBatch(t *testing.T) {
	b, err := ortgraphs.Load("../ortgraphs/testdata/pico")
	if err != nil {
		t.Fatal(err)
	}
	j := &job{bundle: b, buckets: b.Manifest.Buckets, cfg: &config.Config{BatchSize: 64}}
	room := int(b.Step(len(j.buckets)-1, 24).ActivationBytes) + 1
	if got := j.guessBatch(room); got != 24 {
		t.Errorf("%d rows, want 24", got)
	}
}
