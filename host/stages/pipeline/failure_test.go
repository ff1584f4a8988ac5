package pipeline

import (
	"fmt"
	"io"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
)

func TestLostStageRebuildsFromDecode(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		decoded, lost := map[int]int{}, 0
		var mu sync.Mutex
		p, seen, err := drive(t, Config{
			Source: &plan{n: 40}, Device: device(instant), RingSlots: 4, DeviceSlots: 3, Workers: 2,
			Decoder: decoder(func(b *Batch) ([]Rejected, error) {
				mu.Lock()
				defer mu.Unlock()
				decoded[b.Index]++
				return nil, nil
			}),
			Stages: []Step{{Name: "flaky", Stage: newStage(func(b *Batch) ([]Rejected, error) {
				if b.Index%10 == 3 && lost < 8 {
					lost++
					return nil, fmt.Errorf("process gone: %w", ErrRebuild)
				}
				return nil, nil
			})}},
		}, nil)
		if err != io.EOF {
			t.Fatal(err)
		}
		checkOrder(t, seen, 40)
		total := 0
		for _, n := range decoded {
			total += n
		}
		if total != 48 || p.Stats().Rebuilt != 8 {
			t.Errorf("%d decodes, %d rebuilt, want 48 and 8", total, p.Stats().Rebuilt)
		}
	})
}

// TestCopyThatFailsRebuilds: copies of batches fail, several times in a row and for more than one batch at a time. Each
// batch is rebuilt and reaches the same device slot in its order.
func TestCopyThatFailsRebuilds(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		decoded, failures := map[int]int{}, map[int]int{3: 1, 4: 3, 19: 2}
		var mu sync.Mutex
		p, seen, err := drive(t, Config{
			Source: &plan{n: 20}, RingSlots: 4, DeviceSlots: 3, Workers: 1, Prefetch: 4,
			Decoder: decoder(func(b *Batch) ([]Rejected, error) {
				mu.Lock()
				defer mu.Unlock()
				decoded[b.Index]++
				return nil, nil
			}),
			Device: device(func(_ int, b *Batch) error {
				if failures[b.Index] > 0 {
					failures[b.Index]--
					return fmt.Errorf("not to be trusted: %w", ErrRebuild)
				}
				return nil
			}),
		}, nil)
		if err != io.EOF {
			t.Fatal(err)
		}
		checkOrder(t, seen, 20)
		for i, want := range map[int]int{2: 1, 3: 2, 4: 4, 5: 1, 19: 3} {
			if decoded[i] != want {
				t.Errorf("batch %d was decoded %d times, want %d", i, decoded[i], want)
			}
		}
		if p.Finished() != 20 || p.Stats().Rebuilt != 6 {
			t.Errorf("%d finished, %d rebuilt, want 20 and 6", p.Finished(), p.Stats().Rebuilt)
		}
	})
}

func TestRejectedRowsAreEmptiedOnceAndBuiltAgain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var mu sync.Mutex
		rejected := map[string]int{}
		_, seen, err := drive(t, Config{
			Source: &plan{n: 10}, Device: device(instant), RingSlots: 3, DeviceSlots: 2, Workers: 2,
			Decoder: decoder(func(b *Batch) ([]Rejected, error) {
				if b.Index == 2 && b.Rows[1] >= 0 {
					return []Rejected{{Row: 1, Reason: "truncated"}}, nil
				}
				return nil, nil
			}),
			Stages: []Step{{Name: "check", Stage: newStage(func(b *Batch) ([]Rejected, error) {
				if b.Index == 2 && b.Rows[3] >= 0 {
					return []Rejected{{Row: 3, Reason: "NaN"}}, nil
				}
				return nil, nil
			})}},
			Reject: func(b *Batch, rows []Rejected) error {
				mu.Lock()
				defer mu.Unlock()
				for _, r := range rows {
					rejected[fmt.Sprintf("%d/%d %s %s", b.Index, r.Row, r.Phase, r.Reason)]++
				}
				return nil
			},
		}, func(d *DeviceSlot) {
			want, left := []int32{0, 1, 2, 3}, []int32(nil)
			if d.Batch.Index == 2 {
				want, left = []int32{0, -1, 2, -1}, []int32{1, 3}
			}
			if !slices.Equal(d.Batch.Rows, want) || !slices.Equal(d.Batch.LeftOut, left) {
				t.Errorf("batch %d has rows %v without %v, want %v without %v", d.Batch.Index, d.Batch.Rows,
					d.Batch.LeftOut, want, left)
			}
		})
		if err != io.EOF {
			t.Fatal(err)
		}
		checkOrder(t, seen, 10)
		if len(rejected) != 2 || rejected["2/1 decode truncated"] != 1 || rejected["2/3 check NaN"] != 1 {
			t.Errorf("rejected rows: %v", rejected)
		}
	})
}
