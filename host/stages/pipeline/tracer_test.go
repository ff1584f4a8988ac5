package pipeline

import (
	"fmt"
	"io"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"
)

// notebook records the calls of a Tracer, with the milliseconds since its creation.
type notebook struct {
	began time.Time
	mu    sync.Mutex // guards lines
	lines []string
}

func (n *notebook) add(format string, args ...any) {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.lines = append(n.lines, fmt.Sprintf(format, args...))
}

func (n *notebook) ms(t time.Time) int64 { return t.Sub(n.began).Milliseconds() }

func (n *notebook) Worked(phase, place int, b *Batch, _, ended time.Time, busy time.Duration) {
	worked := ended.Add(-busy) // these stages work at the end of their calls
	n.add("%02d-%02d phase %d at %d on batch %d", n.ms(worked), n.ms(ended), phase, place, b.Index)
}

func (n *notebook) Ring(slot int, from, to State) {
	n.add("%02d ring slot %d %s to %s", n.ms(time.Now()), slot, from, to)
}

func (n *notebook) Moved(d *DeviceSlot, from, to State) {
	n.add("%02d device slot %d %s to %s", n.ms(time.Now()), d.Index, from, to)
}

// TestTracer has one slot of each kind. So the second batch is decoded while the first is trained on, and the second
// copy of the second batch succeeds.
func TestTracer(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const ms = time.Millisecond
		seen, failed := &notebook{began: time.Now()}, false
		_, _, err := drive(t, Config{
			Source: &plan{n: 2}, Decoder: takes(3 * ms), Stages: []Step{{Name: "features", Stage: stageTakes(5 * ms)}},
			Device: device(func(_ int, b *Batch) error {
				time.Sleep(2 * ms)
				if b.Index == 1 && !failed {
					failed = true
					return ErrRebuild
				}
				return nil
			}),
			Tracer: seen,
		}, func(*DeviceSlot) { time.Sleep(20 * ms) })
		if err != io.EOF {
			t.Fatal(err)
		}
		want := []string{
			"00 ring slot 0 FREE to PREPARING",
			"00-03 phase 0 at 0 on batch 0",
			"03-08 phase 1 at -1 on batch 0",
			"08 ring slot 0 PREPARING to READY",
			"08 device slot 0 FREE to PREPARING",
			"08-10 phase 2 at 0 on batch 0",
			"10 device slot 0 PREPARING to READY",
			"10 device slot 0 READY to TRAINING",
			"10 ring slot 0 READY to FREE",
			"10 ring slot 0 FREE to PREPARING",
			"10-13 phase 0 at 0 on batch 1",
			"13-18 phase 1 at -1 on batch 1",
			"18 ring slot 0 PREPARING to READY",
			"30 device slot 0 TRAINING to FREE",
			"30 device slot 0 FREE to PREPARING",
			"30-32 phase 2 at 0 on batch 1",
			"32 ring slot 0 READY to PREPARING",
			"32-35 phase 0 at 0 on batch 1",
			"35-40 phase 1 at -1 on batch 1",
			"40 ring slot 0 PREPARING to READY",
			"40-42 phase 2 at 0 on batch 1",
			"42 ring slot 0 READY to FREE",
			"42 device slot 0 PREPARING to READY",
			"42 device slot 0 READY to TRAINING",
			"62 device slot 0 TRAINING to FREE",
		}
		// The order of events in the same instant on several goroutines is arbitrary.
		slices.Sort(want)
		slices.Sort(seen.lines)
		if !slices.Equal(seen.lines, want) {
			t.Errorf("got\n%q\nwant\n%q", seen.lines, want)
		}
	})
}
