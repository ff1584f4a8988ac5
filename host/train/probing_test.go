package train

import (
	"math"
	"path/filepath"
	"slices"
	"testing"

	"github.com/xtts-host/xtts-host/ortgraphs/ort"
	"github.com/xtts-host/xtts-host/ortgraphs/safetensors"
	"github.com/xtts-host/xtts-host/shared/manifest"
)

// distances returns the largest difference of each probe from the stored one.
func distances(t *testing.T, p *Probing, golden *safetensors.File) map[string]float64 {
	t.Helper()
	far := map[string]float64{}
	err := p.Run(func(name string, shape []int, values []float32) error {
		info, _ := golden.Tensor(manifest.ProbePrefix + name)
		if !slices.Equal(info.Shape, shape) {
			t.Errorf("%s has the shape %v", name, shape)
		}
		want := make([]byte, info.Bytes)
		if err := golden.Read(info.Name, want); err != nil {
			return err
		}
		for i, v := range floats(want) {
			far[name] = max(far[name], math.Abs(float64(v-values[i])))
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return far
}

// TestProbesArePyTorchs: the probes of a batch are those that the exporter has noted of the module in PyTorch, and they
// follow the weights.
func TestProbesArePyTorchs(t *testing.T) {
	golden, err := safetensors.Open(filepath.Join(gold, "probed.safetensors"))
	if err != nil {
		t.Fatal(err)
	}
	defer golden.Close()
	stored := func(name string) []byte {
		info, _ := golden.Tensor(name)
		data := make([]byte, info.Bytes)
		if err := golden.Read(name, data); err != nil {
			t.Fatal(err)
		}
		return data
	}
	b := open(t, "../../ortgraphs/testdata/probed")
	sizes := manifest.Bucket{"T_text": 9, "T_mel": 23}
	layouts, _ := shaped(t, b, 3, []goldenBatch{{Sizes: sizes}})
	for name, device := range cpuAndGPU {
		t.Run(name, func(t *testing.T) {
			m, err := NewModel(ModelConfig{
				Bundle: b, Arenas: arenasOf(b), Layouts: layouts, Slots: 1, Threads: 1, Device: device(t),
			})
			if err != nil {
				t.Fatal(err)
			}
			defer m.Close()
			for _, in := range layouts[0].Tensors {
				copy(layouts[0].View(input(t, m), in.Name), stored(in.Name))
			}
			load(t, m, 0)
			names := []string{"attention.1", "encoder"}
			p, err := NewProbing(m, b, names, 1)
			if err != nil {
				t.Fatal(err)
			}
			defer p.Close()
			if err := p.Take(0, 0); err != nil {
				t.Fatal(err)
			}
			if got := p.Taken("text_lengths"); !slices.Equal(got, ort.View[int32](stored("text_lengths"))) {
				t.Errorf("lengths %v", got)
			}
			if p.Taken("mel_spectrograms") != nil || p.Taken("none") != nil {
				t.Error("integers of what has none")
			}
			far := distances(t, p, golden)
			if len(far) != len(names) || far["attention.1"] > 1e-5 || far["encoder"] > 1e-5 {
				t.Errorf("probes differ from PyTorch's by %v", far)
			}
			for _, w := range m.Weights() {
				values := ort.View[float32](w.Data)
				for i := range values {
					values[i] *= 2
				}
			}
			if err := m.Push(); err != nil {
				t.Fatal(err)
			}
			if far := distances(t, p, golden); far["attention.1"] < 1e-3 || far["encoder"] < 1e-3 {
				t.Errorf("probes do not follow the weights: %v", far)
			}
		})
	}
}
