package manifest

import (
	"strings"
	"testing"
)

// TestInference: what bundle.json alone shows to be wrong.
func TestInference(t *testing.T) {
	const good = `{"name": "step", "kind": "decode", "file": "step.onnx",
		"inputs": [{"name": "past", "dtype": "f32", "shape": ["B", 2, "T"]}, {"name": "code", "dtype": "i32", "shape": ["B", "T"], "lengths": "n"}, {"name": "n", "dtype": "i32", "shape": ["B"]}],
		"outputs": [{"name": "next", "dtype": "f32", "shape": ["B", 2, "U"], "feeds": "past"}]}`
	stage := strings.NewReplacer(`"step"`, `"codes"`, "step.onnx", "codes.onnx", `"decode"`,
		`"stage", "sample_rate": 16000, "weights": "codes.safetensors"`).Replace(
		good)
	for _, c := range []struct{ entries, want string }{
		{good, ""},
		{good + "," + stage, ""},
		{
			good + "," + strings.Replace(good, "step.onnx", "other.onnx", 1),
			"inference[1]: inference[0] has the same name, file or weights",
		},
		{
			stage + "," + strings.NewReplacer(`"codes"`, `"more"`, "codes.onnx", "more.onnx").Replace(stage),
			"inference[1]: inference[0] has the same name, file or weights",
		},
		{strings.Replace(good, "step.onnx", "t.onnx", 1), "inference[0]: t.onnx is one of graphs"},
		{strings.Replace(good, `"decode"`, `"vocoder"`, 1), "inference[0]: step of kind vocoder has no sample_rate"},
		{strings.Replace(good, `"decode"`, `"train"`, 1), "inference.0.kind: "},
		{
			strings.Replace(good, `"name": "code"`, `"name": "past"`, 1),
			`inference[0]: two tensors of step are named "past"`,
		},
		{
			strings.Replace(good, `"name": "code"`, `"name": "w"`, 1),
			`inference[0]: "w" of step has the name of a parameter or of state`,
		},
		{
			strings.Replace(good, `"lengths": "n"`, `"lengths": "past"`, 1),
			`inference[0]: the lengths tensor "past" of code i32[B,T] is not an i32 tensor of its rows`,
		},
		{
			strings.Replace(good, `"feeds": "past"`, `"feeds": "code"`, 1),
			`inference[0]: next f32[B,2,U] feeds "code": that is not an input of its type`,
		},
		{strings.Replace(good, `["B", 2, "U"]`, `["B", 3, "U"]`, 1), `inference[0]: next f32[B,3,U] feeds "past"`},
		{strings.Replace(good, `["B"]}`, `["B"], "feeds": "n"}`, 1), `inference[0]: input n i32[B] of step has feeds`},
		{strings.Replace(good, `"dtype": "f32"`, `"dtype": "f31"`, 1), "inference.0.inputs.0.dtype: "},
		{strings.Replace(good, `"kind"`, `"colour": 1, "kind"`, 1), `inference.0: unknown key "colour"`},
	} {
		text := strings.Replace(bundleWith(`{"name": "sgd", "lr": 0.1}`), `"version": 1,`,
			`"version": 1, "inference": [`+c.entries+`],`, 1)
		b, err := ParseBundle("bundle.json", []byte(text))
		switch {
		case c.want != "":
			if err == nil || !strings.Contains(err.Error(), c.want) {
				t.Errorf("got  %v\nwant %s", err, c.want)
			}
		case err != nil:
			t.Error(err)
		default:
			if g, ok := b.InferenceGraph("step"); !ok || g.Outputs[0].Feeds != "past" {
				t.Errorf("step is %+v", g)
			}
		}
	}
}
