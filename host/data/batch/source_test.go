package batch

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/xtts-host/xtts-host/host/data/dataset"
	"github.com/xtts-host/xtts-host/host/stages/pipeline"
	"github.com/xtts-host/xtts-host/shared/manifest"
)

// testPlan has n batches of two rows, the last of them with an empty row.
func testPlan(t *testing.T, n int, eval bool) *dataset.Plan {
	t.Helper()
	rows := make([]dataset.Row, 2*n-1)
	for i := range rows {
		rows[i].Samples = 1 + i
	}
	cfg := dataset.PlanConfig{Seed: 1, BatchSize: 2, Buckets: []manifest.Bucket{{"T_wav": 1000}}}
	newPlan := dataset.NewPlan
	if eval {
		newPlan = dataset.NewEvalPlan
	}
	p, err := newPlan(rows, cfg)
	if err != nil {
		t.Fatal(err)
	}
	if p.Batches() != n {
		t.Fatalf("%d batches, want %d", p.Batches(), n)
	}
	return p
}

// word names a batch and its place in the sequence: "step.micro epoch/index [rows]", with "." after the last batch of a
// window or evaluation.
func word(b *pipeline.Batch) string {
	text := fmt.Sprintf("%d.%d %d/%d %v", b.Step, b.Micro, b.Epoch, b.Index, b.Rows)
	if b.Eval {
		text = fmt.Sprintf("eval.%d %d/%d %v", b.Micro, b.Epoch, b.Index, b.Rows)
	}
	if b.Last {
		text += "."
	}
	return text
}

// runsDry takes what is left of a source, at most n batches.
func runsDry(t *testing.T, s *Source, n int) []string {
	t.Helper()
	var out []string
	var b pipeline.Batch
	for s.Next(&b) {
		if len(out) == n {
			t.Fatalf("more than %d batches; the last is %s", n, word(&b))
		}
		out = append(out, word(&b))
	}
	if s.Next(&b) {
		t.Fatal("a batch after the end")
	}
	return out
}

// expected writes the sequence down by its definition: epoch by epoch, window by window.
func expected(s *Source) []string {
	var out []string
	step, steps := int64(0), s.Total()
	for epoch := range s.Epochs {
		e := s.Train.Epoch(epoch)
		for first := 0; first < e.Len() && step < steps; first += s.Accumulate {
			end := min(first+s.Accumulate, e.Len())
			for i := first; i < end; i++ {
				b := pipeline.Batch{
					Epoch: epoch, Index: i, Rows: e.Batch(i).Rows, Step: step, Micro: i - first, Last: i == end-1,
				}
				out = append(out, word(&b))
			}
			step++
			atEpoch := s.EvalEvery == 0 && end == e.Len()
			atStep := s.EvalEvery > 0 && step%s.EvalEvery == 0
			if s.Val == nil || !atEpoch && !atStep && step != steps {
				continue
			}
			for i, n := 0, s.Val.Batches(); i < n; i++ {
				b := pipeline.Batch{Index: i, Rows: s.Val.Epoch(0).Batch(i).Rows, Eval: true, Micro: i, Last: i == n-1}
				out = append(out, word(&b))
			}
		}
	}
	return out
}

func TestSourceSequence(t *testing.T) {
	for _, tt := range []struct {
		name string
		Source
		steps, evaluations int
		short              int // windows with fewer batches than accumulate
	}{
		{"plain", Source{Train: testPlan(t, 5, false), Accumulate: 1, Epochs: 2}, 10, 0, 0},
		{"windows end with the epoch", Source{Train: testPlan(t, 5, false), Accumulate: 2, Epochs: 3}, 9, 0, 3},
		{"windows longer than an epoch", Source{Train: testPlan(t, 3, false), Accumulate: 8, Epochs: 2}, 2, 0, 2},
		{
			"evaluation after every epoch",
			Source{Train: testPlan(t, 5, false), Val: testPlan(t, 2, true), Accumulate: 2, Epochs: 3}, 9, 3, 3,
		},
		{"evaluation every 2 steps and at the end", Source{
			Train: testPlan(t, 5, false), Val: testPlan(t, 2, true), Accumulate: 1, Epochs: 1, EvalEvery: 2,
		}, 5, 3, 0},
		{"evaluation at the end only", Source{
			Train: testPlan(t, 5, false), Val: testPlan(t, 2, true), Accumulate: 1, Epochs: 1, EvalEvery: 99,
		}, 5, 1, 0},
		{"max-steps within an epoch", Source{
			Train: testPlan(t, 5, false), Val: testPlan(t, 1, true), Accumulate: 1, Epochs: 9, MaxSteps: 7,
		}, 7, 2, 0},
		{
			"max-steps beyond the epochs", Source{Train: testPlan(t, 5, false), Accumulate: 5, Epochs: 2, MaxSteps: 7},
			2, 0, 0,
		},
	} {
		t.Run(tt.name, func(t *testing.T) {
			s := tt.Source
			s.Start(pipeline.Position{})
			want := expected(&s)
			if got := runsDry(t, &s, len(want)); !slices.Equal(got, want) {
				t.Errorf("got  %q\nwant %q", got, want)
			}
			var steps, evaluations, short int
			var b pipeline.Batch
			s = tt.Source
			s.Start(pipeline.Position{})
			for epoch := 0; s.Next(&b); {
				switch {
				case b.Eval && b.Last:
					evaluations++
				case b.Last:
					steps++
					if b.Micro+1 < s.Accumulate {
						short++
					}
				}
				if !b.Eval && b.Micro > 0 && b.Epoch != epoch {
					t.Errorf("window of step %d crosses into epoch %d", b.Step, b.Epoch)
				}
				epoch = b.Epoch
			}
			if steps != tt.steps || evaluations != tt.evaluations || short != tt.short {
				t.Errorf("%d steps, %d evaluations, %d short windows; want %d, %d, %d", steps, evaluations, short,
					tt.steps, tt.evaluations, tt.short)
			}
		})
	}
}

