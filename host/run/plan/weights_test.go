package plan

import (
	"encoding/binary"
	"encoding/json"
	"errors"
	"io/fs"
	"math"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"github.com/xtts-host/xtts-host/host/base/rundir"
	"github.com/xtts-host/xtts-host/host/train/checkpoint"
)

// floats is a tensor filled with one value.
func floats(name string, value float32, shape ...int) checkpoint.Tensor {
	n := 1
	for _, d := range shape {
		n *= d
	}
	t := checkpoint.Tensor{Name: name, Shape: shape}
	for range n {
		t.Data = binary.LittleEndian.AppendUint32(t.Data, math.Float32bits(value))
	}
	return t
}

func first4(t checkpoint.Tensor) float32 {
	return math.Float32frombits(binary.LittleEndian.Uint32(t.Data))
}

// writeWeights makes a safetensors file: the length of a JSON header, the header, the data.
func writeWeights(t *testing.T, path, dtype string, tensors ...checkpoint.Tensor) {
	t.Helper()
	header := map[string]any{}
	var data []byte
	for _, tensor := range tensors {
		header[tensor.Name] = map[string]any{
			"dtype": dtype, "shape": tensor.Shape, "data_offsets": []int{len(data), len(data) + len(tensor.Data)},
		}
		data = append(data, tensor.Data...)
	}
	text, err := json.Marshal(header)
	if err != nil {
		t.Fatal(err)
	}
	file := append(binary.LittleEndian.AppendUint64(nil, uint64(len(text))), text...)
	if err := os.WriteFile(path, append(file, data...), 0o666); err != nil {
		t.Fatal(err)
	}
}

func TestIntoMatchesNameAndShape(t *testing.T) {
	path := filepath.Join(t.TempDir(), "w.safetensors")
	writeWeights(t, path, "F32", floats("same", 2, 2, 3), floats("turned", 2, 2, 3), floats("flat", 2, 6),
		floats("unused", 2, 1))
	w, err := openWeights(path)
	if err != nil {
		t.Fatal(err)
	}
	defer w.Close()
	tensors := []checkpoint.Tensor{
		floats("same", 1, 2, 3), floats("turned", 1, 3, 2), floats("flat", 1, 2, 3), floats("missing", 1, 1),
	}
	m, err := w.Into(tensors)
	if err != nil {
		t.Fatal(err)
	}
	want := Match{
		Taken:    []string{"same"},
		Reshaped: []string{"turned (F32[2 3] there, F32[3 2] here)", "flat (F32[6] there, F32[2 3] here)"},
		Missing:  []string{"missing"},
		Unused:   []string{"unused"},
	}
	if !slices.Equal(m.Taken, want.Taken) || !slices.Equal(m.Reshaped, want.Reshaped) ||
		!slices.Equal(m.Missing, want.Missing) || !slices.Equal(m.Unused, want.Unused) {
		t.Errorf("got  %+v\nwant %+v", m, want)
	}
	for i, v := range []float32{2, 1, 1, 1} {
		if got := first4(tensors[i]); got != v {
			t.Errorf("%s holds %v, want %v", tensors[i].Name, got, v)
		}
	}
}

func TestIntoTakesF32Only(t *testing.T) {
	path := filepath.Join(t.TempDir(), "w.safetensors")
	writeWeights(t, path, "I32", floats("w", 2, 4))
	w, err := openWeights(path)
	if err != nil {
		t.Fatal(err)
	}
	defer w.Close()
	m, err := w.Into([]checkpoint.Tensor{floats("w", 1, 4)})
	if err != nil || len(m.Taken) > 0 || !slices.Equal(m.Reshaped, []string{"w (I32[4] there, F32[4] here)"}) {
		t.Errorf("%+v, %v", m, err)
	}
}

func TestMatchText(t *testing.T) {
	m := Match{
		Taken: make([]string, 12), Missing: []string{"a", "b", "c", "d", "e", "f", "g"}, Unused: []string{"x"},
		damaged: []checkpoint.Skipped{{Path: "run/checkpoints/step-000009", Err: errors.New("torn")}},
	}
	want := `weights      w.safetensors: 12 tensors loaded
             run/checkpoints/step-000009 is damaged and skipped: torn
             7 not in the file: the bundle's values are kept: a, b, c, d, e and 2 more
             1 in the file, but not in the bundle: x
`
	if got := m.Text("w.safetensors"); got != want {
		t.Errorf("got\n%s\nwant\n%s", got, want)
	}
}

// TestOpenWeights opens whatever --init may name.
func TestOpenWeights(t *testing.T) {
	root := t.TempDir()
	at := func(elem ...string) string { return filepath.Join(append([]string{root}, elem...)...) }
	run, empty, bundle := at("run"), at("empty"), at("bundle")
	store := checkpoint.NewStore(run)
	for step := range int64(3) {
		tensors := []checkpoint.Tensor{floats("w", float32(step), 8)}
		moments := []checkpoint.Tensor{floats("exp_avg.w", 0, 8), floats("exp_avg_sq.w", 0, 8)}
		if _, err := store.Save(t.Context(), checkpoint.State{Step: step}, tensors, moments); err != nil {
			t.Fatal(err)
		}
	}
	for _, dir := range []string{bundle, at("empty", rundir.Checkpoints), at("nothing")} {
		if err := os.MkdirAll(dir, 0o777); err != nil {
			t.Fatal(err)
		}
	}
	writeWeights(t, filepath.Join(bundle, "params.safetensors"), "F32", floats("w", 7, 8))
	if err := os.WriteFile(at("text"), []byte("weights\n"), 0o666); err != nil {
		t.Fatal(err)
	}
	damaged := store.Path(2)
	if err := os.Truncate(filepath.Join(damaged, "params.safetensors"), 40); err != nil {
		t.Fatal(err)
	}

	for _, tt := range []struct {
		from, path string
		value      float32
		skipped    int
	}{
		{run, store.Path(1), 1, 1}, // the newest is damaged
		{store.Path(0), store.Path(0), 0, 0},
		{filepath.Join(store.Path(1), "params.safetensors"), filepath.Join(store.Path(1), "params.safetensors"), 1, 0},
		{bundle, filepath.Join(bundle, "params.safetensors"), 7, 0},
	} {
		w, err := openWeights(tt.from)
		if err != nil {
			t.Errorf("%s: %v", tt.from, err)
			continue
		}
		tensors := []checkpoint.Tensor{floats("w", -1, 8)}
		m, err := w.Into(tensors)
		if err != nil || len(m.Taken) != 1 || len(m.damaged) != tt.skipped || first4(tensors[0]) != tt.value ||
			w.Path != tt.path {
			t.Errorf("%s: %v of %s, want %v of %s; %+v, %v", tt.from, first4(tensors[0]), w.Path, tt.value, tt.path, m,
				err)
		}
		if err := w.Close(); err != nil {
			t.Errorf("%s: %v", tt.from, err)
		}
	}

	for _, tt := range []struct {
		from string
		want error // nil for any
	}{
		{at("nowhere"), fs.ErrNotExist},
		{at("nothing"), fs.ErrNotExist},
		{empty, checkpoint.ErrNone},
		{damaged, checkpoint.ErrDamaged},
		{at("text"), nil},
	} {
		w, err := openWeights(tt.from)
		if err == nil {
			w.Close()
			t.Errorf("%s: accepted", tt.from)
		} else if tt.want != nil && !errors.Is(err, tt.want) {
			t.Errorf("%s: %v, want %v", tt.from, err, tt.want)
		}
	}
}
