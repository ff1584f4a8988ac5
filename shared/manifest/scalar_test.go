package manifest

import (
	"strings"
	"testing"
)

func TestScheduleIsPiecewiseLinear(t *testing.T) {
	s := Scalar{Points: [][2]float64{{10, 2}, {20, 4}, {30, 0}}}
	for step, want := range map[int64]float64{0: 2, 10: 2, 15: 3, 20: 4, 29: 0.4, 30: 0, 1000: 0} {
		if got := s.At(step); got < want-1e-12 || got > want+1e-12 {
			t.Errorf("step %d: %g, want %g", step, got, want)
		}
	}
	if one := (Scalar{Points: [][2]float64{{5, 7}}}); one.At(0) != 7 || one.At(9) != 7 || one.Last() != 7 {
		t.Error("one point is not constant")
	}
}

func TestScalars(t *testing.T) {
	const lengths = `{"name": "n", "dtype": "i32", "shape": ["B"], "origin": "stage"}, `
	const window = `{"name": "frames", "origin": "window", "lengths": "n"}`
	for _, c := range []struct{ scalars, accumulation, want string }{
		{`{"name": "kl", "origin": "schedule", "points": [[0, 0], [100, 1]]}`, "exact", ""},
		{window, "weighted", ""},
		{`{"name": "frames", "origin": "window", "lengths": "n", "per_row": 1}`, "weighted", ""},
		{`{"name": "frames", "origin": "window", "lengths": "n", "per_row": -1}`, "weighted", "scalars.0.per_row"},
		{`{"name": "kl", "origin": "schedule", "points": [[0, 1]], "per_row": 1}`, "exact", "scalars.0"},
		{window + `, {"name": "kl", "origin": "schedule", "points": [[0, 1]]}`, "weighted", ""},
		{window, "exact", "occur together only"},
		{`{"name": "kl", "origin": "schedule", "points": [[0, 0]]}`, "weighted", "occur together only"},
		{
			`{"name": "kl", "origin": "schedule", "points": [[5, 0], [5, 1]]}`, "exact",
			"scalars[0].points[1]: the steps are not ascending",
		},
		{`{"name": "kl", "origin": "schedule", "points": []}`, "exact", "scalars.0.points"},
		{`{"name": "kl", "origin": "schedule", "lengths": "n"}`, "exact", "scalars.0"},
		{
			`{"name": "frames", "origin": "window", "lengths": "x"}`, "weighted",
			`scalars[0]: "x" is not an i32 input with a value for each row`,
		},
		{`{"name": "w", "origin": "window", "lengths": "n"}`, "weighted", `parameter "w" has the name of scalar`},
	} {
		text := strings.Replace(bundleWith(`{"name": "sgd", "lr": 0.1}`), `"inputs": [`,
			`"scalars": [`+c.scalars+`], "inputs": [`+lengths, 1)
		text = strings.Replace(text, `"accumulation": "exact"`, `"accumulation": "`+c.accumulation+`"`, 1)
		b, err := ParseBundle("bundle.json", []byte(text))
		switch {
		case c.want == "" && err != nil:
			t.Errorf("%s: %v", c.scalars, err)
		case c.want == "" && len(b.Scheduled()) != strings.Count(c.scalars, "schedule"):
			t.Errorf("%s: scheduled are %v", c.scalars, b.Scheduled())
		case c.want != "" && (err == nil || !strings.Contains(err.Error(), c.want)):
			t.Errorf("%s: got %v, want %s", c.scalars, err, c.want)
		}
	}
}
