package compare

import (
	"bytes"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// speaking makes a run of 30 steps whose best evaluation is that of step 10, with lines about speech.
func speaking(t *testing.T, name, settings string, lines ...string) string {
	t.Helper()
	best := strings.Replace(reportOf(30, 1), "{", `{"evaluation":{"best":{"step":10,"loss":19}},`, 1)
	dir := made{name, 30, 100, 800, "batch_size: 8\n" + settings, best}.make(t, t.TempDir())
	if len(lines) > 0 {
		text := strings.Join(lines, "\n") + "\n"
		if err := os.WriteFile(filepath.Join(dir, "spoken.jsonl"), []byte(text), 0o666); err != nil {
			t.Fatal(err)
		}
	}
	return dir
}

// clip is a line about a clip.
func clip(step, number int, ended bool, measures string) string {
	return fmt.Sprintf(`{"step":%d,"clip":%d,"id":"A/%d","text":"one","language":"en","ended":%v,"measures":{%s}}`,
		step, number, number, ended, measures)
}

// TestSpeech: the rows of the measures that both runs have, by hand, in the text, the page and the JSON.
func TestSpeech(t *testing.T) {
	sentence := `{"step":30,"sample":1,"id":"%s:1","text":"Hello.","ended":true,"measures":{"wer":0.5}}`
	a := speaking(t, "a", "recognizer: hear\n", clip(10, 1, true, `"mcd_db":7,"wer":0.25`),
		clip(20, 1, true, `"mcd_db":9`), clip(30, 1, false, `"mcd_db":6,"length_ratio":3,"wer":0.25,"f0_cents":1`),
		fmt.Sprintf(sentence, "a.txt"))
	b := speaking(t, "b", "recognizer: hear\n", clip(30, 1, true, `"length_ratio":1,"mcd_db":4.5,"wer":1,"new":7`),
		fmt.Sprintf(sentence, "b.txt"))
	r := of(opened(t, []string{a, b}))
	text := r.Text(80)
	if want := `
last speech                   2 texts       2 texts
  at step                          30            30
  cut                               1             0
  length ratio                   3.00          1.00
  MCD                          6.0 dB        4.5 dB
  word errors                    38 %          75 %
speech of the best             1 text             -
  at step                          10             -
  cut                               0             -
  MCD                          7.0 dB             -
  word errors                    25 %             -

`; !strings.Contains(text, want) {
		t.Errorf("there is no %q in\n%s", want, text)
	}
	// At its best evaluation, A has spoken the clip and no sentence.
	if want := "\nSpeeds and losses are comparable, measures of speech are not, or only in part:\n" +
		"- the texts or clips that were spoken differ: A 2 texts at step 30; A 1 text at\n" +
		"  step 10, 1 of them the same (speech)\n"; !strings.Contains(text, want) {
		t.Errorf("there is no %q in\n%s", want, text)
	}
	page, err := r.page(opened(t, []string{a, b}), filepath.Join(t.TempDir(), "c.html"))
	if err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{"last speech, word errors", "speech of the best, MCD", "clips that were spoken"} {
		if !bytes.Contains(page, []byte(want)) {
			t.Errorf("there is no %q in the page", want)
		}
	}
	object, err := json.Marshal(r)
	if err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{
		`"comparable_speech":false`,
		`"last_speech":{"step":30,"texts":2,"cut":1,"measures":{"f0_cents":1,"length_ratio":3,"mcd_db":6,"wer":0.375}},` +
			`"speech_of_best":{"step":10,"texts":1,"cut":0,"measures":{"mcd_db":7,"wer":0.25}}`,
		`"speech_of_best":null`,
	} {
		if !bytes.Contains(object, []byte(want)) {
			t.Errorf("there is no %s in\n%s", want, object)
		}
	}
}

// TestSpeechRemarks: what makes measures of speech not comparable.
func TestSpeechRemarks(t *testing.T) {
	const one = `"mcd_db":5,"speaker_similarity":0.5,"wer":0.5`
	plain := speaking(t, "plain", "recognizer: \"hear {wav}\"\n", clip(10, 1, true, one))
	with := func(folder string) *Result { return of(opened(t, []string{plain, folder})) }
	beside := func(settings string, lines ...string) *Result { return with(speaking(t, "other", settings, lines...)) }
	other := speaking(t, "bundle", "recognizer: \"hear {wav}\"\n", clip(10, 1, true, one))
	path := filepath.Join(other, "report.json")
	data, err := os.ReadFile(path)
	if err == nil {
		err = os.WriteFile(path, bytes.Replace(data, []byte(`"nano"`), []byte(`"other"`), 1), 0o666)
	}
	if err != nil {
		t.Fatal(err)
	}
	renamed := strings.Replace(clip(10, 1, true, one), `"one"`, `"two"`, 1)
	for _, c := range []struct {
		r    *Result
		rows int // that name a measure
		want string
	}{
		{beside("recognizer: \"hear {wav}\"\n", clip(10, 1, true, one)), 3, ""},
		{beside("", clip(10, 1, true, `"mcd_db":4`)), 1, ""},
		{beside("recognizer: \"listen {wav}\"\n", clip(10, 1, true, one)), 3,
			"the recognizers of the error rates differ: A hear {wav}, B listen {wav}"},
		{beside("", clip(10, 2, true, one)), 3,
			"the texts or clips that were spoken differ: A 1 text at step 10; B 1 text at step 10, 0 of them the same"},
		{beside("", renamed), 3,
			"the texts or clips that were spoken differ: A 1 text at step 10; B 1 text at step 10, 0 of them the same"},
		{beside("", clip(10, 1, true, `"silence":1`)), 0, "the runs have no measure of speech in common"},
		{beside("", clip(10, 2, true, one), clip(30, 2, true, one)), 6, // said once
			"the texts or clips that were spoken differ: A 1 text at step 10; B 1 text at step 30, 0 of them the same"},
		{beside(""), 0, "measures of speech are not compared: there are none of B"},
		{with(other), 3, "the speaker similarities are of the graphs of other bundles: A nano, B other"},
	} {
		var got []string
		for _, m := range c.r.Remarks {
			if affects(m) == " (speech)" {
				got = append(got, m.What)
			}
		}
		if strings.Join(got, "; ") != c.want || c.r.ComparableSpeech != (c.want == "") {
			t.Errorf("%v, %q, want %q", c.r.ComparableSpeech, got, c.want)
		}
		rows := 0
		for _, row := range c.r.rows() {
			if row.Name == "  MCD" || row.Name == "  speaker similarity" || row.Name == "  word errors" {
				rows++
			}
		}
		if rows != c.rows {
			t.Errorf("%q: %d rows of measures, want %d", c.want, rows, c.rows)
		}
	}
}
