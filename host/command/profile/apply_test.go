package profile

import (
	"context"
	"io"
	"testing"
	"time"

	"github.com/xtts-host/xtts-host/host/data/batch"
	"github.com/xtts-host/xtts-host/host/observe/bottleneck"
	"github.com/xtts-host/xtts-host/host/observe/console"
	"github.com/xtts-host/xtts-host/host/observe/report"
	"github.com/xtts-host/xtts-host/host/settings/config"
)

// TestTrialsLast: a trial measures 5 seconds at the speed of the first run, and no fewer steps than asked for.
func TestTrialsLast(t *testing.T) {
	for speed, want := range map[float64]int64{0.5: 100, 200: 1000} {
		p := &profiler{
			Options: Options{Steps: 100, Budget: time.Minute}, set: config.New(),
			console: console.Console{Out: io.Discard, Err: io.Discard}, dir: t.TempDir(),
		}
		tried := 0
		p.run = func(_ context.Context, set *config.Set, _ console.Console, _ batch.Input) (*report.Report, error) {
			if tried++; set.MaxSteps != batch.WarmSteps+1+want {
				t.Errorf("at %g steps/s, a trial has %d steps, want %d after the first ones", speed, set.MaxSteps, want)
			}
			return &report.Report{StepsPerSecond: speed, Steps: 1, Samples: 1}, nil
		}
		first := &report.Report{StepsPerSecond: speed, Steps: 1, Samples: 1}
		gain := 0.5
		first.Verdict.Findings = []bottleneck.Finding{
			{Gain: &gain, Change: &bottleneck.Setting{Name: "num-workers", Value: "5"}},
		}
		if _, err := p.apply(t.Context(), &Result{report: first}); err != nil || tried != 1 {
			t.Errorf("%v; %d trials", err, tried)
		}
	}
}
