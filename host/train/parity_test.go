package train

import (
	"encoding/binary"
	"encoding/json"
	"math"
	"os"
	"path/filepath"
	"testing"

	"github.com/xtts-host/xtts-host/host/checkpoint"
	"github.com/xtts-host/xtts-host/ortgraphs"
	"github.com/xtts-host/xtts-host/ortgraphs/ort"
	"github.com/xtts-host/xtts-host/ortgraphs/ort/orttest"
	"github.com/xtts-host/xtts-host/ortgraphs/safetensors"
	"github.com/xtts-host/xtts-host/shared/manifest"
	"github.com/xtts-host/xtts-host/shared/ring"
)

func TestMain(m *testing.M) { os.Exit(orttest.Run(m)) }

const (
	pico = "../../ortgraphs/testdata/pico"
	nano = "../../ortgraphs/builtin/myxtts-nano"
	gold = "../../ortgraphs/testdata/parity"
)

// golden is what scripts/export wrote of PyTorch's training; its README has the recipe of the batches.
type golden struct {
	Rows, Vocab  int
	NMels        int `json:"n_mels"`
	Seed         int64
	Optimizer    manifest.Optimizer
	Steps        []goldenBatch
	MicroBatches []goldenBatch `json:"micro_batches"`
	Loss         float64
	LossWeight   float64 `json:"loss_weight"`
}

type goldenBatch struct {
	Batch      uint64
	TText      int  `json:"T_text"`
	TMel       int  `json:"T_mel"`
	TRefMel    int  `json:"T_ref_mel"`
	EmptyRow   *int `json:"empty_row"`
	Loss       float64
	LossWeight float64 `json:"loss_weight"`
	GradNorm   float64 `json:"grad_norm"`
}

func (b goldenBatch) sizes() [3]int { return [3]int{b.TText, b.TMel, b.TRefMel} }

func readGolden(t *testing.T, name string) golden {
	t.Helper()
	data, err := os.ReadFile(filepath.Join(gold, name))
	if err != nil {
		t.Fatal(err)
	}
	var g golden
	if err := json.Unmarshal(data, &g); err != nil {
		t.Fatal(err)
	}
	return g
}

// splitmix64 is the output function of SplitMix64 (Steele, Lea, Flood 2014) applied to the counter itself.
func splitmix64(x uint64) uint64 {
	z := x + 0x9E3779B97F4A7C15
	z = (z ^ z>>30) * 0xBF58476D1CE4E5B9
	z = (z ^ z>>27) * 0x94D049BB133111EB
	return z ^ z>>31
}

// fill writes the graph inputs of a counter-made batch, the same numbers that the script made.
func (g golden) fill(b goldenBatch, layout *ring.Layout, slot []byte) {
	stream := 4 * b.Batch
	value := func(s uint64, i int) uint64 { return splitmix64(s<<32 + uint64(i)) }
	names := [3]string{"text_lengths", "mel_lengths", "reference_mel_lengths"}
	for col, name := range names {
		out := ort.View[int32](layout.View(slot, name))
		for row := range out {
			out[row] = int32(value(stream, 3*row+col)%uint64(b.sizes()[col])) + 1
			if b.EmptyRow != nil && *b.EmptyRow == row {
				out[row] = 0
			}
		}
	}
	for i, text := 0, ort.View[int32](layout.View(slot, "text_sequences")); i < len(text); i++ {
		text[i] = 2 + int32(value(stream+1, i)%uint64(g.Vocab-2))
	}
	for k, name := range []string{"mel_spectrograms", "reference_mel_spectrograms"} {
		for i, mel := 0, ort.View[float32](layout.View(slot, name)); i < len(mel); i++ {
			mel[i] = 2 * (float32(value(stream+2+uint64(k), i)>>40)/(1<<23) - 1)
		}
	}
}

// shaped returns the layouts of the shapes that the batches have, as if they were buckets.
func shaped(t *testing.T, b *ortgraphs.Bundle, rows int, batches []goldenBatch) ([]ring.Layout, map[[3]int]int) {
	t.Helper()
	var layouts []ring.Layout
	index := map[[3]int]int{}
	for _, batch := range batches {
		if _, ok := index[batch.sizes()]; ok {
			continue
		}
		var ts []ring.Tensor
		for _, in := range b.Manifest.Inputs {
			shape, err := in.Shape.Resolve(map[string]int{"B": rows, "T_text": batch.TText, "T_mel": batch.TMel, "T_ref_mel": batch.TRefMel})
			if err != nil {
				t.Fatal(err)
			}
			ts = append(ts, ring.Tensor{Name: in.Name, DType: in.DType, Shape: shape, Pad: in.Pad})
		}
		index[batch.sizes()] = len(layouts)
		layouts = append(layouts, ring.NewLayout(ts, nil))
	}
	return layouts, index
}

func open(t *testing.T, dir string) *ortgraphs.Bundle {
	t.Helper()
	b, err := ortgraphs.Load(dir)
	if err != nil {
		t.Fatal(err)
	}
	return b
}

func newModel(t *testing.T, b *ortgraphs.Bundle, layouts []ring.Layout, threads int) *Model {
	t.Helper()
	m, err := NewModel(ModelConfig{Bundle: b, Layouts: layouts, Slots: 1, Threads: threads})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { m.Close() })
	return m
}

