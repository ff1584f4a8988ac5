package catalog

import (
	"reflect"
	"strings"
	"testing"

	"github.com/xtts-host/xtts-host/shared/manifest"
)

// TestResolveFiles: a configuration names files of the bundle, and an inference graph that fits the pipeline.
func TestResolveFiles(t *testing.T) {
	types, entries := testTypes(), testEntries()
	types.Features.SampleRate = 22050
	types.Files = map[string]string{"a.onnx": "aa", "b.onnx": "bb", "c.onnx": "cc", "a.safetensors": "dd"}
	types.Inference = []manifest.InferenceGraph{
		{Name: "a", Kind: manifest.InferenceStage, File: "a.onnx", SampleRate: 22050},
		{Name: "b", Kind: manifest.InferenceDecode, File: "b.onnx"},
		{Name: "c", Kind: manifest.InferenceStage, File: "c.onnx", SampleRate: 16000},
	}
	logmel := &entries[2].Manifest.Stages[0]
	logmel.Files = []string{"graph", "weights"}
	text := map[string]any{"type": "string"}
	logmel.Config = map[string]any{"type": "object", "properties": map[string]any{"graph": text, "weights": text}}
	for _, c := range []struct {
		config map[string]any
		want   map[string]string
		err    string
	}{
		{
			config: map[string]any{"graph": "a.onnx", "weights": "a.safetensors"},
			want:   map[string]string{"a.onnx": "aa", "a.safetensors": "dd"},
		},
		{config: map[string]any{}},
		{
			config: map[string]any{"graph": "d.onnx"},
			err:    `pipeline: instance "target": config: graph is d.onnx, which is not a file of the bundle`,
		},
		{
			config: map[string]any{"graph": "b.onnx"},
			err:    "config: graph is b.onnx, which is for speaking: its kind is decode",
		},
		{
			config: map[string]any{"graph": "c.onnx"},
			err: "config: graph is c.onnx, which takes waveforms of 16000 Hz, but those of the pipeline have " +
				"22050 Hz",
		},
	} {
		own := target
		own.Config = c.config
		r, err := Resolve([]manifest.StageInstance{own, reference}, entries, types)
		switch {
		case c.err != "":
			if err == nil || !strings.Contains(err.Error(), c.err) {
				t.Errorf("got %v, want %s", err, c.err)
			}
		case err != nil:
			t.Error(err)
		case !reflect.DeepEqual(r.Instances[0].Files, c.want):
			t.Errorf("%v: %v", c.config, r.Instances[0].Files)
		}
	}
}
