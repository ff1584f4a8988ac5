package batch

import (
	"context"
	"errors"
	"io"
	"testing"
	"testing/synctest"
	"time"

	"github.com/xtts-host/xtts-host/host/stages/pipeline"
)

// slow is a decoder and a device that take their time.
type slow struct{ decode, copy time.Duration }

func (s slow) Decode(context.Context, int, *pipeline.Batch) ([]pipeline.Rejected, error) {
	time.Sleep(s.decode)
	return nil, nil
}

func (s slow) Copy(int, *pipeline.Batch) error {
	time.Sleep(s.copy)
	return nil
}

// count is a source of n batches.
type count struct{ n int64 }

func (c *count) Next(b *pipeline.Batch) bool {
	if c.n == 0 {
		return false
	}
	c.n--
	b.Last = true
	return true
}

// TestInputModes: the time of each input mode for the same ten batches, to the millisecond.
func TestInputModes(t *testing.T) {
	const decode, transfer, step = 7 * time.Millisecond, 3 * time.Millisecond, 10 * time.Millisecond
	for mode, want := range map[InputMode]time.Duration{
		Overlapped:   decode + transfer + 10*step,
		NoCheckpoint: decode + transfer + 10*step,
		Synchronous:  10 * (decode + transfer + step),
		ComputeOnly:  decode + 2*transfer + 10*step,
	} {
		synctest.Test(t, func(t *testing.T) {
			f := adapter{mode: mode, steps: 10}
			cfg := pipeline.Config{
				Decoder: slow{decode: decode}, Device: slow{copy: transfer}, RingSlots: 4, DeviceSlots: 3, Workers: 2,
			}
			f.configure(&cfg, &count{10})
			pipe, err := pipeline.New(cfg)
			if err != nil {
				t.Fatal(err)
			}
			feed := f.wrap(pipe)
			ctx, stop := context.WithCancel(t.Context())
			done := make(chan struct{})
			go func() { defer close(done); pipe.Run(ctx) }()
			began, steps := time.Now(), 0
			for {
				d, err := feed.Acquire(ctx)
				if errors.Is(err, io.EOF) {
					break
				}
				if err != nil {
					t.Fatal(err)
				}
				time.Sleep(step)
				feed.Release(d)
				steps++
			}
			if took := time.Since(began); took != want || steps != 10 {
				t.Errorf("input mode %d: %d steps took %v, want %v", mode, steps, took, want)
			}
			stop()
			f.close()
			<-done
		})
	}
}

// TestLockstepEnds: a run that is stopped while the source waits for the trainer ends, too.
func TestLockstepEnds(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := adapter{mode: Synchronous, steps: 10}
		cfg := pipeline.Config{Decoder: slow{}, Device: slow{}}
		f.configure(&cfg, &count{10})
		pipe, err := pipeline.New(cfg)
		if err != nil {
			t.Fatal(err)
		}
		ctx, stop := context.WithCancel(t.Context())
		done := make(chan struct{})
		go func() { defer close(done); pipe.Run(ctx) }()
		if _, err := f.wrap(pipe).Acquire(ctx); err != nil {
			t.Fatal(err)
		}
		stop()
		f.close()
		<-done // else synctest says that all goroutines are blocked
	})
}
