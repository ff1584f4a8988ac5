package event_test

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/xtts-host/xtts-host/host/observe/event"
)

// recorder is a sink that keeps a word for each event.
type recorder struct {
	mu     sync.Mutex
	words  []string
	takes  int
	err    error         // of Take
	hold   chan struct{} // Take waits for it; nil: it does not
	synced int
	closed int
}

func (r *recorder) Take(events []event.Event) error {
	if r.hold != nil {
		<-r.hold
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	r.takes++
	for _, e := range events {
		word := strings.TrimPrefix(fmt.Sprintf("%T", e), "*event.")
		switch e := e.(type) {
		case *event.Step:
			word = fmt.Sprintf("%d %v %v", e.Step, e.Metrics, e.Rows)
		case *event.Evaluation:
			word += fmt.Sprint(e.Metrics)
		}
		r.words = append(r.words, word)
	}
	return r.err
}

func (r *recorder) Sync() error  { r.synced++; return nil }
func (r *recorder) Close() error { r.closed++; return nil }

func (r *recorder) seen() []string {
	r.mu.Lock()
	defer r.mu.Unlock()
	return slices.Clone(r.words)
}

func step(n int64) *event.Step {
	return &event.Step{Step: n, Metrics: []float64{float64(n)}, Rows: []int32{int32(n)}}
}

// A step is delivered within a quarter of a second, a rare event immediately. Both kinds of sinks receive all events in
// order, with the values that they had when they were published.
func TestOrderAndDelay(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		must, may := new(recorder), new(recorder)
		b := event.NewBus()
		b.Require("must", must)
		b.Offer("may", may, nil)
		s := step(1)
		for n := range int64(2) {
			s.Step, s.Metrics[0], s.Rows[0] = n+1, float64(n+1), int32(n+1) // the trainer overwrites it
			if err := b.Publish(s); err != nil {
				t.Fatal(err)
			}
		}
		synctest.Wait()
		if got := append(must.seen(), may.seen()...); got != nil {
			t.Errorf("%q is delivered at once", got)
		}
		time.Sleep(250 * time.Millisecond)
		synctest.Wait()
		e := &event.Evaluation{Metrics: []float64{7}}
		s.Step = 3
		b.Publish(s)
		b.Publish(e)
		e.Metrics[0] = 8
		synctest.Wait()
		s.Step = 4
		b.Publish(s)
		b.Wake()
		synctest.Wait()
		want := []string{"1 [1] [1]", "2 [2] [2]", "3 [2] [2]", "Evaluation[7]", "4 [2] [2]"}
		if got := must.seen(); !slices.Equal(got, want) || must.takes != 3 {
			t.Errorf("required: %q in %d calls, want %q in 3", got, must.takes, want)
		}
		if got := may.seen(); !slices.Equal(got, want) {
			t.Errorf("best effort: %q, want %q", got, want)
		}
		for range 2 {
			if err := b.Close(); err != nil {
				t.Error(err)
			}
		}
		if must.closed != 1 || may.closed != 1 {
			t.Errorf("closed %d and %d times", must.closed, may.closed)
		}
	})
}

// The error of a required sink ends the run: Publish returns it after the failure, and other sinks still receive all
// events.
func TestRequiredSinkFails(t *testing.T) {
	full := errors.New("disk full")
	bad, good := &recorder{err: full}, new(recorder)
	b := event.NewBus()
	b.Require("bad", bad)
	b.Require("good", good)
	if err := b.Publish(step(1)); err != nil {
		t.Fatal(err)
	}
	if err := b.Sync(); !errors.Is(err, full) || good.synced != 0 {
		t.Errorf("what is lost is durable: %v", err)
	}
	if err := b.Publish(step(2)); !errors.Is(err, full) {
		t.Errorf("published after it: %v", err)
	}
	if err := b.Flush(); !errors.Is(err, full) {
		t.Errorf("flushed: %v", err)
	}
	if err := b.Close(); err != nil {
		t.Errorf("Close says again what is known: %v", err)
	}
	if len(bad.seen()) != 1 || len(good.seen()) != 2 {
		t.Errorf("the failed sink got %q, the other %q", bad.seen(), good.seen())
	}
}

func TestLastDeliveryFails(t *testing.T) {
	full := errors.New("disk full")
	b := event.NewBus()
	b.Require("bad", &recorder{err: full})
	b.Publish(step(1))
	if err := b.Close(); !errors.Is(err, full) {
		t.Errorf("error %v", err)
	}
}

func TestSync(t *testing.T) {
	r := new(recorder)
	b := event.NewBus()
	defer b.Close()
	b.Require("durable", r)
	b.Publish(step(1))
	if err := b.Sync(); err != nil || len(r.seen()) != 1 || r.synced != 1 {
		t.Errorf("%v; %q, synced %d times", err, r.seen(), r.synced)
	}
}

