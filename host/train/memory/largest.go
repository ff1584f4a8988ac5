package memory

import (
	"context"
	"fmt"
	"log/slog"
	"sort"
	"time"

	"github.com/xtts-host/xtts-host/host/base/exit"
	"github.com/xtts-host/xtts-host/ortgraphs"
	"github.com/xtts-host/xtts-host/ortgraphs/lifetime"
	"github.com/xtts-host/xtts-host/shared/manifest"
)

// searchTime limits the search for a smaller batch; the last trial may end later.
const searchTime = time.Minute

// Search looks for the largest batch that fits on the model GPU.
type Search struct {
	Rows   int // of the batch that did not fit
	Room   int // bytes for the graphs
	Bundle *ortgraphs.Bundle
	Bucket manifest.Bucket // the largest
	// Precision of the training graph.
	Precision manifest.DType
	Log       *slog.Logger
	// Try creates the model for batches of so many rows, as a run does, and closes it. room is how many times the
	// memory of its graphs there is; 0 if that is unknown.
	Try func(rows int) (room float64, err error)
}

// Largest finds the largest batch below the one that did not fit, by trial; 0 if none fits. sure is false if the search
// was stopped.
func (s Search) Largest(ctx context.Context) (rows int, sure bool) {
	if s.Rows > 1 {
		s.Log.Warn("the batch does not fit on the GPU: searching for the largest batch that fits")
	}
	ctx, cancel := context.WithTimeout(ctx, searchTime)
	defer cancel()
	guess := s.guess(s.Room * 9 / 10) // CUDA graphs and the workspaces of libraries need memory, too
	return searchLargest(s.Rows, guess, func(rows int) (float64, error) {
		if ctx.Err() != nil {
			return 0, ctx.Err()
		}
		room, err := s.Try(rows)
		if err != nil && !exit.OutOfMemory(err) {
			s.Log.Warn(fmt.Sprintf("search for a smaller batch stopped: %v", err))
		}
		return room, err
	})
}

// guess returns the largest batch below the one that did not fit for which the arena of the graphs as exported fits by
// its plan.
func (s Search) guess(room int) int {
	return sort.Search(s.Rows-1, func(rows int) bool { // whether one more row is too much
		bytes, err := Activations(s.Bundle, s.Precision, s.Bucket, rows+1)
		return err != nil || bytes >= int64(room)
	})
}

// Activations returns the planned size of ONNX Runtime's arena for the training graphs as exported, with batches of so
// many rows in a bucket: that of the player that needs the most.
func Activations(b *ortgraphs.Bundle, precision manifest.DType, bucket manifest.Bucket, rows int) (int64, error) {
	m, most := b.Manifest, int64(0)
	for _, player := range m.InTurn() {
		g, ok := m.TrainingGraph(player.Name, precision)
		if !ok {
			return 0, fmt.Errorf("there is no training graph in %s", precision)
		}
		p, err := b.Program(g, func(string) bool { return true })
		if err != nil {
			return 0, err
		}
		l, err := lifetime.OfFile(p.Model, bucket.Values(rows))
		if err != nil {
			return 0, err
		}
		most = max(most, lifetime.Arena(l))
	}
	return most, nil
}

// searchLargest finds the largest number of rows below high that fit, and tries guess first. try returns how many times
// the memory of the graphs there is, or an error about memory if they do not fit. From the first batch that does not
// fit on, each trial halves what is left. Any other error ends the search, and the result is not sure.
func searchLargest(high, guess int, try func(rows int) (room float64, err error)) (low int, sure bool) {
	more := 1       // rows to add if the room for more is unknown or nearly used up
	failed := false // whether there is an upper bound that has been tried
	for next := min(max(guess, 1), high-1); high-low > 1; {
		room, err := try(next)
		switch {
		case err == nil:
			low = next
		case exit.OutOfMemory(err):
			high, failed = next, true
		default:
			return low, false
		}
		if next = (low + high) / 2; !failed {
			// The graphs also need memory that does not grow with the rows, so there may be room for more.
			next = min(max(int(float64(low)*room), low+more), high-1)
			more *= 2
		}
	}
	return low, true
}
