package manifest

import (
	"encoding/json"
	"reflect"
	"strings"
	"testing"

	"github.com/xtts-host/xtts-host/shared/hint"
)

// entries parses a pipeline whose stages have no ports.
func entries(t *testing.T, text string) (all []StageInstance) {
	t.Helper()
	if err := json.Unmarshal([]byte(text), &all); err != nil {
		t.Fatalf("%s: %v", text, err)
	}
	return all
}

// TestChoicesAreWrittenAsTheyWereRead: the text is part of the identity of a run.
func TestChoicesAreWrittenAsTheyWereRead(t *testing.T) {
	for _, text := range []string{
		`[{"name":"a","stage":"s","inputs":{},"outputs":{}}]`,
		`[{"name":"a","stage":"s","inputs":{},"outputs":{},"p":0.3}]`,
		`[{"name":"a","stage":"s","inputs":{},"outputs":{},"p":[[0,0],[1000,0],[5000,0.5]]}]`,
		`[{"name":"g","p":0,"one_of":[{"name":"a","stage":"s","inputs":{},"outputs":{},"weight":2},` +
			`{"name":"b","stage":"s","inputs":{},"outputs":{},"p":1}]}]`,
		`[{"name":"g","some_of":[{"name":"a","stage":"s","inputs":{},"outputs":{}}],"count":1}]`,
		`[{"name":"g","some_of":[{"name":"a","stage":"s","inputs":{},"outputs":{}}],"count":[0,1]}]`,
	} {
		all := entries(t, text)
		if err := CheckPipeline(all); err != nil {
			t.Errorf("%s: %v", text, err)
		}
		if got, err := json.Marshal(all); err != nil || string(got) != text {
			t.Errorf("%s\nis written as %s, %v", text, got, err)
		}
	}
}

func TestProbabilityAt(t *testing.T) {
	p := &Probability{Points: [][2]float64{{1000, 0.25}, {3000, 0.75}, {3001, 0}}}
	for step, want := range map[int64]float64{
		0: 0.25, 1000: 0.25, 2000: 0.5, 2500: 0.625, 3000: 0.75, 3001: 0, 1e6: 0,
	} {
		if got := p.At(step); got != want {
			t.Errorf("step %d: %g, want %g", step, got, want)
		}
	}
	if low, high := p.Bounds(); low != 0 || high != 0.75 {
		t.Errorf("%g to %g", low, high)
	}
}

func TestSteps(t *testing.T) {
	all := entries(t, `[{"name":"a","stage":"s"},{"name":"g","some_of":[{"name":"b"},{"name":"c"}],"count":1},{"name":"d"}]`)
	var got []string
	for _, s := range Steps(all) {
		text := s.Name
		if s.Group != nil {
			text += " of " + s.Group.Name + string(rune('0'+s.Member))
		}
		got = append(got, text)
	}
	if want := []string{"a", "b of g0", "c of g1", "d"}; !reflect.DeepEqual(got, want) {
		t.Errorf("%q, want %q", got, want)
	}
}

func TestSummary(t *testing.T) {
	for text, want := range map[string]string{
		`{"name":"a","stage":"s"}`:                                          "a",
		`{"name":"a","stage":"s","p":0.3}`:                                  "a 30 %",
		`{"name":"a","stage":"s","p":[[0,0],[9,0.125]]}`:                    "a 0 to 12.5 %",
		`{"name":"g","p":0.8,"one_of":[{"name":"a"},{"name":"b","p":0.5}]}`: "one of (a, b 50 %) 80 %",
		`{"name":"g","some_of":[{"name":"a"},{"name":"b"}],"count":2}`:      "2 of (a, b)",
		`{"name":"g","some_of":[{"name":"a"},{"name":"b"}],"count":[0,2]}`:  "0 to 2 of (a, b)",
	} {
		all := entries(t, "["+text+"]")
		if got := all[0].Summary(); got != want {
			t.Errorf("%s: %q, want %q", text, got, want)
		}
	}
}

