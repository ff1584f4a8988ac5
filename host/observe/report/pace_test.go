package report

import (
	"strings"
	"testing"
	"time"

	"github.com/xtts-host/xtts-host/host/observe/bottleneck"
	"github.com/xtts-host/xtts-host/host/observe/event"
	"github.com/xtts-host/xtts-host/host/stages/pipeline"
)

// paceRun gives steps 1 to n, of which window fills in the times in ms, and returns what was said.
func paceRun(
	p *Pace, n int64, window func(step int64) (bucket int, wait, train, other float64),
) (lines, warnings []string) {
	ms := func(v float64) time.Duration { return time.Duration(v * float64(time.Millisecond)) }
	for step := int64(1); step <= n; step++ {
		bucket, wait, training, other := window(step)
		w := &event.Step{Step: step, Bucket: bucket, Times: event.Times{
			InputWait: ms(wait), Train: ms(training), Time: ms(wait + training + other),
		}}
		found, warning := p.Step(w)
		if found != nil {
			lines = append(lines, paceLine(found))
		}
		if warning != "" {
			warnings = append(warnings, warning)
		}
	}
	return lines, warnings
}

// queue is a pipeline in which batches queue for a phase, a second more at each look.
type queue struct {
	phase string
	looks time.Duration
}

func queueing(phase string) *queue { return &queue{phase: phase} }

func (q *queue) Stats() pipeline.Stats {
	q.looks++
	busy := q.looks * time.Second
	s := pipeline.Stats{Phases: []pipeline.Phase{{Name: "decode", Busy: busy}, {Name: "target", Busy: busy}}}
	for i := range s.Phases {
		if s.Phases[i].Name == q.phase {
			s.Phases[i].Queue = busy
		}
	}
	return s
}

func TestPaceLine(t *testing.T) {
	p := &Pace{Every: 2, Pipeline: queueing("decode")}
	lines, warnings := paceRun(p, 40, func(step int64) (int, float64, float64, float64) {
		if step == 1 {
			return 0, 60000, 100, 0 // the pipeline fills: no part of a figure
		}
		return 0, 1, 80 + 40*float64(step%2), 0
	})
	const want = "pipeline  step 101.0 ± 20.0 ms  9.9 steps/s  variation 20 %  stall 1.0 %"
	if len(lines) != 2 || lines[1] != want || !strings.HasPrefix(lines[0], "pipeline  step 99.9 ± ") ||
		len(warnings) != 0 {
		t.Errorf("got %q, warnings %q", lines, warnings)
	}
}

func TestPaceIsDueEachTenthLine(t *testing.T) {
	even := func(int64) (int, float64, float64, float64) { return 0, 0, 100, 0 }
	for _, c := range []struct {
		every int64
		want  int
	}{{0, 0}, {1, 10}, {5, 4}, {10, 2}, {100, 0}} {
		if lines, _ := paceRun(&Pace{Every: c.every, Pipeline: queueing("decode")}, 200, even); len(lines) != c.want {
			t.Errorf("a line each %d steps: %d lines in 200 steps, want %d", c.every, len(lines), c.want)
		}
	}
}

// TestPaceKnowsBuckets: steps of 50 and 200 ms vary by 60 %, but not within their buckets.
func TestPaceKnowsBuckets(t *testing.T) {
	lengths := func(step int64) (int, float64, float64, float64) {
		return int(step % 2), 0, []float64{50, 200}[step%2], 0
	}
	p := &Pace{Every: 10, Pipeline: queueing("decode")}
	lines, warnings := paceRun(p, 200, lengths)
	if len(lines) != 2 || !strings.HasPrefix(lines[1], "pipeline  step 125.0 ± 0.0 ms  8.0 steps/s  variation 0.0 %") ||
		len(warnings) != 0 {
		t.Errorf("got %q, warnings %q", lines, warnings)
	}
}

func TestPaceWarnsOnce(t *testing.T) {
	setup := bottleneck.Setup{
		OnCPU: true, Threads: 2, NumWorkers: 4, PluginOf: map[string]string{"target": "features"},
		WorkersOf: map[string]int{"features": 1},
	}
	even := func(int64) (int, float64, float64, float64) { return 0, 0, 100, 0 }
	late := func(step int64) (int, float64, float64, float64) { return 0, 200 * float64(step%2), 100, 0 }
	slow := func(step int64) (int, float64, float64, float64) { return 0, 0, 50 + 200*float64(step%2), 0 }
	save := func(step int64) (int, float64, float64, float64) { return 0, 0, 50, 500 * float64(1-min(1, step%10)) }
	for _, c := range []struct {
		name    string
		queue   string
		periods []func(int64) (int, float64, float64, float64)
		want    []string // parts of each warning
	}{
		{"even", "decode", []func(int64) (int, float64, float64, float64){even, even}, nil},
		{
			"decode", "decode", []func(int64) (int, float64, float64, float64){late},
			[]string{"in decode: batches come late. Decoding limits the run: raise --num-workers (now 4)."},
		},
		{
			"a stage", "target", []func(int64) (int, float64, float64, float64){late},
			[]string{"in target: batches come " +
				"late. Stage target limits the run: give its plugin more processes, --plugin-workers features=2 (now " +
				"1)."},
		},
		{
			"training", "decode", []func(int64) (int, float64, float64, float64){slow},
			[]string{"step time varies by 67 " +
				"% within a bucket, most of it in train: something else uses the cores. Give training fewer with " +
				"--threads (now 2), or stop other programs."},
		},
		{
			"checkpoints", "decode", []func(int64) (int, float64, float64, float64){save},
			[]string{"in other: the time between the steps. That holds checkpoints"},
		},
		{
			"once for the same cause", "decode", []func(int64) (int, float64, float64, float64){late, late, late},
			[]string{"in decode"},
		},
		{
			"again for another cause", "decode", []func(int64) (int, float64, float64, float64){late, slow},
			[]string{"in decode", "in train"},
		},
		{
			"again after an even period", "decode", []func(int64) (int, float64, float64, float64){late, even, late},
			[]string{"in decode", "in decode"},
		},
	} {
		t.Run(c.name, func(t *testing.T) {
			p := &Pace{Every: 2, Setup: setup, Pipeline: queueing(c.queue)}
			paceRun(p, 20, even)
			_, warnings := paceRun(p, int64(20*len(c.periods)), func(step int64) (int, float64, float64, float64) {
				return c.periods[(step-1)/20](step)
			})
			if len(warnings) != len(c.want) {
				t.Fatalf("warnings %q, want %d", warnings, len(c.want))
			}
			for i := range c.want {
				if !strings.Contains(warnings[i], c.want[i]) {
					t.Errorf("got  %s\nwant %s", warnings[i], c.want[i])
				}
			}
		})
	}
}

// TestPaceNeedsSteps: a run that was resumed shortly before the end of a period has too few steps for a warning.
func TestPaceNeedsSteps(t *testing.T) {
	p := &Pace{Every: 10, Pipeline: queueing("decode")}
	var last *event.Pace
	for step := int64(85); step <= 100; step++ {
		w := &event.Step{Step: step, Times: event.Times{Time: time.Duration(1+step%2) * time.Second}}
		found, warning := p.Step(w)
		last = found
		if warning != "" {
			t.Errorf("warning %q", warning)
		}
	}
	if last == nil || !strings.Contains(paceLine(last), "variation 34 %") {
		t.Errorf("got %+v", last)
	}
}
