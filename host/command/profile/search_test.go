package profile

import (
	"context"
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/xtts-host/xtts-host/host/base/exit"
	"github.com/xtts-host/xtts-host/host/observe/bottleneck"
	"github.com/xtts-host/xtts-host/host/observe/report"
)

// clock adds up the virtual times of runs.
type clock struct{ at time.Time }

func (c *clock) now() time.Time { return c.at }

// grid are the values that are tried of each setting.
var grid = []struct {
	name   string
	values []string
}{
	{"num-workers", []string{"1", "2", "4", "8"}}, {"buffer-size", []string{"4", "16", "50"}},
	{"slots", []string{"2", "3"}},
	{"plugin-workers", []string{"augment=1", "augment=2", "augment=4", "augment=8"}},
}

// all returns every point of the grid.
func all() (points [][]bottleneck.Setting) {
	points = [][]bottleneck.Setting{nil}
	for _, g := range grid {
		var more [][]bottleneck.Setting
		for _, p := range points {
			for _, v := range g.values {
				more = append(more, append(slices.Clone(p), bottleneck.Setting{Name: g.name, Value: v}))
			}
		}
		points = more
	}
	return points
}

// TestSearchBesideGrid: on machines of all kinds, the search finds settings that are as fast as the best point of a
// grid, but for 5 %, in a quarter of the grid's time.
func TestSearchBesideGrid(t *testing.T) {
	random := rand.New(rand.NewPCG(3, 4))
	between := func(low, high int) time.Duration { return time.Duration(low+random.IntN(high-low)) * ms }
	points := all()
	for machine := range 6 {
		c := computer{
			decode: between(5, 150), transfer: between(0, 15), train: between(10, 60), varies: 0.2, start: time.Second,
			stages: []slow{{"target", "features", between(2, 9)}, {"noise", "augment", between(5, 200)}},
		}
		var best, spent, noise float64
		for i, p := range points {
			c.seed = uint64(i)
			r, took := c.run(t, with(usual(&c), p...))
			spent += took.Seconds()
			if r.StepsPerSecond > best {
				best, noise = r.StepsPerSecond, spread(r.StepMs.Distribution)
			}
		}
		clock := clock{}
		c.seed = 1000
		first, took := c.run(t, usual(&c))
		s := search{
			try: func(_ context.Context, changes []bottleneck.Setting) (*report.Report, error) {
				c.seed++
				r, took := c.run(t, with(usual(&c), changes...))
				clock.at = clock.at.Add(took)
				return r, nil
			},
			now: clock.now, budget: time.Hour, rows: 16, tell: func(*Trial) {},
		}
		a, err := s.run(t.Context(), first, took)
		if err != nil {
			t.Fatal(err)
		}
		searched := took.Seconds() + clock.at.Sub(time.Time{}).Seconds()
		t.Logf("machine %d: grid %.2f steps/s ± %.3f in %.0f s, search %.2f in %.0f s and %d runs (%s): %s", machine,
			best, noise*best, spent, a.fastest().StepsPerSecond, searched, len(a.Trials), key(a.Changes), a.Why)
		if a.fastest().StepsPerSecond < 0.95*best || searched > spent/4 {
			t.Errorf("machine %d: the search is slower: %+v", machine, a)
		}
	}
}

// scripted returns a search whose runs have the findings and speeds of a table, by their changes.
func scripted(t *testing.T, runs map[string]*report.Report, clock *clock) *search {
	return &search{
		try: func(_ context.Context, changes []bottleneck.Setting) (*report.Report, error) {
			clock.at = clock.at.Add(10 * time.Second)
			r, ok := runs[key(changes)]
			if !ok {
				t.Errorf("tried %q", key(changes))
				return nil, errors.New("not in the table")
			}
			if r == nil {
				return nil, exit.Refused(errors.New("it cannot be"))
			}
			return r, nil
		},
		now: clock.now, budget: time.Minute, rows: 8, tell: func(*Trial) {},
	}
}

// ran is a run of a speed, on 8 rows a step, with the changes that are predicted to gain so much.
func ran(speed, stall float64, gains ...any) *report.Report {
	r := &report.Report{StepsPerSecond: speed, InputStallRatio: stall, Steps: 50, Samples: 50 * 8}
	for i := 0; i < len(gains); i += 2 {
		name, value, _ := strings.Cut(gains[i].(string), " ")
		gain := gains[i+1].(float64)
		r.Verdict.Findings = append(r.Verdict.Findings,
			bottleneck.Finding{Change: &bottleneck.Setting{Name: name, Value: value}, Gain: &gain})
	}
	return r
}

// rows makes a run one on so many rows a step that are not empty.
func rows(n int64, r *report.Report) *report.Report {
	r.Samples = n * r.Steps
	return r
}

