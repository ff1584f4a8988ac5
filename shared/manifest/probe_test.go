package manifest

import (
	"strings"
	"testing"
)

func TestProbes(t *testing.T) {
	const one = `{"name": "attention.0", "dtype": "f32", "shape": ["B", 4, "?"]}`
	probe := func(name, shape string) string {
		return `{"name": "` + name + `", "dtype": "f32", "shape": ` + shape + `}`
	}
	for probes, want := range map[string]string{
		one:                                     "",
		probe("a", "[]"):                        "",
		probe("a-b_c.0.1", "[]"):                "",
		one + "," + one:                         "probes[1]: probes[0] has the same name, attention.0",
		probe("a", `["B", "T_no"]`):             `probes[0]: no input has the dimension T_no of a[B,T_no]`,
		probe("../a", "[]"):                     "'../a' does not match pattern",
		probe("a/b", "[]"):                      "does not match pattern",
		probe(".a", "[]"):                       "does not match pattern",
		probe("a.", "[]"):                       "does not match pattern",
		probe("a..b", "[]"):                     "does not match pattern",
		probe("A", "[]"):                        "does not match pattern",
		probe(`a\n`, "[]"):                      "does not match pattern",
		probe("*", "[]"):                        "does not match pattern",
		probe("", "[]"):                         "does not match pattern",
		probe(strings.Repeat("a", 65), "[]"):    "maxLength",
		probe("a", "[0]"):                       "minimum",
		probe("a", "[1,1,1,1,1,1,1,1,1]"):       "maxItems",
		probe("a", `["B*T"]`):                   "probes.0.shape.0",
		strings.Replace(one, "f32", "i32", 1):   "must be 'f32'",
		strings.Replace(one, "name", "file", 1): "missing property 'name'",
	} {
		text := strings.Replace(bundleWith(`{"name": "sgd", "lr": 0.1}`), `"version": 1,`,
			`"version": 1, "probes": [`+probes+`],`, 1)
		text = strings.Replace(text, `"graphs": [`, `"graphs": [{"file": "p.onnx", "kind": "probe", "precision": "f32"}, `, 1)
		b, err := ParseBundle("bundle.json", []byte(text))
		if want == "" && (err != nil || len(b.Probes) != 1) ||
			want != "" && (err == nil || !strings.Contains(err.Error(), want)) {
			t.Errorf("%s: %v", probes, err)
		}
	}
}

func TestProbesAndTheirGraph(t *testing.T) {
	plain := bundleWith(`{"name": "sgd", "lr": 0.1}`)
	graph := func(entry string) string { return strings.Replace(plain, `"graphs": [`, `"graphs": [`+entry+`, `, 1) }
	listed := `"version": 1, "probes": [{"name": "a", "dtype": "f32", "shape": []}],`
	for text, want := range map[string]string{
		graph(`{"file": "p.onnx", "kind": "probe", "precision": "f32"}`):                "there is one of kind probe, and no list of probes",
		strings.Replace(plain, `"version": 1,`, listed, 1):                              "probes: no graph is of kind probe",
		graph(`{"file": "p.onnx", "kind": "probe", "precision": "bf16"}`):               "precision",
		graph(`{"file": "p.onnx", "kind": "probe", "precision": "f32", "player": "a"}`): "player",
	} {
		if _, err := ParseBundle("bundle.json", []byte(text)); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v", want, err)
		}
	}
}
