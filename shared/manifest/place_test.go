package manifest

import (
	"strings"
	"testing"

	"github.com/xtts-host/xtts-host/shared/hint"
)

// TestPlaceInPipeline: what a schema refuses in an entry is named as what CheckPipeline refuses, with a hint.
func TestPlaceInPipeline(t *testing.T) {
	const whole = `"stage": "augment", "inputs": {}, "outputs": {}`
	for _, c := range []struct{ entry, want, hint string }{
		{`{"name": "a", ` + whole + `, "prob": 1}`, `pipeline[1] (a): unknown key "prob"`, "did you mean p?"},
		{`{"name": "g", "one_off": []}`, `pipeline[1] (g): unknown key "one_off"`, "did you mean one_of?"},
		{`{"name": "a", ` + whole + `, "odds": 1}`, `pipeline[1] (a): unknown key "odds"`,
			"an entry may have name, stage, config, inputs, outputs, p, one_of, some_of, count, weight, data"},
		{`{"name": "g", "one_of": [{"name": "b", ` + whole + `}, {"name": "c", ` + whole + `, "wieght": 1}]}`,
			`pipeline[1] (g): one_of[1] (c): unknown key "wieght"`, "did you mean weight?"},
		{`{"name": "a", ` + whole + `, "p": "30%"}`, "pipeline[1] (a): p: got string, want number or array",
			"for 30 percent, write 0.3"},
		{`{"name": "a", ` + whole + `, "p": "2.5 %"}`, "pipeline[1] (a): p: got", "for 2.5 percent, write 0.025"},
		{`{"name": "a", ` + whole + `, "p": "0.3"}`, "pipeline[1] (a): p: got", "write 0.3 without quotes"},
		{`{"name": "a", ` + whole + `, "p": true}`, "pipeline[1] (a): p: got", "write a number, 0.3 for 30 percent, or"},
		{`{"name": "g", "one_of": [{"name": "b", ` + whole + `, "p": "5%"}]}`,
			"pipeline[1] (g): one_of[0] (b): p: got", "for 5 percent, write 0.05"},
		{`{"name": "a", ` + whole + `, "p": [["x", 1]]}`, "pipeline[1] (a): p.0.0: got string", ""},
		{`{` + whole + `}`, "pipeline[1]: missing property 'name'", ""},
		{`7`, "pipeline[1]: got number, want object", ""},
	} {
		pipeline := `"pipeline": [{"name": "first", ` + whole + `}, ` + c.entry + `]`
		text := strings.Replace(bundleWith(`{"name": "sgd", "lr": 0.1}`), `"pipeline": []`, pipeline, 1)
		_, err := ParseBundle("bundle.json", []byte(text))
		if err == nil || !strings.HasPrefix(err.Error(), "bundle.json: "+c.want) ||
			!strings.HasPrefix(hint.Of(err), c.hint) || (hint.Of(err) == "") != (c.hint == "") {
			t.Errorf("%s: %v (%s)\nwant %s (%s)", c.entry, err, hint.Of(err), c.want, c.hint)
		}
	}
}