func TestChoicesRefused(t *testing.T) {
	const at = "pipeline[0] (g): "
	for _, tt := range []struct{ text, want, hint string }{
		{`{"name":"g","stage":"s","p":30}`, at + "p is 30, but a probability is 0 to 1", "for 30 percent, write 0.3"},
		{`{"name":"g","stage":"s","p":-0.1}`, at + "p is -0.1, but a probability is 0 to 1", "write 0.3"},
		{`{"name":"g","stage":"s","p":300}`, at + "p is 300, but a probability is 0 to 1", "write 0.3"},
		{`{"name":"g","stage":"s","p":[]}`, at + "p is an empty list", "pairs such as [[0, 0], [5000, 0.5]]"},
		{`{"name":"g","stage":"s","p":[[-1,0]]}`, at + "step -1 of p is negative", "the first step is 0"},
		{`{"name":"g","stage":"s","p":[[0.5,0]]}`, at + "step 0.5 of p is not a whole number", "optimizer steps"},
		{`{"name":"g","stage":"s","p":[[5,0],[5,1]]}`, at + "step 5 of p comes after step 5", "ascending"},
		{`{"name":"g","stage":"s","p":[[5,0],[6,50]]}`, at + "p is 50,", "write 0.5"},
		{`{"name":"g","stage":"s","weight":1}`, at + "weight is not for an entry of its own", "one_of"},
		{`{"name":"g","stage":"s","count":1}`, at + "count is not for a stage", "some_of"},
		{`{"name":"g","one_of":[]}`, at + "one_of is empty", "leave the entry out"},
		{`{"name":"g","some_of":[],"count":1}`, at + "some_of is empty", "leave the entry out"},
		{`{"name":"g","one_of":[{"name":"a"}],"some_of":[{"name":"b"}]}`, at + "it has one_of and some_of", "two entries"},
		{`{"name":"g","one_of":[{"name":"a"}],"stage":"s"}`, at + "it is a stage and has one_of", "members"},
		{`{"name":"g","one_of":[{"name":"a"}],"data":{"n":"d"}}`, at + "it is a stage and has one_of", "members"},
		{`{"name":"g","some_of":[{"name":"a"}],"count":1,"inputs":{}}`, at + "it is a stage and has some_of", "members"},
		{`{"name":"g","one_of":[{"name":"a"}],"weight":2}`, at + "weight is not for a group", "p is the probability"},
		{`{"name":"g","one_of":[{"name":"a","weight":0}]}`, at + "all weights are 0", "p: 0 switches"},
		{`{"name":"g","one_of":[{"name":"a","weight":-1}]}`, at + "one_of[0] (a): weight is -1,", "twice as often"},
		{`{"name":"g","one_of":[{"name":"a"}],"count":1}`, at + "count is not for one_of", "some_of"},
		{`{"name":"g","some_of":[{"name":"a"}]}`, at + "some_of needs count", "count: [1, 1]"},
		{`{"name":"g","some_of":[{"name":"a"}],"count":2}`, at + "count is 2, but some_of has 1 members", "1"},
		{`{"name":"g","some_of":[{"name":"a"}],"count":0}`, at + "count is 0", "1 to 1"},
		{`{"name":"g","some_of":[{"name":"a"}],"count":[1,0]}`, at + "count is 1 to 0", "1 to 1"},
		{`{"name":"g","some_of":[{"name":"a"}],"count":[-1,1]}`, at + "count is -1 to 1", "1 to 1"},
		{`{"name":"g","one_of":[{"name":"a","p":2}]}`, at + "one_of[0] (a): p is 2,", "write 0.02"},
		{`{"name":"g","some_of":[{"name":"a","weight":2}],"count":1}`, at + "some_of[0] (a): weight is not for", "one_of"},
		{`{"name":"g","some_of":[{"name":"a","count":2}],"count":1}`, at + "some_of[0] (a): count is not for", "entry"},
		{`{"name":"g","one_of":[{"name":"a","one_of":[{"name":"b"}]}]}`, at + "one_of[0] (a): a group in a group", "entry"},
		{`{"name":"g","one_of":[{"name":"g"}]}`, `pipeline: two instances are named "g"`, "one of its own"},
		{`{"name":"g","stage":"s"},{"name":"h","one_of":[{"name":"g"}]}`, `pipeline: two instances are named "g"`, "own"},
		{`{"name":"g","one_of":[{"name":"decode"}]}`, `pipeline: "decode" is the name of a phase`, ""},
	} {
		err := CheckPipeline(entries(t, "["+tt.text+"]"))
		if err == nil || !strings.HasPrefix(err.Error(), tt.want) || !strings.Contains(hint.Of(err), tt.hint) ||
			tt.hint == "" != (hint.Of(err) == "") {
			t.Errorf("%s: %v (%s)\nwant %s (%s)", tt.text, err, hint.Of(err), tt.want, tt.hint)
		}
	}
}

// TestBundleWithChoices: the schema of bundle.json has the keys, and no others.
func TestBundleWithChoices(t *testing.T) {
	const member = `"stage": "augment", "inputs": {}, "outputs": {}`
	for pipeline, want := range map[string]string{
		`{"name": "a", ` + member + `, "p": [[0, 0], [10, 1]]}`:                             "",
		`{"name": "g", "p": 0.5, "one_of": [{"name": "a", ` + member + `, "weight": 0.5}]}`: "",
		`{"name": "g", "some_of": [{"name": "a", ` + member + `}], "count": [1, 1]}`:        "",
		`{"name": "a", ` + member + `, "p": 30}`:                                            "pipeline[0] (a): p is 30",
		`{"name": "a", ` + member + `, "p": "30%"}`:                                         "pipeline[0] (a): p: got string, want number or array",
		`{"name": "g", "one_of": [{"name": "a", ` + member + `, "wieght": 1}]}`:             `pipeline[0] (g): one_of[0] (a): unknown key "wieght"`,
		`{"name": "g", "one_of": [{"name": "a"}]}`:                                          "pipeline[0] (g): one_of[0] (a): missing properties 'stage', 'inputs', 'outputs'",
		`{"name": "g", "some_of": [{"name": "a", ` + member + `}], "count": [1]}`:           "pipeline[0] (g): count: minItems: got 1, want 2",
	} {
		text := strings.Replace(bundleWith(`{"name": "sgd", "lr": 0.1}`), `"pipeline": []`, `"pipeline": [`+pipeline+`]`, 1)
		_, err := ParseBundle("bundle.json", []byte(text))
		if (err == nil) != (want == "") || err != nil && !strings.HasPrefix(err.Error(), "bundle.json: "+want) {
			t.Errorf("%s: %v\nwant %s", pipeline, err, want)
		}
	}
}
