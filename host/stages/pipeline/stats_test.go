package pipeline

import (
	"context"
	"io"
	"math"
	"testing"
	"testing/synctest"
	"time"
)

// crowd is a stage that works on so many batches at a time.
type crowd struct {
	turns chan struct{}
	takes time.Duration
}

func (s crowd) Process(context.Context, *Batch) ([]Rejected, time.Duration, error) {
	s.turns <- struct{}{}
	defer func() { <-s.turns }()
	time.Sleep(s.takes)
	return nil, s.takes, nil
}

// TestFigures: the pipeline sees how many batches a stage works on at a time, and has the times of each phase.
func TestFigures(t *testing.T) {
	for _, at := range []int{1, 2, 5} {
		synctest.Test(t, func(t *testing.T) {
			p, _, err := drive(t, Config{
				Source: &plan{n: 100}, RingSlots: 12, DeviceSlots: 2, Workers: 8, Device: device(instant),
				Decoder: decoder(func(b *Batch) ([]Rejected, error) {
					time.Sleep(time.Duration(1+b.Index%2) * time.Millisecond)
					return nil, nil
				}),
				Stages: []Step{{Name: "crowd", Stage: crowd{make(chan struct{}, at), 40 * time.Millisecond}}},
			}, nil)
			if err != io.EOF {
				t.Fatal(err)
			}
			s := p.Figures()
			if got := s.Phases[1].Parallel; got != at {
				t.Errorf("%d at a time, want %d", got, at)
			}
			decode, stage := &s.Times[0], &s.Times[1]
			if decode.N != 100 || math.Abs(decode.Mean-1.5) > 1e-9 || decode.Min != 1 || decode.Max != 2 ||
				stage.Mean != 40 || stage.Std() != 0 {
				t.Errorf("decode %+v, stage %+v", decode.Moments, stage.Moments)
			}
			if p.Stats().Times != nil {
				t.Error("Stats has times")
			}
		})
	}
}
