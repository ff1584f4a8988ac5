package memory

import (
	"context"
	"fmt"
	"log/slog"
	"sort"
	"time"

	"github.com/xtts-host/xtts-host/host/exit"
	"github.com/xtts-host/xtts-host/ortgraphs"
	"github.com/xtts-host/xtts-host/shared/manifest"
)

// searchTime is how long smaller batches are tried; the last trial may end later.
const searchTime = time.Minute

// Search looks for the largest batch that fits on the model GPU.
type Search struct {
	Rows   int // of the batch that did not fit
	Room   int // bytes for the graphs
	Bundle *ortgraphs.Bundle
	// Precision of the training graph.
	Precision manifest.DType
	Log       *slog.Logger
	// Try makes the model for batches of so many rows, as a run does, takes it down again and returns what its graphs took.
	Try func(rows int) (graphs int, err error)
}

// Largest finds the largest batch below the one that did not fit, by trial; 0 when none fits. sure is false when it was stopped.
func (s Search) Largest(ctx context.Context) (rows int, sure bool) {
	if s.Rows > 1 {
		s.Log.Warn("the batch does not fit on the GPU: smaller ones are tried")
	}
	ctx, cancel := context.WithTimeout(ctx, searchTime)
	defer cancel()
	guess := s.guess(s.Room * 7 / 10) // what the shapes say was 1.4 times what fitted on an H200: the arena has gaps, and CUDA graphs take memory
	return searchLargest(s.Rows, guess, s.Room, func(rows int) (int, error) {
		if ctx.Err() != nil {
			return 0, ctx.Err()
		}
		graphs, err := s.Try(rows)
		if err != nil && !exit.OutOfMemory(err) {
			s.Log.Warn(fmt.Sprintf("no smaller batch is tried: %v", err))
		}
		return graphs, err
	})
}

// guess is the largest batch below the one that did not fit that has room by the shapes of the training graph.
func (s Search) guess(room int) int {
	bucket := len(s.Bundle.Manifest.Buckets) - 1
	return sort.Search(s.Rows-1, func(rows int) bool { // whether one row more is too much
		c := s.Bundle.Step(s.Precision, bucket, rows+1)
		return c.Problem != "" || c.ActivationBytes >= float64(room)
	})
}

// searchLargest finds the largest number of rows below high that fit, first trying guess. try returns what the graphs take of some room
// bytes, an error about memory when they find too little, and any other to end the search, which is not sure then.
func searchLargest(high, guess, room int, try func(rows int) (graphs int, err error)) (low int, sure bool) {
	for next := min(max(guess, 1), high-1); high-low > 1; {
		graphs, err := try(next)
		switch {
		case err == nil:
			low = next
		case exit.OutOfMemory(err):
			high = next
		default:
			return low, false
		}
		next = (low + high) / 2
		if err == nil && graphs > 0 { // it grows with the rows, and the room with other things, too: so this is a guess
			if n := int(float64(low) * float64(room) / float64(graphs)); low < n && n < high {
				next = n
			}
		}
	}
	return low, true
}
