package pipeline

import (
	"fmt"
	"testing"
	"testing/synctest"
	"time"
)

// steps is a Source of two steps of three batches, one batch of the validation set, a step of two batches, and the
// first batch of another step: n batches of that.
type steps struct{ n, at int }

func (s *steps) Next(b *Batch) bool {
	if s.at == s.n {
		return false
	}
	b.Index, b.Eval = s.at, s.at == 6
	b.Last = s.at == 2 || s.at == 5 || s.at == 8
	s.at++
	return true
}

// TestTotals: a batch has the sums over its step before it is copied, in whatever order the batches are finished, and
// with a ring that holds just one step. A batch of the validation set has its own numbers. A rebuilt batch keeps the
// sums.
func TestTotals(t *testing.T) {
	for _, ring := range []int{3, 4, 10} {
		synctest.Test(t, func(t *testing.T) {
			var totals []string
			rebuilt := false
			_, seen, _ := drive(t, Config{
				Source: &steps{n: 10}, RingSlots: ring, DeviceSlots: 2, Workers: 3,
				Decoder: decoder(func(b *Batch) ([]Rejected, error) {
					time.Sleep(time.Duration(10-b.Index) * time.Second) // later batches are finished first
					return nil, nil
				}),
				Measure: func(b *Batch) []float64 { return []float64{1, float64(b.Index)} },
				Device: device(func(_ int, b *Batch) error {
					if b.Index == 4 && !rebuilt {
						rebuilt = true
						return ErrRebuild
					}
					return nil
				}),
			}, func(d *DeviceSlot) { totals = append(totals, fmt.Sprint(d.Batch.Totals)) })
			if got, want := fmt.Sprint(seen, totals), "[0 1 2 3 4 5 6 7 8 9] [[3 3] [3 3] [3 3] [3 12] [3 12] [3 12] "+
				"[1 6] [2 15] [2 15] [1 9]]"; got != want {
				t.Errorf("ring of %d: %s\nwant %s", ring, got, want)
			}
		})
	}
}
