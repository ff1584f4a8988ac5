package nans

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/xtts-host/xtts-host/host/base/exit"
	"github.com/xtts-host/xtts-host/host/train/nantrace"
)

// TestString: the line of a trace says what was found, in words.
func TestString(t *testing.T) {
	at := -0.25
	log := &nantrace.Operation{
		Operator: "Log", Value: "log_3", Pass: "forward", Line: "model.py:88", After: "a.weight", Before: "b.weight",
		Gives: &nantrace.Values{Name: "log_3", NaN: 1}, Reads: []nantrace.Values{{Name: "x", At: &at}},
	}
	div := &nantrace.Operation{
		Operator: "Div", Value: "div", Pass: "backward", After: "a.weight", Gives: &nantrace.Values{Infinite: 1200},
		Reads: []nantrace.Values{{Min: 0, Max: 2}, {Name: "y", At: &at}},
	}
	clips := []Clip{{0, 1, "A/1"}, {0, 2, "A/2"}, {0, 3, "A/3"}, {0, 5, "A/5"}}
	for _, c := range []struct {
		trace Trace
		want  string
	}{
		{
			Trace{Found: &nantrace.Found{Where: "operation", Operation: log, Rows: []int{1}}, Clips: clips[:1]},
			"Log (log_3, model.py:88) returns NaN (1 element) in the forward pass, after a.weight and before " +
				"b.weight; its input is -0.250; clip A/1 (row 1)",
		},
		{
			Trace{
				Found: &nantrace.Found{
					Where: "operation", Operation: div, Becomes: &nantrace.Operation{Operator: "Mul", Value: "mul"},
					Rows: []int{1, 2, 3, 5},
				},
				Clips: clips, Player: "second",
			},
			"Div (div) returns infinities (1,200 elements) in the backward pass, near a.weight; its inputs are 0 " +
				"to 2.000 and -0.250; Mul (mul) turns that into NaN; clips A/1 (row 1), A/2 (row 2), A/3 (row 3) and " +
				"1 more",
		},
		{
			Trace{
				Found: &nantrace.Found{Where: "input", Tensor: &nantrace.Values{Name: "mel", NaN: 2}, Rows: []int{2}},
				Clips: clips[1:2], Stage: "target",
			},
			"the input mel has NaN (2 elements) itself, which the stage target wrote; clip A/2 (row 2)",
		},
		{
			Trace{
				Found: &nantrace.Found{Where: "input", Tensor: &nantrace.Values{Name: "mel", NaN: 2}, Rows: []int{2}},
				Clips: clips[1:2], Rank: 3, Ranks: 4,
			},
			"the input mel has NaN (2 elements) itself; clip A/2 (row 2)",
		},
		{
			Trace{
				Found: &nantrace.Found{Where: "weight", Tensor: &nantrace.Values{Name: "w", Infinite: 1}},
				Clips: clips,
			},
			"the weight w has infinities (1 element) itself; for the whole batch",
		},
		{
			Trace{
				Found: &nantrace.Found{Where: "operation", Operation: div, RowsBy: nantrace.Unknown}, Clips: clips,
			},
			"Div (div) returns infinities (1,200 elements) in the backward pass, near a.weight; its inputs are 0 " +
				"to 2.000 and -0.250; the search for its rows was not finished",
		},
		{
			Trace{Found: &nantrace.Found{Where: "nowhere"}, Precision: "bf16"},
			"the exported graph returns finite numbers on the CPU in f32, so what is rounded to bf16 overflows, or a " +
				"kernel of the GPU is wrong",
		},
	} {
		c.trace.Step = 7
		want := "step 7 is not finite: " + c.want
		if c.trace.Ranks > 0 && c.trace.Where != nowhere {
			want = "step 7 is not finite on rank 3: " + c.want
		}
		if c.trace.Player != "" {
			want = "step 7 is not finite for the player second: " + c.want
		}
		if got := c.trace.String(); got != want {
			t.Errorf("%s\nwant\n%s", got, want)
		}
	}
}

// TestDue: a process is traced at its first step that is not finite, rarely after that, and not without end.
func TestDue(t *testing.T) {
	tracer := new(Tracer)
	var traced []int64
	for step := int64(40); step < 20_000; step += 10 {
		if tracer.due(step) {
			traced = append(traced, step)
		}
	}
	if len(traced) != most || traced[0] != 40 || traced[1] != 1040 || traced[4] != 4040 {
		t.Errorf("traced at %v", traced)
	}
}

// TestWithin: all batches of a step share the time of a trace, which the user ends.
func TestWithin(t *testing.T) {
	stop := make(chan struct{})
	tracer := &Tracer{Config: Config{Stop: stop}}
	ctx, done := tracer.within()
	defer done()
	if end, ok := ctx.Deadline(); !ok || time.Until(end) > limit {
		t.Errorf("it ends at %v", end)
	}
	close(stop)
	if <-ctx.Done(); context.Cause(ctx) != exit.ErrInterrupted {
		t.Errorf("%v", context.Cause(ctx))
	}
}

// TestOrigin: of what ranks have found, that of the first one with an origin counts; without one, the clips of all,
// unless a rank could not look.
func TestOrigin(t *testing.T) {
	none := answerOf(&Trace{Found: &nantrace.Found{Where: nowhere}, Clips: []Clip{{0, 1, "A/1"}}}, nil)
	found := answerOf(&Trace{Found: &nantrace.Found{Where: "operation"}, Clips: []Clip{{0, 2, "A/2"}}}, nil)
	failed := answerOf(nil, errors.New("no memory"))
	for _, c := range []struct {
		ranks []answer
		want  string
	}{
		{[]answer{none}, "nowhere, rank 0 of 0, [{0 1 A/1}]"},
		{[]answer{none, failed, {}, found, found}, "operation, rank 3 of 5, [{0 2 A/2}]"},
		{[]answer{{}, none, none}, "nowhere, rank 0 of 3, [{1 1 A/1} {2 1 A/1}]"},
		{[]answer{none, failed}, "rank 1: no memory"},
		{[]answer{failed}, "no memory"},
	} {
		trace, err := origin(c.ranks)
		got := fmt.Sprint(err)
		if err == nil {
			got = fmt.Sprintf("%s, rank %d of %d, %v", trace.Where, trace.Rank, trace.Ranks, trace.Clips)
		}
		if got != c.want {
			t.Errorf("%s, want %s", got, c.want)
		}
	}
}
