package profile

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/xtts-host/xtts-host/host/base/fold"
	"github.com/xtts-host/xtts-host/host/base/rundir"
	"github.com/xtts-host/xtts-host/host/observe/bottleneck"
	"github.com/xtts-host/xtts-host/host/observe/console"
	"github.com/xtts-host/xtts-host/host/observe/report"
	"github.com/xtts-host/xtts-host/host/settings/config"
)

// limited is the report of a run whose decoding limits it, while other programs take so much of the cores.
func limited(others float64) *report.Report {
	m := bottleneck.Measured{
		Steps: 50, Step: 100, Wait: 70, Others: others, Cores: 0.3, BucketVariation: -1, Variation: 0.5,
		Phases: []bottleneck.Phase{{Name: "decode", Ms: 90}, {Name: "transfer", Ms: 1}}, Limit: "decode", Queued: true,
		Setup: bottleneck.Setup{NumWorkers: 1, BufferSize: 50, Slots: 3, Cores: 8, BatchSize: 4},
	}
	r := &report.Report{
		Bundle: "myxtts-pico", Device: "GPU 0: NVIDIA H100 80GB HBM3 (0000:3b:00.0)", Precision: "f32",
		StepsPerSecond: 10, Samples: 200, Steps: 50, InputStallRatio: 0.7, WallS: 1,
	}
	r.StepMs.Distribution = report.Distribution{Steps: 50, Mean: 100, Std: 50, Variation: 0.5, Error: 10}
	r.Verdict = report.Verdict{
		Findings: bottleneck.Diagnose(&m), Parts: bottleneck.Parts(&m), Checks: bottleneck.Checks(&m), Cores: m.Cores,
		Others: others,
	}
	return r
}

// TestNarrow: in a narrow terminal no line is wider, but for the command that is copied.
func TestNarrow(t *testing.T) {
	for _, width := range []int{72, 80} {
		for _, busy := range []float64{0, 0.3, 0.7} {
			var out bytes.Buffer
			p := &profiler{
				set:     config.New(),
				console: console.Console{Out: &out, Err: io.Discard, Width: func() int { return width }},
			}
			h := headroom{p, limited(busy), limited(0.2)}
			h.ready.StepsPerSecond = 9
			r := ResultOf(h.r, 4, true)
			long := strings.Repeat("why ", 30)
			r.Headroom = []Headroom{h.loader(), {What: "a batch of 32", Text: "not measured: " + long}}
			fmt.Fprint(&out, r.Table(width))
			p.say("%s\n", &Trial{Changes: []bottleneck.Setting{{Name: "plugin-workers", Value: "features=12"},
				{Name: "num-workers", Value: "12"}, {Name: "buffer-size", Value: "120"}}, Failed: long})
			for line := range strings.Lines(out.String()) {
				if line = strings.TrimRight(line, "\n"); fold.Width(line) > width {
					t.Errorf("%d columns, others %g: %q", width, busy, line)
				}
			}
			text := strings.Join(strings.Fields(out.String()), " ")
			if strings.Contains(text, "uncertain because") != (busy == 0.3) ||
				strings.Contains(text, "Not predicted: other programs") != (busy == 0.7) ||
				strings.Contains(text, "too busy with them for a prediction") != (busy == 0.7) ||
				strings.Contains(text, "other programs 30 %. This machine is busy with them") != (busy == 0.3) {
				t.Errorf("others %g:\n%s", busy, out.String())
			}
		}
	}
}

// TestProgress: while a run goes on, its steps are shown.
func TestProgress(t *testing.T) {
	var said bytes.Buffer
	p := &profiler{set: config.New(), console: console.Console{Out: io.Discard, Err: &said}, dir: t.TempDir()}
	line := func(n int) {
		text := ""
		for step := 1; step <= n; step++ {
			text += fmt.Sprintf(`{"step":%d,"loss":1}`+"\n", step)
		}
		if err := os.WriteFile(filepath.Join(p.dir, rundir.MetricsFile), []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	line(3)
	for n := 0; said.Len() == 0; n++ { // the first line comes after a second
		end := p.progress(40)
		time.Sleep(time.Duration(n+1) * 1500 * time.Millisecond)
		end()
	}
	if !strings.HasPrefix(said.String(), "measured 3 of 40 steps of run 1 (7 %), ") {
		t.Errorf("%q", said.String())
	}
}

// TestBusySearch: changes whose gain cannot be predicted, because other programs are busy, are tried all the same.
func TestBusySearch(t *testing.T) {
	var tried []string
	s := search{
		try: func(_ context.Context, changes []bottleneck.Setting) (*report.Report, error) {
			tried = append(tried, key(changes))
			return limited(0), nil
		},
		now: time.Now, budget: time.Hour, rows: 4, tell: func(*Trial) {},
	}
	first := limited(0.7)
	if f := first.Verdict.Findings[0]; f.Gain != nil || !f.Uncertain || f.Change == nil {
		t.Fatalf("%+v", f)
	}
	_, err := s.run(t.Context(), first, time.Second)
	if err != nil || len(tried) == 0 || !strings.HasPrefix(tried[0], "--num-workers ") {
		t.Errorf("%q, %v", tried, err)
	}
}

// TestBudgetAlone: a time for trying is refused without --apply, which would try.
func TestBudgetAlone(t *testing.T) {
	set := config.New()
	for _, o := range []Options{{Steps: 10, Budget: time.Minute, Limited: true}, {Steps: 10, Budget: time.Minute}} {
		if err := o.check(set); (err != nil) != o.Limited {
			t.Errorf("%+v: %v", o, err)
		}
	}
}
