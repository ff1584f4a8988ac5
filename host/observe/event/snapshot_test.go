package event_test

import (
	"errors"
	"math"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/xtts-host/xtts-host/host/observe/event"
)

// TestWorkShowsNames: the name of a list controls no terminal.
func TestWorkShowsNames(t *testing.T) {
	for of, want := range map[int]string{0: `reading 2 a\n\x1b[2Jb`, 3: `reading 2/3 a\n\x1b[2Jb`} {
		if got := (&event.Work{Task: event.Reading, Unit: "a\n\x1b[2Jb", Done: 2, Of: of}).String(); got != want {
			t.Errorf("%q, want %q", got, want)
		}
	}
}

func timed(n int64, took, wait time.Duration) *event.Step {
	return &event.Step{
		Step: n, Loss: 1.5, Metrics: []float64{0.25}, LR: 1e-3, Times: event.Times{Time: took, InputWait: wait},
	}
}

func TestSnapshot(t *testing.T) {
	b := event.NewBus()
	defer b.Close()
	if s := b.Snapshot(); s.Phase != event.Preparing || s.Step != 0 || s.Evaluation != nil {
		t.Errorf("at first: %+v", s)
	}
	b.Publish(&event.Start{Bundle: "nano", Metrics: []string{"mel"}, Step: 40, Total: 240})
	b.Publish(&event.Phase{Phase: event.Training})
	b.Publish(timed(41, time.Minute, 0)) // it waits for the pipeline: no speed is made of it
	s := b.Snapshot()
	if s.Step != 41 || s.Loss != 1.5 || s.Metrics[0] != 0.25 || s.LR != 1e-3 || s.Speed != (event.Speed{}) ||
		s.Phase != event.Training || s.Run.Bundle != "nano" {
		t.Errorf("after the first step: %+v", s)
	}
	for n := int64(42); n <= 140; n++ {
		b.Publish(timed(n, 100*time.Millisecond, 400*time.Microsecond))
	}
	b.Publish(&event.Work{Task: event.Evaluating, Ended: true, Time: 6 * time.Second})
	b.Publish(&event.Evaluation{Step: 140, Loss: 2, Metrics: []float64{1}, Time: 6 * time.Second})
	b.Publish(&event.Work{Task: event.Speaking, Ended: true, Time: 3900 * time.Millisecond})
	b.Publish(&event.Work{Task: event.Saving, Ended: true, Time: time.Hour}) // it is part of a step
	s = b.Snapshot()                                                         // of what is delivered and of what waits
	if s.Step != 140 || math.Abs(s.StepsPerSecond-10) > 1e-9 || math.Abs(s.InputStall-0.004) > 1e-9 ||
		s.Left != 20*time.Second || s.Evaluation.Loss != 2 {
		t.Errorf("at 10 steps/s, with an evaluation and sentences as long as 99 steps: %+v", s)
	}
	for n := int64(141); n <= 240; n++ { // twice as slow: the last steps say so
		slow := timed(n, 200*time.Millisecond, 0)
		slow.Skipped = n == 240
		b.Publish(slow)
	}
	b.Publish(&event.Checkpoint{Step: 200, Path: "step-000200"})
	b.Publish(&event.Checkpoint{Step: 240, Err: errors.New("no room")})
	b.Publish(&event.Memory{Role: "Model", Used: 1})
	b.Publish(&event.Memory{Role: "Data", Used: 2})
	b.Publish(&event.Memory{Role: "Model", Used: 3})
	b.Publish(&event.Warning{})
	b.Publish(&event.Finish{Step: 240, Outcome: "done"})
	s = b.Snapshot()
	if math.Abs(s.StepsPerSecond-5) > 0.05 || s.Left != 0 || !math.IsNaN(s.Loss) {
		t.Errorf("at the end: %+v", s)
	}
	if s.Checkpoint.Step != 200 || len(s.Memory) != 2 || s.Memory[0].Used != 3 || s.Memory[1].Used != 2 ||
		s.Warnings != 1 || s.Outcome != "done" {
		t.Errorf("at the end: %+v", s)
	}
}

// TestWork: a work is under way until it has ended, and the parts of one that come fast are not all events.
func TestWork(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		sink := new(recorder)
		b := event.NewBus()
		b.Require("works", sink)
		job := b.Begin(event.Work{Task: event.Speaking, Unit: "sentences", Of: 200})
		synctest.Wait()
		if s := b.Snapshot(); s.Work == nil || s.Work.String() != "speaking   0/200 sentences" ||
			len(sink.seen()) != 1 {
			t.Errorf("begun: %v, %d delivered", s.Work, len(sink.seen()))
		}
		for n := range 50 {
			time.Sleep(10 * time.Millisecond)
			job.Do(n+1, 200)
		}
		w := b.Snapshot().Work
		if w.Done != 50 || w.Time != 500*time.Millisecond || w.Left(time.Now()) != 1500*time.Millisecond ||
			w.Left(time.Now().Add(time.Second)) != 500*time.Millisecond {
			t.Errorf("%v after %v, left %v", w, w.Time, w.Left(time.Now()))
		}
		job.End()
		job.End()
		if s := b.Snapshot(); s.Work != nil {
			t.Errorf("ended: %v", s.Work)
		}
		b.Close()
		if n := len(sink.seen()); n != 1+5+1 {
			t.Errorf("%d events, want one each 100 ms, and those of the beginning and the end", n)
		}
	})
}

// TestReader: another name is another work.
func TestReader(t *testing.T) {
	b := event.NewBus()
	defer b.Close()
	r := b.Reader()
	r.Close()
	r.Progress("lines of a.csv", 1, 2)
	r.Progress("recordings of a.csv", 0, 40)
	if w := b.Snapshot().Work; w.String() != "reading  0/40 recordings of a.csv" {
		t.Errorf("got %s", w)
	}
	r.Close()
	if w := b.Snapshot().Work; w != nil {
		t.Errorf("%s is under way", w)
	}
}

// Any number of readers ask during the run. Steps never decrease, and a Snapshot does not change.
func TestSnapshotWhileTraining(t *testing.T) {
	b := event.NewBus()
	b.Require("must", nothing{})
	b.Publish(&event.Start{Total: 3000})
	over := make(chan struct{})
	var readers sync.WaitGroup
	for range 3 {
		readers.Go(func() {
			var before event.Snapshot
			for {
				s := b.Snapshot()
				if s.Step < before.Step || s.Step > 0 && s.Metrics[0] != float64(s.Step) ||
					before.Step > 0 && before.Metrics[0] != float64(before.Step) {
					t.Errorf("step %d (%v) after step %d (%v)", s.Step, s.Metrics, before.Step, before.Metrics)
					return
				}
				before = s
				select {
				case <-over:
					return
				default:
				}
			}
		})
	}
	s := step(1)
	for n := range int64(3000) {
		s.Step, s.Metrics[0] = n+1, float64(n+1)
		if err := b.Publish(s); err != nil {
			t.Fatal(err)
		}
		if n%100 == 0 {
			b.Publish(&event.Memory{Role: "Model", Used: n})
		}
	}
	close(over)
	readers.Wait()
	if s := b.Snapshot(); s.Step != 3000 {
		t.Errorf("at the end step %d", s.Step)
	}
	b.Close()
	if s := b.Snapshot(); s.Step != 3000 {
		t.Errorf("after the end step %d", s.Step)
	}
}
