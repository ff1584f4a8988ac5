package manifest

import (
	"encoding/json"
	"fmt"
	"reflect"
	"strings"
	"testing"
)

// bundleWith returns a minimal bundle.json with the given optimizer.
func bundleWith(optimizer string) string {
	return fmt.Sprintf(`{
		"version": 1, "name": "tiny", "pipeline": [], "schedule": {"name": "constant"}, "accumulation": "exact", "files": {},
		"inputs": [{"name": "x", "dtype": "f32", "shape": ["B", "T"], "origin": "stage"}],
		"outputs": [{"name": "loss", "dtype": "f32", "shape": []}, {"name": "loss_weight", "dtype": "f32", "shape": []}],
		"parameters": [{"name": "w", "shape": [2]}], "buckets": [{"T": 3}],
		"features": {"sample_rate": 16000, "n_fft": 512, "win_length": 400, "hop_length": 200, "window": "hann", "center": true,
			"pad_mode": "reflect", "power": 2, "n_mels": 40, "mel_scale": "htk", "mel_norm": "none", "f_min": 0, "f_max": 8000,
			"log": "log10", "log_floor": 1e-4},
		"graphs": [{"file": "t.onnx", "kind": "train", "precision": "f32", "nodes": {"MatMul": 2}}],
		"optimizer": %s
	}`, optimizer)
}

func TestOptimizer(t *testing.T) {
	for _, c := range []struct {
		json string
		want Optimizer
		err  string
	}{
		{json: `{"name": "adamw", "lr": 0.1, "betas": [0.9, 0.99], "eps": 1e-8, "weight_decay": 0.01, "grad_clip": 1}`,
			want: Optimizer{
				Name: "adamw", LR: 0.1, Betas: [2]float64{0.9, 0.99}, Eps: 1e-8, WeightDecay: 0.01, GradClip: 1,
			}},
		{json: `{"name": "sgd", "lr": 0.1, "momentum": 0.9, "weight_decay": 0.01, "grad_clip": 1}`,
			want: Optimizer{Name: "sgd", LR: 0.1, Momentum: 0.9, WeightDecay: 0.01, GradClip: 1}},
		{json: `{"name": "sgd", "lr": 0.1}`, want: Optimizer{Name: "sgd", LR: 0.1}},
		{json: `{"name": "rmsprop", "lr": 0.1}`, err: "optimizer.name: "},
		{json: `{"name": "lion", "lr": 0.1}`, err: "'betas'"},
		{json: `{"name": "lion", "lr": 0.1, "betas": [0.9, 0.99]}`, want: Optimizer{
			Name: "lion", LR: 0.1, Betas: [2]float64{0.9, 0.99},
		}},
		{json: `{"name": "muon", "lr": 0.1, "momentum": 0.9, "betas": [0.9, 0.99], "eps": 1e-8, "adamw": ["w*"]}`,
			want: Optimizer{
				Name: "muon", LR: 0.1, Momentum: 0.9, Betas: [2]float64{0.9, 0.99}, Eps: 1e-8, AdamW: []string{"w*"},
			}},
		{
			json: `{"name": "muon", "lr": 0.1, "momentum": 0.9, "betas": [0.9, 0.99], "eps": 1e-8, "adamw": ["x"]}`,
			err:  `optimizer: adamw: "x" matches no parameter`,
		},
		{
			json: `{"name": "muon", "lr": 0.1, "momentum": 0.9, "betas": [0.9, 0.99], "eps": 1e-8, "adamw": ["["]}`,
			err:  `optimizer: adamw: "[" is not a pattern`,
		},
		{json: `{"name": "adafactor", "lr": 0.1, "beta2_decay": -0.8, "eps1": 1e-7, "eps2": 0.001, "d": 1}`,
			want: Optimizer{Name: "adafactor", LR: 0.1, Beta2Decay: -0.8, Eps1: 1e-7, Eps2: 0.001, D: 1}},
		{
			json: `{"name": "adafactor", "lr": 0.1, "beta2_decay": -0.8, "eps1": 1e-7, "eps2": 0.001, "d": 0.5}`,
			err:  "optimizer.d: ",
		},
		{json: `{"name": "sgd"}`, err: "'lr'"},
		{json: `{"lr": 0.1}`, err: "'name'"},
		{json: `{"name": "sgd", "lr": 0.1, "momentum": 1}`, err: "optimizer.momentum: "},
		{json: `{"name": "sgd", "lr": 0.1, "momentum": -0.1}`, err: "optimizer.momentum: "},
		{json: `{"name": "sgd", "lr": 0.1, "groups": [{"match": ["w"], "lr_factor": 0.5}]}`,
			want: Optimizer{Name: "sgd", LR: 0.1, Groups: []Group{{Match: []string{"w"}, LRFactor: new(0.5)}}}},
		{
			json: `{"name": "sgd", "lr": 0.1, "groups": [{"match": ["x"], "lr_factor": 0.5}]}`,
			err:  `optimizer: groups[0]: "x" matches no parameter`,
		},
		{json: `{"name": "sgd", "lr": 0.1, "groups": [{"match": ["w"]}]}`, err: "optimizer.groups.0: "},
		{json: `{"name": "sgd", "lr": 0.1, "betas": [0.9, 0.999]}`, err: `optimizer: unknown key "betas"`},
		{json: `{"name": "adamw", "lr": 0.1, "momentum": 0.9}`, err: `optimizer: unknown key "momentum"`},
	} {
		b, err := ParseBundle("bundle.json", []byte(bundleWith(c.json)))
		switch {
		case c.err != "":
			if err == nil || !strings.Contains(err.Error(), c.err) {
				t.Errorf("%s: got %v, want %q", c.json, err, c.err)
			}
		case err != nil:
			t.Errorf("%s: %v", c.json, err)
		case !reflect.DeepEqual(b.Optimizer, c.want):
			t.Errorf("%s: got %+v", c.json, b.Optimizer)
		}
	}
}

