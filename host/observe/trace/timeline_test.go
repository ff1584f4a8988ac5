package trace

import (
	"context"
	"errors"
	"io"
	"os"
	"reflect"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/xtts-host/xtts-host/host/observe/trace/tracetest"
	"github.com/xtts-host/xtts-host/host/stages/pipeline"
)

const ms = time.Millisecond

// toy is a plan of n batches and a pipeline whose parts take a fixed time. Its stage processes all batches at the same
// time.
type toy struct {
	n, at                   int
	decode, stage, transfer time.Duration
}

func (s *toy) Next(b *pipeline.Batch) bool {
	if s.at == s.n {
		return false
	}
	b.Index, b.Step, b.Bucket, b.Eval = s.at, int64(s.at), s.at%2, s.at == 3
	s.at++
	return true
}

func (s *toy) Decode(context.Context, int, *pipeline.Batch) ([]pipeline.Rejected, error) {
	time.Sleep(s.decode)
	return nil, nil
}

func (s *toy) Process(context.Context, *pipeline.Batch) ([]pipeline.Rejected, time.Duration, error) {
	time.Sleep(s.stage)
	return nil, s.stage, nil
}

func (s *toy) Copy(int, *pipeline.Batch) error {
	time.Sleep(s.transfer)
	return nil
}

// drive trains on a toy, in virtual time, and returns the timeline of its first steps.
func drive(t *testing.T, s *toy, ring, steps int, train time.Duration) (file tracetest.File, whole bool) {
	w, path := create(t)
	line := NewTimeline(w,
		Run{Workers: 1, Stages: []string{"mel"}, DeviceSlots: 2, Bytes: []int{100, 200}, Steps: steps, GPU: true})
	p, err := pipeline.New(pipeline.Config{
		Source: s, Decoder: s, Stages: []pipeline.Step{{Name: "mel", Stage: s}}, Device: s, RingSlots: ring,
		DeviceSlots: 2, Tracer: line,
	})
	if err != nil {
		t.Fatal(err)
	}
	var wg sync.WaitGroup
	wg.Go(func() { p.Run(t.Context()) })
	defer wg.Wait()
	for {
		began := time.Now()
		d, err := p.Acquire(t.Context())
		if errors.Is(err, io.EOF) {
			break
		}
		got := time.Now()
		line.Trained("wait", &d.Batch, began, got)
		time.Sleep(train)
		line.Trained("train", &d.Batch, got, time.Now())
		line.Computed("train", got.Add(ms), time.Now())
		line.Step()
		p.Release(d)
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	data, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return tracetest.Read(t, path), data[len(data)-2] == ']'
}

func times(spans []tracetest.Span) (out [][2]time.Duration) {
	for _, s := range spans {
		out = append(out, [2]time.Duration{s.Began / ms, s.Ended / ms})
	}
	return out
}

// TestTimeline: decode takes 2 ms, the stage 5, the transfer 1, training 10.
func TestTimeline(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		file, whole := drive(t, &toy{n: 3, decode: 2 * ms, stage: 5 * ms, transfer: ms}, 2, 100, 10*ms)
		if !whole {
			t.Error("the file has no end")
		}
		for _, want := range []struct {
			group, track string
			times        [][2]time.Duration
		}{
			{"pipeline", "decode 0", [][2]time.Duration{{0, 2}, {2, 4}, {8, 10}}},
			{"pipeline", "mel", [][2]time.Duration{{2, 7}, {10, 15}}},
			{"pipeline", "mel (2)", [][2]time.Duration{{4, 9}}}, // at the same time as the first
			{"pipeline", "transfer", [][2]time.Duration{{7, 8}, {9, 10}, {18, 19}}},
			{"device slots", "slot 0", [][2]time.Duration{
				{0, 7}, {7, 8}, {8, 8}, {8, 18}, {18, 18}, {18, 19}, {19, 28}, {28, 38},
			}},
			{"device slots", "slot 1", [][2]time.Duration{{0, 9}, {9, 10}, {10, 18}, {18, 28}}},
			{"trainer", "trainer", [][2]time.Duration{{0, 8}, {8, 18}, {18, 18}, {18, 28}, {28, 28}, {28, 38}}},
			{"GPU", "compute", [][2]time.Duration{{9, 18}, {19, 28}, {29, 38}}},
			{"GPU", "transfer", nil},
		} {
			spans, ok := file.Spans[want.group][want.track]
			if got := times(spans); !ok || !reflect.DeepEqual(got, want.times) {
				t.Errorf("%s, %s: %v, want %v", want.group, want.track, got, want.times)
			}
		}
		second := file.Spans["pipeline"]["transfer"][1]
		delete(second.Args, "ring slot") // either is possible
		if want := (map[string]int{
			"epoch": 0, "batch": 1, "bucket": 1, "step": 2, "device slot": 1, "bytes": 200,
		}); !reflect.DeepEqual(second.Args, want) {
			t.Errorf("a transfer has %v, want %v", second.Args, want)
		}
		var states []string
		for _, s := range file.Spans["device slots"]["slot 1"] {
			states = append(states, s.Name)
		}
		if want := []string{"FREE", "PREPARING", "READY", "TRAINING"}; !reflect.DeepEqual(states, want) {
			t.Errorf("states %v, want %v", states, want)
		}
		for name, most := range map[string]int{"ring slots building": 2, "ring slots ready": 1} {
			values, highest := file.Counters[name], 0
			for _, v := range values {
				if highest = max(highest, v); v < 0 {
					t.Errorf("%s: %d", name, v)
				}
			}
			if highest != most || values[len(values)-1] != 0 {
				t.Errorf("%s: %v, want %d at most and 0 at the end", name, values, most)
			}
		}
	})
}

// TestSteps: after the last traced step nothing is written, and the run continues.
func TestSteps(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		file, whole := drive(t, &toy{n: 50, decode: ms, stage: ms, transfer: ms}, 4, 7, 10*ms)
		if n := len(file.Spans["trainer"]["trainer"]); n != 14 || !whole {
			t.Errorf("%d spans of 7 steps, whole %v", n, whole)
		}
		if n := len(file.Spans["pipeline"]["transfer"]); n > 7+2 {
			t.Errorf("%d transfers by the seventh step, with two device slots", n)
		}
		evaluation := file.Spans["trainer"]["trainer"][6].Args
		if _, step := evaluation["step"]; evaluation["evaluation"] != 1 || step {
			t.Errorf("an evaluation batch has %v", evaluation)
		}
	})
}