// place is where a run may be interrupted, and how many batches lie before it.
type place struct {
	pipeline.Position
	batches int
}

// places goes through the sequence as train.Loop does and lists every state in which it takes a checkpoint: after each
// window, whether an evaluation follows or not, and after each evaluation.
func places(s *Source) []place {
	s.Start(pipeline.Position{})
	list := []place{{}}
	var p place
	var b pipeline.Batch
	for s.Next(&b) {
		p.batches++
		switch {
		case !b.Last:
			continue
		case b.Eval:
			p.EvaluatedStep = p.Step
		default:
			p.Step, p.Epoch, p.Batch = b.Step+1, b.Epoch, b.Index+1
		}
		list = append(list, p)
	}
	return list
}

// TestSourceContinues starts sources of random sizes at every place of their sequence: what follows is what followed in
// the run that was not interrupted.
func TestSourceContinues(t *testing.T) {
	const sources = 150
	r := rand.New(rand.NewPCG(1, 2))
	places0, due := 0, 0
	for range sources {
		s := Source{
			Train: testPlan(t, 1+r.IntN(12), false), Accumulate: 1 + r.IntN(5), Epochs: 1 + r.IntN(4),
			EvalEvery: []int64{0, 1, 2, 3, 7, 100}[r.IntN(6)], MaxSteps: int64(max(0, r.IntN(40)-10)),
		}
		if r.IntN(4) > 0 {
			s.Val = testPlan(t, 1+r.IntN(3), true)
		}
		want := expected(&s)
		for _, p := range places(&s) {
			again := s
			again.epoch, again.index, again.step, again.micro, again.evalIndex = 0, 0, 0, 0, 0
			again.Start(p.Position)
			if got := runsDry(t, &again, len(want)); !slices.Equal(got, want[p.batches:]) {
				t.Fatalf("%d batches, windows of %d, evaluation every %d, %d epochs, %d steps at most: after %+v\n"+
					"got  %q\nwant %q",
					s.Train.Batches(), s.Accumulate, s.EvalEvery, s.Epochs, s.MaxSteps, p.Position, got,
					want[p.batches:])
			}
			places0++
			if p.batches < len(want) && p.Step > 0 && want[p.batches][0] == 'e' {
				due++
			}
		}
	}
	if places0 < 1000 || due < 100 {
		t.Errorf("only %d places were tried, %d of them with an evaluation due", places0, due)
	}
}

// TestSourceWithAnotherLength resumes a run with an earlier or later last step.
func TestSourceWithAnotherLength(t *testing.T) {
	long := Source{
		Train: testPlan(t, 5, false), Val: testPlan(t, 1, true), Accumulate: 1, Epochs: 4, EvalEvery: 4, MaxSteps: 10,
	}
	all := expected(&long)
	short := long
	short.MaxSteps = 6
	ends := places(&short)
	end := ends[len(ends)-1]
	if end.Step != 6 || end.EvaluatedStep != 6 {
		t.Fatalf("the short run ends at %+v", end)
	}
	again := long
	again.Start(end.Position)
	got := runsDry(t, &again, len(all))
	if want := all[end.batches-1:]; !slices.Equal(got, want) { // the evaluation at its end is not in the long run
		t.Errorf("longer:\ngot  %q\nwant %q", got, want)
	}
	again = short
	again.Start(pipeline.Position{Step: 9, Epoch: 1, Batch: 4, EvaluatedStep: 8})
	if got := runsDry(t, &again, len(all)); len(got) > 0 {
		t.Errorf("shorter than what is done already: %q", got)
	}
}

// TestStepsAlone: without a bound by epochs the steps are one.
func TestStepsAlone(t *testing.T) {
	s := Source{Train: testPlan(t, 5, false), Accumulate: 1, MaxSteps: 12}
	s.Start(pipeline.Position{})
	var b pipeline.Batch
	n := int64(0)
	for s.Next(&b) {
		n++
	}
	if n != 12 || s.Total() != 12 || !s.Done() || b.Epoch != 2 || b.Index != 1 {
		t.Errorf("%d batches of %d, the last is %d/%d, done %v", n, s.Total(), b.Epoch, b.Index, s.Done())
	}
}