func TestSearch(t *testing.T) {
	place := [][]bottleneck.Setting{{{Name: "data-gpu", Value: "cpu"}, {Name: "model-gpu", Value: "0"}}}
	for _, c := range []struct {
		name   string
		first  *report.Report
		runs   map[string]*report.Report
		change func(*search)
		tried  int
		best   string
		why    string
	}{
		{"nothing to gain", ran(10, 0), nil, nil, 1, "", "no change is predicted"},
		{"little to gain", ran(10, 0.02, "slots 4", 0.01), nil, nil, 1, "", "no change is predicted"},
		{"all at once", ran(10, 0.5, "num-workers 4", 0.5, "plugin-workers a=2", 0.3), map[string]*report.Report{
			"--num-workers 4 --plugin-workers a=2": ran(19, 0.1, "plugin-workers a=3", 0.2),
			"--num-workers 4 --plugin-workers a=3": ran(22, 0),
		}, nil, 3, "--num-workers 4 --plugin-workers a=3", "no change is predicted"},
		{"one that does harm", ran(10, 0.5, "num-workers 4", 0.5, "slots 6", 0.3), map[string]*report.Report{
			"--num-workers 4 --slots 6": ran(9, 0.6), "--num-workers 4": ran(14, 0), "--slots 6": ran(8, 0),
		}, nil, 3, "--num-workers 4", "no change is predicted"},
		{"no time", ran(10, 0.5, "num-workers 4", 0.5), map[string]*report.Report{
			"--num-workers 4": ran(14, 0.3, "num-workers 8", 0.5), "--num-workers 8": ran(20, 0),
		}, func(s *search) { s.budget = 15 * time.Second }, 2, "--num-workers 4", "the rest of the budget, 5.0 s, is"},
		{"impossible", ran(10, 0.5, "buffer-size 400", 0.5), map[string]*report.Report{"--buffer-size 400": nil}, nil,
			2, "", "no change is predicted"},
		{"another place", ran(10, 0.5), map[string]*report.Report{"--data-gpu cpu --model-gpu 0": ran(12, 0)},
			func(s *search) { s.placements = place }, 2, "--data-gpu cpu --model-gpu 0", "no change"},
		{"stages that make nothing wait stay", ran(10, 0), nil, func(s *search) { s.placements = place }, 1, "",
			"no change"},
		{"larger batches, if they may be", ran(10, 0), map[string]*report.Report{
			"--batch-size 16": rows(16, ran(7, 0)), "--batch-size 32": rows(32, ran(3, 0)),
		}, func(s *search) { s.changeBatch = true }, 3, "--batch-size 16", "no change"},
		{"larger batches that are half empty", ran(10, 0), map[string]*report.Report{"--batch-size 16": ran(9.9, 0)},
			func(s *search) { s.changeBatch = true }, 2, "", "no change"},
	} {
		t.Run(c.name, func(t *testing.T) {
			s := scripted(t, c.runs, new(clock))
			if c.change != nil {
				c.change(s)
			}
			a, err := s.run(t.Context(), c.first, 10*time.Second)
			if err != nil {
				t.Fatal(err)
			}
			speed := c.first.StepsPerSecond * 8
			for _, trial := range a.Trials {
				if trial.Kept {
					speed = trial.RowsPerSecond
				}
			}
			if len(a.Trials) != c.tried || key(a.Changes) != c.best || !strings.Contains(a.Why, c.why) ||
				math.Abs(a.Gain-(speed/80-1)) > 1e-9 {
				t.Errorf("%+v", a)
			}
		})
	}
}

// TestSearchEnds: an error of a run ends the search, with what was found.
func TestSearchEnds(t *testing.T) {
	s := scripted(t, nil, new(clock))
	fault := errors.New("the disk is full")
	s.try = func(context.Context, []bottleneck.Setting) (*report.Report, error) { return nil, fault }
	a, err := s.run(t.Context(), ran(10, 0.5, "num-workers 4", 0.5), time.Second)
	if !errors.Is(err, fault) || len(a.Trials) != 1 {
		t.Errorf("%v, %+v", err, a)
	}
}

func TestTrialLine(t *testing.T) {
	predicted := 120.0
	changes := []bottleneck.Setting{{Name: "slots", Value: "4"}}
	for _, c := range []struct {
		trial Trial
		want  string
	}{
		{Trial{Changes: changes, RowsPerSecond: 110, Predicted: &predicted, Kept: true, S: 2.5},
			"  --slots 4: 110 rows/s (predicted 120), 2.5 s"},
		{Trial{Changes: changes, RowsPerSecond: 90, S: 2.5}, "  --slots 4: 90.0 rows/s, not faster, 2.5 s"},
		{Trial{Changes: changes, Failed: "no memory"}, "  --slots 4: not possible: no memory"},
	} {
		if got := fmt.Sprint(&c.trial); got != c.want {
			t.Errorf("%q, want %q", got, c.want)
		}
	}
}
