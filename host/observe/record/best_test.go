package record

import (
	"fmt"
	"math"
	"testing"
)

// TestBest: the best evaluation is that of the report, and otherwise the best by the measure of the run, whose loss is
// not the lowest here.
func TestBest(t *testing.T) {
	const evaluations = `{"step":1,"loss":5,"mel_loss":0.5}
{"step":2,"loss":6,"mel_loss":0.25}
{"step":3,"loss":4,"mel_loss":0.75}
`
	spoken := ""
	for step, ratio := range []float64{0.25, 1.5, 4} {
		for clip, similarity := range []float64{0.5, float64(step)} {
			spoken += fmt.Sprintf(`{"step":%d,"clip":%d,"file":"samples/step-%06d/clip-%d.wav","ended":true,`+
				`"measures":{"length_ratio":%g,"speaker_similarity":%g}}`+"\n", step+1, clip+1, step+1, clip+1, ratio, similarity)
		}
	}
	spoken += `{"step":4,"clip":1,"measures":{"length_ratio":1}}` + "\n" + `{"step":4,"clip":2,"measures":{}}` + "\n"
	of := func(best string) string {
		return `{"outcome":"done","steps":3,"evaluation":{"step":3,"loss":4,"best":` + best + `}}`
	}
	for _, c := range []struct {
		by, report string
		step       int64
		loss       float64
		value      float64 // NaN without one
		name       string
	}{
		{"loss", "", 3, 4, math.NaN(), ""}, {"", "", 3, 4, math.NaN(), ""},
		{"mel_loss", "", 2, 6, 0.25, "mel_loss"}, {"unknown", "", 0, 0, 0, ""}, {"spoken.wer", "", 0, 0, 0, ""},
		{"spoken.length_ratio", "", 2, 6, 1.5, "spoken.length_ratio"},
		{"spoken.speaker_similarity", "", 2, 6, 0.75, "spoken.speaker_similarity"},
		{"mel_loss", of(`{"step":1,"loss":5,"by":"spoken.cer","value":0.125}`), 1, 5, 0.125, "spoken.cer"},
		{"mel_loss", of(`{"step":1,"loss":5}`), 1, 5, math.NaN(), ""},
		{"mel_loss", of(`{"step":0,"loss":null}`), 2, 6, 0.25, "mel_loss"},
		{"mel_loss", `{"outcome":"done","steps":2,"evaluation":{"best":{"step":1,"loss":5}}}`, 2, 6, 0.25, "mel_loss"},
	} {
		content := map[string]string{"metrics.jsonl": threeSteps, "eval.jsonl": evaluations, "spoken.jsonl": spoken}
		if c.by != "" {
			content["config.yaml"] = "best_by: " + c.by + "\n"
		}
		if c.report != "" {
			content["report.json"] = c.report
		}
		dir := folder(t, content)
		r, err := Open(dir)
		if err != nil {
			t.Fatal(err)
		}
		g, err := Look(dir)
		if err != nil {
			t.Fatal(err)
		}
		if c.step == 0 {
			if r.Best != nil || g.Best != nil || r.Evaluations.Best != nil {
				t.Errorf("%+v: %+v, %+v", c, r.Best, g.Best)
			}
			continue
		}
		if r.Best == nil || g.Best == nil || r.Best.Step != c.step || r.Evaluations.Best.Step != c.step ||
			g.Best.Step != c.step {
			t.Errorf("%+v: %+v, %+v", c, r.Best, g.Best)
			continue
		}
		if b := r.Best; float64(b.Loss) != c.loss || b.By != c.name || (b.Value == nil) != math.IsNaN(c.value) ||
			b.Value != nil && float64(*b.Value) != c.value || g.Best.By != c.name {
			t.Errorf("%+v: %+v", c, b)
		}
		if first := r.Spoken.First[0].Step; first != 1 || c.step > 1 && r.Spoken.Best[0].Step != c.step {
			t.Errorf("%+v: speech of %d and %+v", c, first, r.Spoken.Best)
		}
	}
}