// A sink that hangs does not delay the run and does not affect other sinks. The events that it misses are counted and
// reported.
func TestSlowSink(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		slow, must, other := &recorder{hold: make(chan struct{})}, new(recorder), new(recorder)
		var faults []string
		b := event.NewBus()
		b.Offer("slow", slow, func(text string) { faults = append(faults, text) })
		b.Offer("other", other, nil)
		b.Require("must", must)
		began := time.Now()
		b.Publish(step(1))
		b.Flush()
		synctest.Wait() // the slow sink has step 1, and is held
		const more = event.QueueLength + 100
		for n := range int64(more) {
			b.Publish(step(2 + n))
			if n%1000 == 0 {
				b.Flush()
				synctest.Wait()
			}
		}
		if err := b.Flush(); err != nil || time.Since(began) != 0 {
			t.Errorf("%v; it took %v", err, time.Since(began))
		}
		synctest.Wait()
		if n, m := len(must.seen()), len(other.seen()); n != 1+more || m != 1+more {
			t.Errorf("the others got %d and %d events, want %d", n, m, 1+more)
		}
		close(slow.hold)
		synctest.Wait()
		if n := len(slow.seen()); n != 1+event.QueueLength {
			t.Errorf("the slow sink got %d events, want %d", n, 1+event.QueueLength)
		}
		if want := []string{"slow: too slow: 100 events were dropped"}; !slices.Equal(faults, want) {
			t.Errorf("reported %q, want %q", faults, want)
		}
		b.Close()
	})
}

// A best-effort sink that fails is reported once and not called again. One that never returns delays the end by a few
// seconds only.
func TestFailedAndHungSinks(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		gone, hung := &recorder{err: errors.New("connection refused")}, &recorder{hold: make(chan struct{})}
		var mu sync.Mutex
		var faults []string
		fault := func(text string) { mu.Lock(); defer mu.Unlock(); faults = append(faults, text) }
		b := event.NewBus()
		b.Offer("gone", gone, fault)
		b.Offer("hung", hung, fault)
		for n := range int64(3) {
			b.Publish(step(1 + n))
			if err := b.Flush(); err != nil {
				t.Errorf("the run fails with it: %v", err)
			}
			synctest.Wait()
		}
		began := time.Now()
		if err := b.Close(); err != nil || time.Since(began) > 10*time.Second {
			t.Errorf("%v after %v", err, time.Since(began))
		}
		want := []string{
			"gone: connection refused; it gets no more events", "hung: too slow: the remaining events are dropped",
		}
		if !slices.Equal(faults, want) || len(gone.seen()) != 1 || gone.closed != 1 {
			t.Errorf("reported %q, want %q; %d events, closed %d times", faults, want, len(gone.seen()), gone.closed)
		}
		close(hung.hold)
		synctest.Wait()
	})
}

// If a required sink hangs, for example on a dead disk, Publish waits for it in the end, so memory does not grow.
func TestWaitingEventsAreBounded(t *testing.T) {
	const most = 1 << 16
	must := &recorder{hold: make(chan struct{})}
	b := event.NewBus()
	b.Require("must", must)
	b.Publish(&event.Message{})
	held := func() bool { // until the sink has the message, and is held
		select {
		case must.hold <- struct{}{}:
			return true
		case <-time.After(10 * time.Second):
			return false
		}
	}
	if !held() {
		t.Fatal("the message is not delivered")
	}
	b.Publish(&event.Message{}) // the sink is held by this one
	done := make(chan struct{})
	go func() {
		defer close(done)
		s := step(1)
		for range 2*most + 1 {
			b.Publish(s)
		}
	}()
	select {
	case <-done:
		t.Error("all was published while the sink was held")
	case <-time.After(300 * time.Millisecond):
	}
	close(must.hold)
	<-done
	b.Close()
	if n := len(must.seen()); n != 2*most+3 {
		t.Errorf("the sink got %d events, want %d", n, 2*most+3)
	}
}

// Publishing a step allocates no memory after the first batches.
func TestPublishDoesNotAllocate(t *testing.T) {
	b := event.NewBus()
	defer b.Close()
	b.Require("must", nothing{})
	b.Offer("may", nothing{}, nil)
	s := step(1)
	publish := func() {
		s.Step++
		if err := b.Publish(s); err != nil {
			t.Fatal(err)
		}
	}
	for range 4 {
		for range 2000 {
			publish()
		}
		b.Flush()
	}
	if n := testing.AllocsPerRun(1000, publish); n > 0 {
		t.Errorf("%v allocations per step", n)
	}
}

type nothing struct{}

func (nothing) Take([]event.Event) error { return nil }
func (nothing) Close() error             { return nil }

// BenchmarkPublish measures the cost of a step for the trainer's thread.
func BenchmarkPublish(b *testing.B) {
	bus := event.NewBus()
	defer bus.Close()
	bus.Require("must", nothing{})
	bus.Offer("may", nothing{}, nil)
	s := &event.Step{Metrics: make([]float64, 4), Rows: make([]int32, 32)}
	b.ReportAllocs()
	for b.Loop() {
		s.Step++
		if err := bus.Publish(s); err != nil {
			b.Fatal(err)
		}
	}
}
