package run

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"google.golang.org/protobuf/proto"

	"github.com/xtts-host/xtts-host/host/observe/console"
	"github.com/xtts-host/xtts-host/ortgraphs/onnxpb"
	"github.com/xtts-host/xtts-host/shared/manifest"
)

// rebuild writes a copy of pico in which every tensor and parameter has another name, and returns its folder. change
// may alter the manifest further.
func rebuild(t *testing.T, change func(m *manifest.Bundle)) string {
	t.Helper()
	dir := filepath.Join(t.TempDir(), "renamed")
	if err := os.CopyFS(dir, os.DirFS(pico)); err != nil {
		t.Fatal(err)
	}
	data, err := os.ReadFile(filepath.Join(dir, "bundle.json"))
	if err != nil {
		t.Fatal(err)
	}
	m, err := manifest.ParseBundle("bundle.json", data)
	if err != nil {
		t.Fatal(err)
	}
	rename := renameTensors(m)
	m.Name = "renamed"
	if change != nil {
		change(m)
	}
	for _, g := range m.Graphs {
		path := filepath.Join(dir, g.File)
		data := renameGraph(t, path, rename)
		sum := sha256.Sum256(data)
		m.Files[g.File] = hex.EncodeToString(sum[:])
	}
	if data, err = json.Marshal(m); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(dir, "bundle.json"), data, 0o666); err != nil {
		t.Fatal(err)
	}
	return dir
}

// renameTensors gives the tensors of a manifest other names, and returns what does so in its graphs.
func renameTensors(m *manifest.Bundle) (rename func(*string)) {
	names := map[string]string{}
	for i := range m.Inputs {
		if in := &m.Inputs[i]; in.Origin == "stage" { // the data set's tensors have names that the host knows
			names[in.Name] = "feature." + strings.ToUpper(in.Name)
		}
	}
	rename = func(s *string) {
		if to, ok := names[*s]; ok {
			*s = to
		}
	}
	for i := range m.Inputs {
		rename(&m.Inputs[i].Name)
		rename(&m.Inputs[i].Lengths)
	}
	for i := range m.Pipeline {
		for port, tensor := range m.Pipeline[i].Outputs {
			rename(&tensor)
			m.Pipeline[i].Outputs[port] = tensor
		}
	}
	for i := range m.Baselines {
		rename(&m.Baselines[i].Target)
		m.Baselines[i].Metric = "my_" + m.Baselines[i].Metric
	}
	for i := range m.Outputs {
		if name, ok := strings.CutPrefix(m.Outputs[i].Name, "metric."); ok {
			names["metric."+name] = "metric.my_" + name
			m.Outputs[i].Name = "metric.my_" + name
		}
	}
	return rename
}

// renameGraph gives the tensors of a graph their other names, and returns the file's new content.
func renameGraph(t *testing.T, path string, rename func(*string)) []byte {
	t.Helper()
	data, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	var model onnxpb.ModelProto
	if err := proto.Unmarshal(data, &model); err != nil {
		t.Fatal(err)
	}
	for _, v := range append(model.Graph.Input, model.Graph.Output...) {
		rename(v.Name)
	}
	for _, n := range model.Graph.Node {
		for i := range n.Input {
			rename(&n.Input[i])
		}
		for i := range n.Output {
			rename(&n.Output[i])
		}
	}
	if data, err = proto.Marshal(&model); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, data, 0o666); err != nil {
		t.Fatal(err)
	}
	return data
}

func lossesOf(t *testing.T, dir string) []any {
	t.Helper()
	var out []any
	for _, line := range losses(t, dir) {
		var v map[string]any
		if err := json.Unmarshal([]byte(line), &v); err != nil {
			t.Fatal(err)
		}
		out = append(out, v["loss"])
	}
	return out
}

// TestRenamedBundleTrainsTheSame: the host knows a graph's tensors from its manifest alone.
func TestRenamedBundleTrainsTheSame(t *testing.T) {
	want := lossesOf(t, mustTrain(t, "--max-steps", "8"))
	got := lossesOf(t, mustTrain(t, "--max-steps", "8", "--graph", rebuild(t, nil)))
	for i := range want {
		if want[i] != got[i] {
			t.Fatalf("step %d: loss %v, with other names %v", i+1, want[i], got[i])
		}
	}
}

// TestResizedBundle: other buckets need no other program.
func TestResizedBundle(t *testing.T) {
	dir := rebuild(t, func(m *manifest.Bundle) {
		hop := m.Features.HopLength
		m.Buckets = []manifest.Bucket{
			{"T_text": 40, "T_wav": 150 * hop, "T_mel": 151, "T_ref": 20 * hop, "T_ref_mel": 21},
			{"T_text": 60, "T_wav": 220 * hop, "T_mel": 221, "T_ref": 20 * hop, "T_ref_mel": 21},
		}
		m.Cost = nil
	})
	run := mustTrain(t, "--max-steps", "20", "--graph", dir)
	l := lossesOf(t, run)
	if first, last := l[0].(float64), l[len(l)-1].(float64); !(last < first) {
		t.Errorf("loss %v -> %v", first, last)
	}
}

// TestProsodyBundle has pitch and energy in addition to the spectrograms, with the same lengths. The graph does not use
// them, so the losses are those without.
func TestProsodyBundle(t *testing.T) {
	dir := rebuild(t, func(m *manifest.Bundle) {
		for _, name := range []string{"pitch", "energy"} {
			m.Inputs = append(m.Inputs, manifest.TensorSpec{
				Name: name, DType: manifest.F32, Lengths: "feature.MEL_LENGTHS", Origin: "stage",
				Shape: manifest.Shape{manifest.Sym("B"), manifest.Sym("T_mel")},
			})
		}
		m.Pipeline = append(m.Pipeline, manifest.StageInstance{Name: "prosody", Stage: "prosody",
			Inputs:  map[string]string{"waveform": "waveform", "waveform_lengths": "waveform_lengths"},
			Outputs: map[string]string{"pitch": "pitch", "energy": "energy", "prosody_lengths": "prosody_lengths"}})
	})
	want := lossesOf(t, mustTrain(t, "--max-steps", "4"))
	if got := lossesOf(t, mustTrain(t, "--max-steps", "4", "--graph", dir)); !slices.Equal(got, want) {
		t.Errorf("losses %v, without pitch and energy %v", got, want)
	}
}

// TestOtherBundle trains the embedded bundle of another shape: no reference, two losses (accumulation mean), other
// features, SGD. Interrupted in an accumulation window and resumed it is the same run.
func TestOtherBundle(t *testing.T) {
	flags := []string{
		"--graph", "builtin:myxtts-multispeaker", "--max-steps", "6", "--accumulate", "2", "--log-every", "1",
		"--checkpoint-every", "100", "--eval-every", "100",
	}
	want := mustTrain(t, flags...)
	l := lossesOf(t, want)
	if first, last := l[0].(float64), l[len(l)-1].(float64); !(last < first) {
		t.Errorf("loss %v -> %v", first, last)
	}
	dir, done := interrupted(t, 3, 6, flags...)
	if err := runFlags(t, console.Console{}, "--resume", dir); err != nil {
		t.Fatal(err)
	}
	if err := os.RemoveAll(filepath.Join(dir, "checkpoints", fmt.Sprintf("step-%06d", done))); err != nil {
		t.Fatal(err)
	}
	sameRun(t, fmt.Sprintf("resumed after step %d", done), want, dir)
}
