package memory

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"testing"

	"github.com/xtts-host/xtts-host/gpu"
	"github.com/xtts-host/xtts-host/ortgraphs"
	"github.com/xtts-host/xtts-host/ortgraphs/ort"
	"github.com/xtts-host/xtts-host/shared/manifest"
)

// TestSearchLargest has graphs that take memory in other ways than the shapes say: something fixed, something for each
// row, and from some row on more than before, as a new block of an arena.
func TestSearchLargest(t *testing.T) {
	type memory struct{ fixed, row, from, more int } // from: rows
	const room = 10_000
	for _, high := range []int{1, 2, 17, 128, 5000} {
		for _, m := range []memory{
			{0, 500, 0, 0}, {3000, 400, 0, 0}, {0, 300, 20, 2500}, {0, 1, 0, 0}, {9_999, 1, 0, 0}, {0, 20_000, 0, 0},
		} {
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
				// what fits says that it takes nothing, less, so much, and more than the room
				for _, said := range []float64{0, 0.7, 1, 1.5} {
					tries := 0
					got, sure := searchLargest(high, guess, func(rows int) (float64, error) {
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
						if said == 0 {
							return 0, nil
						}
						return room / (said * float64(took(rows))), nil
					})
					if got != want || !sure || tries > 20 {
						t.Errorf("%+v, below %d, from %d, said %v: %d after %d tries, sure: %t; want %d", m, high,
							guess, said, got, tries, sure, want)
					}
				}
			}
		}
	}
}

// TestSearchLargestBisects: from the first batch that does not fit on, each trial halves what is left, whatever the
// memory that a smaller batch took seems to leave.
func TestSearchLargestBisects(t *testing.T) {
	for _, tt := range []struct {
		name              string
		high, guess, fits int
		room              float64 // that each trial reports
		tries             int
	}{
		{"the guess fits, one more does not", 128, 40, 40, 0, 2},
		{"the guess is too large", 128, 64, 40, 0, 7},
		{"the guess is too small", 128, 10, 40, 0, 10},
		{"much too small", 5000, 1, 3000, 0, 24},
		{"the room promises too much", 5000, 1000, 1500, 10, 14},
		{"the room promises nothing", 5000, 4000, 1500, 1, 12},
		{"nothing fits", 1024, 512, 0, 0, 10},
	} {
		tries := 0
		got, sure := searchLargest(tt.high, tt.guess, func(rows int) (float64, error) {
			if tries++; rows > tt.fits {
				return 0, gpu.ErrOutOfMemory
			}
			return tt.room, nil
		})
		if got != tt.fits || !sure || tries != tt.tries {
			t.Errorf("%s: %d after %d tries, want %d after %d", tt.name, got, tries, tt.fits, tt.tries)
		}
	}
}

// A search that ends early names what it knows to fit.
func TestSearchLargestUnsure(t *testing.T) {
	tries := 0
	got, sure := searchLargest(100, 40, func(rows int) (float64, error) {
		if tries++; tries > 1 {
			return 0, errors.New("no time left")
		}
		return 0, nil
	})
	if got != 40 || sure {
		t.Errorf("%d, sure: %t; want 40, and not sure", got, sure)
	}
}

// A search whose context is over tries nothing.
func TestLargestBatchStops(t *testing.T) {
	s := Search{
		Rows: 64, Room: Libraries, Bundle: picoBundle(t), Bucket: picoBundle(t).Manifest.Buckets[2],
		Log: slog.New(slog.DiscardHandler),
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if rows, sure := s.Largest(ctx); rows != 0 || sure {
		t.Errorf("%d rows, sure: %t", rows, sure)
	}
}

// TestGuessBatch: the batch fits by the plan of the graph, and one more row does not.
func TestGuessBatch(t *testing.T) {
	b := picoBundle(t)
	s := Search{Rows: 64, Bundle: b, Bucket: b.Manifest.Buckets[len(b.Manifest.Buckets)-1], Precision: manifest.F32}
	bytes, err := Activations(b, s.Precision, s.Bucket, 24)
	if err != nil {
		t.Fatal(err)
	}
	if got := s.guess(int(bytes) + 1); got != 24 {
		t.Errorf("%d rows, want 24", got)
	}
}

func picoBundle(t *testing.T) *ortgraphs.Bundle {
	t.Helper()
	b, err := ortgraphs.Load("../../../ortgraphs/testdata/pico")
	if err != nil {
		t.Fatal(err)
	}
	return b
}
