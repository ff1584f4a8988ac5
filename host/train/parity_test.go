package train

import (
	"encoding/binary"
	"encoding/json"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"testing"

	"github.com/xtts-host/xtts-host/ortgraphs"
	"github.com/xtts-host/xtts-host/ortgraphs/ort"
	"github.com/xtts-host/xtts-host/ortgraphs/ort/orttest"
	"github.com/xtts-host/xtts-host/ortgraphs/safetensors"
	"github.com/xtts-host/xtts-host/shared/manifest"
	"github.com/xtts-host/xtts-host/shared/ring"
)

func TestMain(m *testing.M) { os.Exit(orttest.Run(m)) }

const (
	pico         = "../../ortgraphs/testdata/pico"
	nano         = "../../ortgraphs/builtin/myxtts-nano"
	multispeaker = "../../ortgraphs/builtin/myxtts-multispeaker"
	gold         = "../../ortgraphs/testdata/parity"
)

// bundles has the bundle of every golden run, by its name. Those of pico with a suffix have that optimizer.
var bundles = map[string]string{
	"pico": pico, "nano": nano, "multispeaker": multispeaker,
	"pico.lion": pico, "pico.muon": pico, "pico.adafactor": pico, "pico.groups": pico,
}

// golden is what scripts/xtts_export wrote of PyTorch's training; its README has the recipe of the batches.
type golden struct {
	Rows         int
	Seed         int64
	Inputs       []recipe
	Optimizer    manifest.Optimizer
	Steps        []goldenBatch
	MicroBatches []goldenBatch `json:"micro_batches"`
	Loss         float64
	LossWeight   float64 `json:"loss_weight"`
}

// recipe says how a batch fills one of the graph's inputs.
type recipe struct {
	Name, Fill string
	Of         string  // lengths: the symbol that they count
	Low, Count int32   // integers: the lowest, and how many there are
	Scale      float32 // floats: the largest
}

type goldenBatch struct {
	Batch      uint64
	Sizes      manifest.Bucket
	EmptyRow   *int `json:"empty_row"`
	Loss       float64
	LossWeight float64 `json:"loss_weight"`
	GradNorm   float64 `json:"grad_norm"`
}

// shape identifies the sizes of a batch: fmt prints maps in the order of their keys.
func (b goldenBatch) shape() string { return fmt.Sprint(b.Sizes) }

func readGolden(t testing.TB, name string) golden {
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
func (g golden) fill(t testing.TB, b goldenBatch, layout *ring.Layout, slot []byte) {
	t.Helper()
	for place, r := range g.Inputs {
		stream := uint64(len(g.Inputs))*b.Batch + uint64(place)
		value := func(i int) uint64 { return splitmix64(stream<<32 + uint64(i)) }
		data := layout.View(slot, r.Name)
		switch r.Fill {
		case "lengths":
			for row, v := 0, ort.View[int32](data); row < len(v); row++ {
				v[row] = 1 + int32(value(row)%uint64(b.Sizes[r.Of]))
				if b.EmptyRow != nil && *b.EmptyRow == row {
					v[row] = 0
				}
			}
		case "integers":
			for i, v := 0, ort.View[int32](data); i < len(v); i++ {
				v[i] = r.Low + int32(value(i)%uint64(r.Count))
			}
		case "floats":
			for i, v := 0, ort.View[float32](data); i < len(v); i++ {
				v[i] = r.Scale * (float32(value(i)>>40)/(1<<23) - 1)
			}
		default:
			t.Fatalf("input %s: unknown fill %q", r.Name, r.Fill)
		}
	}
}

// shaped returns the layouts of the shapes that the batches have, as if they were buckets.
func shaped(t testing.TB, b *ortgraphs.Bundle, rows int, batches []goldenBatch) ([]ring.Layout, map[string]int) {
	t.Helper()
	var layouts []ring.Layout
	index := map[string]int{}
	for _, batch := range batches {
		if _, ok := index[batch.shape()]; ok {
			continue
		}
		var ts []ring.Tensor
		for _, in := range b.Manifest.Inputs {
			shape, err := in.Shape.Resolve(batch.Sizes.Values(rows))
			if err != nil {
				t.Fatal(err)
			}
			ts = append(ts, ring.Tensor{Name: in.Name, DType: in.DType, Shape: shape, Pad: in.Pad})
		}
		index[batch.shape()] = len(layouts)
		layouts = append(layouts, ring.NewLayout(ts, nil))
	}
	return layouts, index
}

// arenasOf lays out a bundle's parameters for a run that freezes nothing itself.
func arenasOf(b *ortgraphs.Bundle) []*ortgraphs.Arena {
	return ortgraphs.NewArenas(b.Manifest, ortgraphs.Policy{})
}

func open(t testing.TB, dir string) *ortgraphs.Bundle {
	t.Helper()
	b, err := ortgraphs.Load(dir)
	if err != nil {
		t.Fatal(err)
	}
	return b
}

func newModel(t testing.TB, b *ortgraphs.Bundle, layouts []ring.Layout, threads int) *Model {
	t.Helper()
	m, err := NewModel(
		ModelConfig{Bundle: b, Arenas: arenasOf(b), Layouts: layouts, Slots: 1, Threads: threads, Device: device(t)})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { m.Close() })
	return m
}