func newOptimizer(t *testing.T, m *Model, p manifest.Optimizer, accumulating bool) *Optimizer {
	t.Helper()
	o, err := NewOptimizer(m, p, accumulating, 2)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { o.Close() })
	return o
}

func floats(data []byte) []float32 {
	out := make([]float32, len(data)/4)
	for i := range out {
		out[i] = math.Float32frombits(binary.LittleEndian.Uint32(data[4*i:]))
	}
	return out
}

func norm(x []float32) float64 {
	sum := 0.0
	for _, v := range x {
		sum += float64(v) * float64(v)
	}
	return math.Sqrt(sum)
}

func sub(a, b []float32) []float32 {
	out := make([]float32, len(a))
	for i := range a {
		out[i] = a[i] - b[i]
	}
	return out
}

// TestParityWithPyTorch trains 50 steps beside PyTorch's: every loss within 1e-4 of it, and at the end every tensor p within
// 1e-3 * max(|p|, |p - p0|).
func TestParityWithPyTorch(t *testing.T) {
	for name, dir := range map[string]string{"pico": pico, "nano": nano} {
		t.Run(name, func(t *testing.T) {
			g, b := readGolden(t, name+".json"), open(t, dir)
			layouts, index := shaped(t, b, g.Rows, g.Steps)
			m := newModel(t, b, layouts, 2)
			o := newOptimizer(t, m, g.Optimizer, false)
			start := map[string][]float32{}
			for _, p := range m.Weights() {
				start[p.Name] = floats(p.Data)
			}
			worst := 0.0
			for i, want := range g.Steps {
				bucket := index[want.sizes()]
				g.fill(want, &layouts[bucket], m.slots[0])
				got, err := m.Train(0, bucket, g.Seed)
				if err != nil {
					t.Fatal(err)
				}
				gradNorm, updated, err := o.Step(g.Optimizer.LR, got.Loss, got.Weight)
				if err != nil || !updated {
					t.Fatalf("step %d: updated %v, %v", i, updated, err)
				}
				if got.Weight != want.LossWeight {
					t.Errorf("step %d: loss weight %v, PyTorch %v", i, got.Weight, want.LossWeight)
				}
				relative := math.Abs(got.Loss-want.Loss) / math.Abs(want.Loss)
				if worst = max(worst, relative); relative > 1e-4 {
					t.Errorf("step %d: loss %v, PyTorch %v (relative error %.2g)", i, got.Loss, want.Loss, relative)
				}
				if e := math.Abs(gradNorm-want.GradNorm) / want.GradNorm; e > 1e-2 {
					t.Errorf("step %d: gradient norm %v, PyTorch %v", i, gradNorm, want.GradNorm)
				}
			}
			final, err := safetensors.Open(filepath.Join(gold, name+".final.safetensors"))
			if err != nil {
				t.Fatal(err)
			}
			defer final.Close()
			worstTensor, worstName := 0.0, ""
			for _, p := range m.Weights() {
				data := make([]byte, len(p.Data))
				if err := final.Read(p.Name, data); err != nil {
					t.Fatal(err)
				}
				want, got := floats(data), floats(p.Data)
				moved := max(norm(want), norm(sub(want, start[p.Name])))
				if e := norm(sub(got, want)) / moved; e > worstTensor {
					worstTensor, worstName = e, p.Name
				}
			}
			if worstTensor > 1e-3 {
				t.Errorf("%s differs by %.2g of its size", worstName, worstTensor)
			}
			t.Logf("50 steps: largest relative error of a loss %.2g, of a tensor %.2g (%s)", worst, worstTensor, worstName)
		})
	}
}

// TestAccumulationIsTheConcatenation accumulates two micro-batches of unequal weight: loss and gradients are those of
// PyTorch's one backward over all their rows.
func TestAccumulationIsTheConcatenation(t *testing.T) {
	g, b := readGolden(t, "pico.accumulation.json"), open(t, pico)
	layouts, _ := shaped(t, b, g.Rows, g.MicroBatches)
	m := newModel(t, b, layouts, 1)
	o := newOptimizer(t, m, b.Manifest.Optimizer, true)
	var total mean
	for i, micro := range g.MicroBatches {
		g.fill(micro, &layouts[0], m.slots[0])
		r, err := m.Train(0, 0, g.Seed)
		if err != nil {
			t.Fatal(err)
		}
		total.add(r)
		if err := o.Accumulate(r.Weight, i == 0); err != nil {
			t.Fatal(err)
		}
	}
	loss, _ := total.result(nil)
	if math.Abs(loss-g.Loss) > 1e-6*g.Loss || total.weight != g.LossWeight {
		t.Errorf("loss %v of weight %v, PyTorch %v of %v", loss, total.weight, g.Loss, g.LossWeight)
	}
	want, err := safetensors.Open(filepath.Join(gold, "pico.accumulation.safetensors"))
	if err != nil {
		t.Fatal(err)
	}
	defer want.Close()
	var sum []checkpoint.Tensor = m.views("", o.acc)
	for _, p := range sum {
		data := make([]byte, len(p.Data))
		if err := want.Read("grad."+p.Name, data); err != nil {
			t.Fatal(err)
		}
		got := floats(p.Data)
		for i := range got {
			got[i] /= float32(total.weight)
		}
		if e := norm(sub(got, floats(data))) / norm(floats(data)); e > 1e-4 {
			t.Errorf("gradient of %s differs by %.2g", p.Name, e)
		}
	}
}
