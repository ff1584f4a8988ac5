package plugintest

import (
	"context"
	"fmt"
	"time"
)

// growthCalls is how many calls a window has.
var growthCalls = 80

const (
	growthWindows = 5               // the first is the warm-up
	growthTime    = 2 * time.Second // of a window, at most
	fewestCalls   = 5               // of a window, which say something
	// growthStep is by how much the least memory of each window has to be above that of the window before. The
	// collector of Go lets a heap grow by 4 MiB before it runs for the first time, and an array of NumPy is freed at
	// once.
	growthStep = 2 << 20
)

// growing looks for memory that grows with the calls. What a collector frees from time to time is no growth: the least
// memory of each window counts, and it has to grow in each of them.
func growing(ctx context.Context, t *subject) error {
	if t.plain == nil {
		return skipped("many batches at a time were not possible")
	}
	var least []int64
	calls := 0
	for window := range growthWindows {
		low := int64(0)
		n := 0
		for began := time.Now(); n < growthCalls && time.Since(began) < growthTime; n++ {
			if _, err := t.plain.run(ctx, n%slots, len(t.noise.layouts)-1, mixed); err != nil {
				return err
			}
			used := t.plain.pool.Memory()
			if low == 0 || used < low {
				low = used
			}
		}
		if n < fewestCalls {
			return skipped(fmt.Sprintf("a call takes more than %v", growthTime/fewestCalls))
		}
		if window > 0 {
			least, calls = append(least, low), calls+n
		}
	}
	if !grows(least) {
		return nil
	}
	between := float64(len(least)-1) / float64(len(least)) // of the calls: from one minimum to the next
	perCall := float64(least[len(least)-1]-least[0]) / (float64(calls) * between)
	return fmt.Errorf("its memory grows by some %.0f KiB with each call: %s", perCall/1024, megabytes(least))
}

// grows reports whether each value is above the one before by more than noise.
func grows(least []int64) bool {
	for i := range least {
		if i > 0 && least[i]-least[i-1] < growthStep {
			return false
		}
	}
	return true
}

func megabytes(list []int64) (text string) {
	for i, n := range list {
		if i > 0 {
			text += ", "
		}
		text += fmt.Sprint(n >> 20)
	}
	return text + " MiB"
}