// grouped returns the group of each parameter.
func grouped(groups []manifest.Group) map[string]int {
	of := map[string]int{}
	for i, g := range groups {
		for _, name := range g.Match {
			of[name] = i + 1
		}
	}
	return of
}

// newGrouped opens a model with parameter groups, which name their parameters.
func newGrouped(t testing.TB, b *ortgraphs.Bundle, layouts []ring.Layout, groups []manifest.Group) *Model {
	t.Helper()
	arena := ortgraphs.NewArena(b.Manifest.Parameters, ortgraphs.Policy{Groups: grouped(groups)})
	m, err := NewModel(ModelConfig{
		Bundle: b, Arenas: []*ortgraphs.Arena{arena}, Layouts: layouts, Slots: 1, Threads: 2, Device: device(t),
	})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { m.Close() })
	return m
}

func newOptimizer(t testing.TB, m *Model, p manifest.Optimizer, accumulating bool) *Optimizer {
	t.Helper()
	o, err := NewOptimizer(m, 0, p, accumulating, 2)
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

// TestParityWithPyTorch compares training with PyTorch, nano for 100 steps: every loss is within 1e-4 of PyTorch's, and
// at the end every tensor p within 1e-3 * max(|p|, |p - p0|).
func TestParityWithPyTorch(t *testing.T) {
	for name, dir := range bundles {
		t.Run(name, func(t *testing.T) {
			g, b := readGolden(t, name+".json"), open(t, dir)
			layouts, index := shaped(t, b, g.Rows, g.Steps)
			m := newGrouped(t, b, layouts, g.Optimizer.Groups)
			o := newOptimizer(t, m, g.Optimizer, false)
			start := map[string][]float32{}
			for _, p := range m.Weights() {
				start[p.Name] = floats(p.Data)
			}
			worst := 0.0
			for i, want := range g.Steps {
				bucket := index[want.shape()]
				g.fill(t, want, &layouts[bucket], input(t, m))
				got := trainOn(t, m, bucket, g.Seed)
				gradNorm, updated := step(t, m, o, g.Optimizer.LR)
				if !updated {
					t.Fatalf("step %d: no update", i)
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
			if err := m.Pull(); err != nil {
				t.Fatal(err)
			}
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
			t.Logf("%d steps: largest relative error of a loss %.2g, of a tensor %.2g (%s)", len(g.Steps), worst,
				worstTensor, worstName)
		})
	}
}

// TestAccumulation accumulates two micro-batches. Where the bundle's accumulation is exact, loss and gradients are
// those of PyTorch's one backward over all their rows, though the batches weigh unequally; where it is mean, of the
// mean of their losses, though one has fewer rows.
func TestAccumulation(t *testing.T) {
	for name, kind := range map[string]string{"pico": "exact", "multispeaker": "mean"} {
		t.Run(kind, func(t *testing.T) {
			g, b := readGolden(t, name+".accumulation.json"), open(t, bundles[name])
			if b.Manifest.Accumulation != kind {
				t.Fatalf("the accumulation of %s is %s", name, b.Manifest.Accumulation)
			}
			layouts, _ := shaped(t, b, g.Rows, g.MicroBatches)
			m := newModel(t, b, layouts, 1)
			o := newOptimizer(t, m, b.Manifest.Optimizer, true)
			var total mean
			for i, micro := range g.MicroBatches {
				g.fill(t, micro, &layouts[0], input(t, m))
				r := trainOn(t, m, 0, g.Seed)
				total.add(r)
				if err := o.Accumulate(i == 0); err != nil {
					t.Fatal(err)
				}
			}
			loss, _ := total.result(nil, false)
			if math.Abs(loss-g.Loss) > 1e-6*g.Loss || total.weight != g.LossWeight {
				t.Errorf("loss %v of weight %v, PyTorch %v of %v", loss, total.weight, g.Loss, g.LossWeight)
			}
			want, err := safetensors.Open(filepath.Join(gold, name+".accumulation.safetensors"))
			if err != nil {
				t.Fatal(err)
			}
			defer want.Close()
			worst := 0.0
			if err := o.pull(&o.window.acc.block); err != nil {
				t.Fatal(err)
			}
			for _, p := range m.players[0].views("", o.window.acc) {
				data := make([]byte, len(p.Data))
				if err := want.Read("grad."+p.Name, data); err != nil {
					t.Fatal(err)
				}
				got := floats(p.Data)
				for i := range got {
					got[i] /= float32(total.weight)
				}
				e := norm(sub(got, floats(data))) / norm(floats(data))
				if worst = max(worst, e); e > 1e-4 {
					t.Errorf("gradient of %s differs by %.2g", p.Name, e)
				}
			}
			t.Logf("largest relative error of a gradient %.2g", worst)
		})
	}
}
