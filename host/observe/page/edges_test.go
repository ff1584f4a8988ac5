package page

import (
	"strings"
	"testing"
	"time"

	"github.com/xtts-host/xtts-host/host/observe/record"
)

// pageOf is the text that the page of these files shows.
func pageOf(t *testing.T, content map[string]string) (page, shown string) {
	t.Helper()
	run, err := record.Open(runOf(t, content))
	if err != nil {
		t.Fatal(err)
	}
	text, err := Of(run, ".", MostMedia, time.Unix(0, 0))
	if err != nil {
		t.Fatal(err)
	}
	return string(text), shownBy(t, text)
}

// TestPageOfSkippedSteps: a loss of one step is a dot, and the steps that were skipped after it are marked.
func TestPageOfSkippedSteps(t *testing.T) {
	page, shown := pageOf(t, map[string]string{"metrics.jsonl": `{"step":1,"loss":4,"lr":0.1,"grad_norm":1}
{"step":2,"loss":null,"lr":0.1,"skipped":true}
{"step":3,"loss":null,"lr":0.1,"skipped":true}
`})
	for _, want := range []string{
		"2 steps skipped, shown at the loss before.", "step 2 was skipped", "step 3 was skipped",
		"0.100 at every step.",
	} {
		if !strings.Contains(shown, want) {
			t.Errorf("there is no %q in\n%s", want, shown)
		}
	}
	if n := strings.Count(page, `r="2.5"`); n != 2 {
		t.Errorf("%d dots, want one of the loss and one of the gradient norm", n)
	}
}

// TestPageOfATrace: the verdict says where a step that is not finite comes from.
func TestPageOfATrace(t *testing.T) {
	content := whole()
	content["report.json"] = `{"outcome":"ten steps","hint":"go back","steps":3,"warnings":["a","step 40 is not finite, and is not traced",
		"step 40 is not finite: Log (log, blocks.py:88) returns NaN; clip a (row 2)"],"verdict":{"advice":["Skipped: 10."]}}`
	delete(content, "spoken.jsonl")
	if _, shown := pageOf(t, content); !strings.Contains(shown,
		"ten steps. What to do: go back step 40 is not finite: Log (log, blocks.py:88) returns NaN; clip a (row 2). "+
			"Skipped: 10.") {
		t.Error(shown)
	}
}

// TestPageWithoutValidation: a run without validation data says so, and has no row of predictors for it.
func TestPageWithoutValidation(t *testing.T) {
	content := whole()
	delete(content, "eval.jsonl")
	content["report.json"] = `{"outcome":"done","baselines":[{"metric":"mel_loss","constant":0.4,"previous_frame":0.1,
		"rows":3,"eval_constant":null,"eval_previous_frame":null,"eval":null,"ratio_eval":null}]}`
	_, shown := pageOf(t, content)
	if !strings.Contains(shown, "best evaluation none no validation data") ||
		!strings.Contains(shown, "mel_loss, training") || strings.Contains(shown, "held out") {
		t.Error(shown)
	}
}

// TestPageOfSilence: speech without a sample has its length, and a mark without a letter can be seen.
func TestPageOfSilence(t *testing.T) {
	content := whole()
	content["spoken.jsonl"] = `{"step":3,"clip":1,"text":"a","file":"samples/step-000003/clip-1.wav","seconds":0,"ended":true}` +
		"\n"
	content["report.json"] = `{"outcome":"done","unknown_characters":[{"char":"\u031b","code":"U+031B","count":1}]}`
	_, shown := pageOf(t, content)
	if !strings.Contains(shown, "length 0 s") || !strings.Contains(shown, "\u25cc\u031b U+031B") {
		t.Error(shown)
	}
}

// TestPageOfAKilledRun: it says from which checkpoint the run can go on.
func TestPageOfAKilledRun(t *testing.T) {
	content := whole()
	delete(content, "report.json")
	delete(content, "eval.jsonl")
	_, shown := pageOf(t, content)
	if strings.Contains(shown, "continue it") || strings.Contains(shown, "no validation data") {
		t.Errorf("there is no checkpoint, and it may have validation data: %s", shown)
	}
	content["checkpoints/step-000002/state.json"] = "{}"
	if _, shown := pageOf(t, content); !strings.Contains(shown, "If it was killed, continue it from step 2: ") ||
		!strings.Contains(shown, "--resume") {
		t.Error(shown)
	}
}
