package profile

import (
	"context"
	"errors"
	"io"
	"math"
	"strings"
	"testing"

	"github.com/xtts-host/xtts-host/gpu"
	"github.com/xtts-host/xtts-host/host/base/exit"
	"github.com/xtts-host/xtts-host/host/data/batch"
	"github.com/xtts-host/xtts-host/host/observe/bottleneck"
	"github.com/xtts-host/xtts-host/host/observe/console"
	"github.com/xtts-host/xtts-host/host/observe/report"
	"github.com/xtts-host/xtts-host/host/settings/config"
	"github.com/xtts-host/xtts-host/host/settings/place"
	"github.com/xtts-host/xtts-host/ortgraphs"
)

// TestHeadroomEnds: an error of a larger batch is its answer, but the end of the program by the user ends the profile.
func TestHeadroomEnds(t *testing.T) {
	bundle, err := ortgraphs.Load("../../../ortgraphs/testdata/pico")
	if err != nil {
		t.Fatal(err)
	}
	ended, end := context.WithCancel(t.Context())
	end()
	full, killed := exit.Refused(errors.New("no memory")), errors.Join(errors.New("training ends"), context.Canceled)
	for _, c := range []struct {
		name string
		ctx  context.Context
		err  error // of the run with a larger batch
		want error
	}{
		{"too large", t.Context(), full, nil}, {"interrupted", t.Context(), exit.ErrInterrupted, exit.ErrInterrupted},
		{"cancelled", ended, killed, context.Canceled},
	} {
		p := &profiler{
			set: config.New(), bundle: bundle, console: console.Console{Out: io.Discard, Err: io.Discard},
			place: place.Placement{Model: place.Role{GPU: gpu.Device{UUID: "GPU-1"}}},
		}
		size := p.set.BatchSize
		p.run = func(_ context.Context, set *config.Set, _ console.Console, _ batch.Input) (*report.Report, error) {
			if set.BatchSize != size {
				return nil, c.err
			}
			return &report.Report{StepsPerSecond: 10}, nil
		}
		r, err := p.profile(c.ctx)
		switch {
		case c.want != nil && (r != nil || !errors.Is(err, c.want)):
			t.Errorf("%s: %v, %v", c.name, r, err)
		case c.want == nil && (err != nil || !strings.Contains(r.Headroom[3].Text, "not measured: no memory")):
			t.Errorf("%s: %+v, %v", c.name, r, err)
		}
	}
}

// TestSecondGPUBound: another GPU gains no more than batches that are always ready.
func TestSecondGPUBound(t *testing.T) {
	for _, c := range []struct{ times, ready, want float64 }{{2.3, 110, 0.1}, {1.05, 110, 0.05}, {2.3, 90, 0}} {
		h := headroom{
			profiler: &profiler{place: place.Placement{Model: place.Role{GPU: gpu.Device{UUID: "GPU-1"}}}},
			r:        &report.Report{StepsPerSecond: 100}, ready: &report.Report{StepsPerSecond: c.ready},
		}
		h.r.Verdict.SecondGPU = &bottleneck.SecondGPU{Times: c.times, Reason: "the pipeline waits"}
		out := h.secondGPU()
		if out.Gain == nil || math.Abs(*out.Gain-c.want) > 1e-9 ||
			strings.Contains(out.Text, "batches that are ready") != (c.want < c.times-1.001) {
			t.Errorf("times %g, ready %g: %+v, want %g", c.times, c.ready, out, c.want)
		}
	}
}
