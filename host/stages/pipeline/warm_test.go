package pipeline

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"
)

func TestWarm(t *testing.T) {
	for _, c := range []struct {
		batches, prefetch int
		want              time.Duration
	}{
		{100, 4, 40 * time.Millisecond}, {100, 50, 60 * time.Millisecond}, {2, 4, 20 * time.Millisecond},
		{5, 6, 50 * time.Millisecond},
	} {
		synctest.Test(t, func(t *testing.T) {
			ctx, cancel := context.WithCancel(t.Context())
			p, err := New(Config{
				Source: &plan{n: c.batches}, Decoder: takes(10 * time.Millisecond), Device: device(instant),
				RingSlots: 6, DeviceSlots: 3, Prefetch: c.prefetch,
			})
			if err != nil {
				t.Fatal(err)
			}
			began := time.Now()
			done := make(chan error)
			go func() { done <- p.Run(ctx) }()
			<-p.Warm()
			if got := time.Since(began); got != c.want {
				t.Errorf("%d batches, prefetch %d: warm after %v, want %v", c.batches, c.prefetch, got, c.want)
			}
			cancel()
			<-done
		})
	}
}

// TestWarmInOrder: the first batch is finished last. Later batches that are finished before it do not start training.
func TestWarmInOrder(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const ms = time.Millisecond
		decode := decoder(func(b *Batch) ([]Rejected, error) {
			time.Sleep(10 * ms)
			if b.Index == 0 {
				time.Sleep(40 * ms)
			}
			return nil, nil
		})
		copying := device(func(int, *Batch) error { time.Sleep(3 * ms); return nil })
		ctx, cancel := context.WithCancel(t.Context())
		p, err := New(Config{
			Source: &plan{n: 100}, Decoder: decode, Device: copying, RingSlots: 8, DeviceSlots: 3, Workers: 4,
			Prefetch: 2,
		})
		if err != nil {
			t.Fatal(err)
		}
		began := time.Now()
		done := make(chan error)
		go func() { done <- p.Run(ctx) }()
		time.Sleep(49 * ms)
		if n := p.Finished(); n != 0 {
			t.Errorf("%d batches in front are finished, and the first is not", n)
		}
		<-p.Warm()
		if took, want := time.Since(began), 59*ms; took != want || p.Finished() < 3 {
			t.Errorf("warm after %v with %d batches, want at %v, when the slots are full", took, p.Finished(), want)
		}
		cancel()
		<-done
	})
}

// TestWarmEndsWithTheCopier: a waiter for the first batches sees the failure of the first one.
func TestWarmEndsWithTheCopier(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		lost := errors.New("the device is lost")
		p, err := New(Config{
			Source: &plan{n: 100}, Decoder: takes(time.Millisecond),
			Device: device(func(int, *Batch) error { return lost }), RingSlots: 8, Prefetch: 4,
		})
		if err != nil {
			t.Fatal(err)
		}
		done := make(chan error)
		go func() { done <- p.Run(t.Context()) }()
		<-p.Warm()
		if err := <-done; !errors.Is(err, lost) {
			t.Errorf("%v, want %v", err, lost)
		}
	})
}