func TestAdapters(t *testing.T) {
	const parameters = `"parameters": [{"name": "w", "shape": [2]}, {"name": "linear", "shape": [3, 5]}, {"name": "filter", "shape": [3, 5, 2]},
		{"name": "a5", "shape": [2, 5]}, {"name": "a10", "shape": [2, 10]}, {"name": "b3", "shape": [3, 2]}, {"name": "a3", "shape": [2, 3]}, {"name": "b5", "shape": [5, 2]}]`
	for adapter, want := range map[string]string{
		`"weight": "linear", "a": "a5", "b": "b3"`:                          "",
		`"weight": "linear", "a": "a5", "b": "b3", "layer": "linear"`:       "",
		`"weight": "filter", "a": "a10", "b": "b3", "layer": "convolution"`: "",
		`"weight": "linear", "a": "a3", "b": "b5", "layer": "transposed"`:   "",
		`"weight": "linear", "a": "a3", "b": "b5", "layer": "embedding"`:    "",
		`"weight": "x", "a": "a5", "b": "b3"`:                               `adapters[0]: "x" is not a parameter`,
		`"weight": "linear", "a": "a5", "b": "loss"`:                        `adapters[0]: "loss" is not a parameter`,
		`"weight": "linear", "a": "a3", "b": "b5"`:                          `adapters[0]: "a3"[2 3] and "b5"[5 2] make no [3, 5], as "linear"[3 5] needs`,
		`"weight": "linear", "a": "a5", "b": "b3", "layer": "transposed"`:   `make no [5, 3]`,
		`"weight": "filter", "a": "a3", "b": "b5", "layer": "transposed"`:   `"filter"[3 5 2] is no weight of such a layer`,
		`"weight": "w", "a": "a5", "b": "b3"`:                               `"w"[2] is no weight of such a layer`,
		`"weight": "linear", "a": "w", "b": "b3"`:                           `"w"[2] and "b3"[3 2] make no [3, 5]`,
	} {
		text := strings.Replace(bundleWith(`{"name": "sgd", "lr": 0.1}`), `"version": 1,`,
			`"version": 1, "adapters": [{`+adapter+`, "scale": 2}],`, 1)
		text = strings.Replace(text, `"parameters": [{"name": "w", "shape": [2]}]`, parameters, 1)
		b, err := ParseBundle("bundle.json", []byte(text))
		if want == "" && (err != nil || len(b.Adapters) != 1 || b.Adapters[0].Scale != 2) ||
			want != "" && (err == nil || !strings.Contains(err.Error(), want)) {
			t.Errorf("%s: %v", adapter, err)
		}
	}
}

func TestState(t *testing.T) {
	for state, want := range map[string]string{
		`{"name": "norm.running_mean", "shape": [4]}`:         "",
		`{"name": "count", "shape": []}`:                      "",
		`{"name": "w", "shape": [1]}`:                         `state "w" has the name of parameter`,
		`{"name": "norm.mean", "shape": ["T"]}`:               "state.0.shape.0: got string",
		`{"name": "norm.mean", "shape": [1], "dtype": "i64"}`: "dtype",
	} {
		text := strings.Replace(bundleWith(`{"name": "sgd", "lr": 0.1}`), `"version": 1,`,
			`"version": 1, "state": [`+state+`],`, 1)
		b, err := ParseBundle("bundle.json", []byte(text))
		if want == "" && (err != nil || len(b.State) != 1) ||
			want != "" && (err == nil || !strings.Contains(err.Error(), want)) {
			t.Errorf("%s: %v", state, err)
		}
	}
}

// TestOptimizerIsWrittenAsItIsRead: ParseBundle refuses a key that does not belong to the optimizer.
func TestOptimizerIsWrittenAsItIsRead(t *testing.T) {
	for _, want := range []Optimizer{
		{Name: "sgd", LR: 0.1, Momentum: 0.9}, {Name: "adamw", LR: 0.1, Betas: [2]float64{0, 0.9}, Eps: 1},
	} {
		data, err := json.Marshal(want)
		if err != nil {
			t.Fatal(err)
		}
		b, err := ParseBundle("bundle.json", []byte(bundleWith(string(data))))
		if err != nil || !reflect.DeepEqual(b.Optimizer, want) {
			t.Errorf("%s: %v", data, err)
		}
	}
}
