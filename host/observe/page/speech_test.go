package page

import (
	"strings"
	"testing"
)

// TestPageOfPoorSpeech: a model that ends no text makes the verdict of a run that is done a warning, and the first
// breaks of its speech are named.
func TestPageOfPoorSpeech(t *testing.T) {
	content := whole()
	content["spoken.jsonl"] = ""
	for step := 1; step <= 10; step++ {
		content["spoken.jsonl"] += spokenLine(step, 1, 8, step%2 == 1)
	}
	page, shown := pageOf(t, content)
	for _, want := range []string{
		"Speech after step 10: 1 of 1 text cut, because the model did not end, MCD 8.0 dB, word errors 25 %.",
		"Speech breaks after step 2, although the loss is the lowest so far: clip 1 was cut after 1.5 s.",
		"Speech breaks after step 4: clip 1", "Speech breaks after step 6: clip 1",
		"It breaks after 2 more evaluations: see the curves of speech.",
	} {
		if !strings.Contains(shown, want) {
			t.Errorf("there is no %q in\n%s", want, shown)
		}
	}
	if !strings.Contains(page, `<div class="note warn"><p class="verdict"`) || !strings.Contains(page, `badge good`) {
		t.Error("the verdict is no warning, or the run is not done")
	}
	content["spoken.jsonl"] += spokenLine(11, 1, 8, true)
	if page, _ = pageOf(t, content); !strings.Contains(page, `<div class="note good"><p class="verdict"`) {
		t.Error("the verdict of speech that ends is a warning")
	}
}
