package batch

import (
	"encoding/json"
	"path/filepath"
	"reflect"
	"strings"
	"testing"

	"github.com/xtts-host/xtts-host/host/stages/catalog"
	"github.com/xtts-host/xtts-host/ortgraphs"
	"github.com/xtts-host/xtts-host/shared/manifest"
)

func tensorSpec(name string, dtype manifest.DType, pad float64, dims ...string) manifest.TensorSpec {
	s := manifest.TensorSpec{Name: name, DType: dtype, Pad: pad}
	for _, d := range dims {
		s.Shape = append(s.Shape, manifest.Sym(d))
	}
	return s
}

var (
	layoutInputs = []manifest.TensorSpec{tensorSpec("text", manifest.I32, 9, "B", "T_text"), tensorSpec("mel",
		manifest.F32, 0, "B", "T_mel")}
	layoutBetween = []manifest.TensorSpec{tensorSpec("waveform", manifest.F32, 0, "B", "T_wav")}
	layoutBuckets = []manifest.Bucket{{"T_text": 3, "T_mel": 5, "T_wav": 100}, {"T_text": 6, "T_mel": 10, "T_wav": 200}}
)

func TestLayouts(t *testing.T) {
	ls, err := Layouts(layoutBuckets, 4, layoutInputs, layoutBetween)
	if err != nil {
		t.Fatal(err)
	}
	for i, want := range [][][]int{{{4, 3}, {4, 5}, {4, 100}}, {{4, 6}, {4, 10}, {4, 200}}} {
		l := ls[i]
		for k, name := range []string{"text", "mel", "waveform"} {
			tensor := l.Tensors[k]
			if tensor.Name != name || !reflect.DeepEqual(tensor.Shape, want[k]) {
				t.Errorf("bucket %d: tensor %d is %s%v, want %s%v", i, k, tensor.Name, tensor.Shape, name, want[k])
			}
			if input := name != "waveform"; input != (tensor.Offset < l.InputBytes) {
				t.Errorf("bucket %d: %s is at %d, the graph's inputs end at %d", i, name, tensor.Offset, l.InputBytes)
			}
		}
		if l.Tensors[0].Pad != 9 {
			t.Errorf("bucket %d: text is padded with %v", i, l.Tensors[0].Pad)
		}
	}
	made := madeByHost(ls, []manifest.TensorSpec{{Name: "waveform"}, {Name: "text"}, {Name: "not in the layout"}})
	if len(made) != 2 || len(made[1]) != 2 || made[1][0].Name != "waveform" || made[1][0].Shape[1] != 200 ||
		made[1][1].Name != "text" {
		t.Errorf("the host makes %+v", made)
	}
	_, err = Layouts(layoutBuckets, 4, layoutInputs,
		[]manifest.TensorSpec{tensorSpec("codes", manifest.I32, 0, "B", "T_codes")})
	if err == nil || !strings.HasPrefix(err.Error(), "bucket 0: tensor codes: ") {
		t.Errorf("symbol without a value: %v", err)
	}
}

func TestConfigureRequest(t *testing.T) {
	bundle := &ortgraphs.Bundle{Dir: "/bundle", Manifest: &manifest.Bundle{
		Features: manifest.Features{SampleRate: 22050},
		Files:    map[string]string{"tokenizer.json": "", "logmel.onnx": ""},
	}}
	instance := func(name string, plugin int, config map[string]any) catalog.Instance {
		return catalog.Instance{
			Name: name, Plugin: plugin, Config: config, Stage: manifest.Stage{Name: "stage of " + name},
			Inputs: map[string]string{"in": name}, Outputs: map[string]string{"out": name},
		}
	}
	pipeline := &catalog.Resolved{Instances: []catalog.Instance{
		instance("a", 0, nil), instance("b", 1, map[string]any{"db": 3}), instance("c", 0, map[string]any{}),
		instance("d", 1, nil),
	}}
	pipeline.Instances[3].Data = map[string]catalog.DataFolder{
		"noise": {Path: "/noise", Files: []catalog.DataFile{{Name: "a/b.wav", Size: 7, SHA256: [32]byte{31: 9}}}},
	}
	ls, err := Layouts(layoutBuckets, 4, layoutInputs, layoutBetween)
	if err != nil {
		t.Fatal(err)
	}
	req, err := ConfigureRequest(bundle, pipeline, 1, ls)
	if err != nil {
		t.Fatal(err)
	}
	if len(req.Instances) != 2 || req.Instances[0].Name != "b" || req.Instances[1].Name != "d" {
		t.Fatalf("instances of another plugin: %v", req.Instances)
	}
	b := req.Instances[0]
	if b.Stage != "stage of b" || b.ConfigJson != `{"db":3}` || b.Inputs["in"] != "b" || b.Outputs["out"] != "b" ||
		req.Instances[1].ConfigJson != "" {
		t.Errorf("instance %v", b)
	}
	noise := req.Instances[1].Data["noise"]
	f := noise.GetFiles()
	if len(b.Data) != 0 || noise.GetPath() != "/noise" || len(f) != 1 || f[0].Name != "a/b.wav" ||
		f[0].Size != 7 || len(f[0].Sha256) != 32 || f[0].Sha256[31] != 9 {
		t.Errorf("data %v", req.Instances[1].Data)
	}
	if len(req.Files) != 2 || req.Files["logmel.onnx"] != filepath.Join("/bundle", "logmel.onnx") {
		t.Errorf("files %v", req.Files)
	}
	var features manifest.Features
	if err := json.Unmarshal([]byte(req.FeaturesJson), &features); err != nil || features != bundle.Manifest.Features {
		t.Errorf("features %s, %v", req.FeaturesJson, err)
	}
	if len(req.Layouts) != len(ls) {
		t.Fatalf("%d layouts", len(req.Layouts))
	}
	for i, l := range req.Layouts {
		for k, tensor := range l.Tensors {
			want := ls[i].Tensors[k]
			if tensor.Name != want.Name || tensor.Dtype != string(want.DType) || tensor.Pad != want.Pad ||
				tensor.Offset != uint64(want.Offset) || tensor.Shape[1] != uint64(want.Shape[1]) {
				t.Errorf("bucket %d: tensor %v, want %+v", i, tensor, want)
			}
		}
	}
}
