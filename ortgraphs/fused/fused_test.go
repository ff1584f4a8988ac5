package fused_test

import (
	"errors"
	"math"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/xtts-host/xtts-host/ortgraphs/fuse/cudac"
	"github.com/xtts-host/xtts-host/ortgraphs/fused"
	"github.com/xtts-host/xtts-host/ortgraphs/fused/fusedtest"
	"github.com/xtts-host/xtts-host/ortgraphs/ort"
	"github.com/xtts-host/xtts-host/ortgraphs/ort/orttest"
	"github.com/xtts-host/xtts-host/ortgraphs/shapes"
	"github.com/xtts-host/xtts-host/shared/manifest"
)

func TestMain(m *testing.M) { os.Exit(orttest.Run(m)) }

// TestTrainingGraphs: training graphs whose regions run as kernels, on the CPU's emulation of CUDA, return ONNX
// Runtime's loss and gradients.
func TestTrainingGraphs(t *testing.T) {
	for name, c := range map[string]struct {
		sizes shapes.Sizes
		sums  bool // kernels leave sums, of more rows than one block has
	}{
		"../testdata/pico":               {shapes.Sizes{"B": 3, "T_text": 3, "T_mel": 4, "T_ref_mel": 3}, false},
		"../builtin/myxtts-multispeaker": {shapes.Sizes{"B": 3, "T_text": 3, "T_mel": 6}, true},
	} {
		t.Run(filepath.Base(name), func(t *testing.T) {
			sizes := c.sizes
			data, p := planned(t, name+"/training_model.onnx", sizes)
			want := run(t, ort.SessionConfig{Model: data}, sizes)
			compiler := fusedtest.NewCompiler(t)
			programs, err := compiler.Compile(p.Sources())
			if err != nil {
				t.Fatal(err)
			}
			sums, err := programs.Function(cudac.Prelude+cudac.Sums, cudac.SumsFunction, 0)
			if (err == nil) != c.sums {
				t.Fatal(err)
			}
			linked := func(regions int, plain func(int) bool) map[string][]float32 {
				fusedModel, kernels, err := p.Link(plain)
				if err != nil {
					t.Fatal(err)
				}
				completing := 0
				for _, c := range kernels.Calls {
					if c.Launches[0].Function == sums {
						completing++
					}
				}
				if len(kernels.Calls) != regions+completing || (completing > 0) != c.sums || completing > 6 {
					t.Fatalf("%d kernel calls, of which %d complete sums, for %d regions", len(kernels.Calls),
						completing, regions)
				}
				return run(t, ort.SessionConfig{Model: fusedModel, Kernels: kernels}, sizes)
			}
			compiler.Refuse = func(program string) bool { return slices.Contains(p.Sources()[:2], program) }
			refused, err := compiler.Compile(p.Sources())
			if err != nil {
				t.Fatal(err)
			}
			failed := p.Load(refused)
			if len(failed) < 2 || len(failed) > p.Regions()/4 {
				t.Errorf("%d of %d regions have refused programs", len(failed), p.Regions())
			}
			for region, err := range failed {
				if !errors.Is(err, fusedtest.ErrRefused) || p.Describe(region) == "" {
					t.Errorf("%s: %v", p.Describe(region), err)
				}
			}
			compare(t, linked(p.Regions()-len(failed), nil), want)
			if failed := p.Load(programs); len(failed) > 0 {
				t.Fatal(failed)
			}
			compare(t, linked(p.Regions(), nil), want)
			compare(t, linked(p.Regions()-(p.Regions()+2)/3, func(region int) bool { return region%3 == 0 }), want)
		})
	}
}

// planned plans the graph of a file. Every region of it must have a kernel.
func planned(t *testing.T, file string, sizes shapes.Sizes) (data []byte, p *fused.Plan) {
	t.Helper()
	data, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	if p, err = fused.NewPlan(data, sizes, fused.Form{}); err != nil {
		t.Fatal(err)
	}
	if len(p.Left) > 0 {
		t.Errorf("left: %v", p.Left)
	}
	return data, p
}

// TestRecurrences: the regions around a recurrence run as kernels, and its step reads their results.
func TestRecurrences(t *testing.T) {
	files, err := filepath.Glob("../testdata/recurrences/*.onnx")
	if err != nil || len(files) == 0 {
		t.Fatal(files, err)
	}
	sizes := shapes.Sizes{"B": 3, "T": 7, "N": 4}
	for _, file := range files {
		t.Run(filepath.Base(file), func(t *testing.T) {
			data, p := planned(t, file, sizes)
			programs, err := fusedtest.NewCompiler(t).Compile(p.Sources())
			if err != nil {
				t.Fatal(err)
			}
			if failed := p.Load(programs); len(failed) > 0 {
				t.Fatal(failed)
			}
			model, kernels, err := p.Link(nil)
			if err != nil {
				t.Fatal(err)
			}
			if len(kernels.Calls) < p.Regions() || p.Regions() < 10 {
				t.Errorf("%d kernel calls for %d regions", len(kernels.Calls), p.Regions())
			}
			compare(t, run(t, ort.SessionConfig{Model: model, Kernels: kernels}, sizes),
				run(t, ort.SessionConfig{Model: data}, sizes))
		})
	}
}

// batch returns a function that makes up an input: the second row is short, the last one is empty.
func batch(sizes shapes.Sizes) func(v ort.ValueInfo, at int) float64 {
	random := rand.New(rand.NewPCG(1, 2))
	return func(v ort.ValueInfo, at int) float64 {
		switch {
		case strings.HasSuffix(v.Name, "lengths"):
			longest := sizes[map[string]string{
				"text_lengths": "T_text", "reference_mel_lengths": "T_ref_mel", "lengths": "T", "id_lengths": "N",
			}[v.Name]]
			if longest == 0 {
				longest = sizes["T_mel"]
			}
			return float64([]int{longest, longest - 2, 0}[min(at, 2)])
		case v.Name == "seed":
			return 12345
		case v.DType == manifest.F32:
			return random.NormFloat64() * 0.3
		}
		return float64(random.IntN(4))
	}
}

// run runs a graph on the CPU and returns its outputs.
func run(t *testing.T, c ort.SessionConfig, sizes shapes.Sizes) map[string][]float32 {
	t.Helper()
	c.Threads = 1
	inputs := batch(sizes)
	s, err := ort.NewSession(c)
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	b, err := s.NewBinding()
	if err != nil {
		t.Fatal(err)
	}
	sort := slices.SortedFunc(slices.Values(s.Inputs()),
		func(a, b ort.ValueInfo) int { return strings.Compare(a.Name, b.Name) })
	for _, v := range sort {
		x := tensor(t, v, sizes)
		for i := range len(x.Bytes()) / v.DType.Size() {
			switch n := inputs(v, i); v.DType {
			case manifest.F32:
				ort.View[float32](x.Bytes())[i] = float32(n)
			case manifest.I32:
				ort.View[int32](x.Bytes())[i] = int32(n)
			default:
				ort.View[int64](x.Bytes())[i] = int64(n)
			}
		}
		if err := b.BindInput(v.Name, x); err != nil {
			t.Fatal(err)
		}
	}
	bound := map[string]*ort.Tensor{}
	for _, v := range s.Outputs() {
		bound[v.Name] = tensor(t, v, sizes)
		if err := b.BindOutput(v.Name, bound[v.Name]); err != nil {
			t.Fatal(err)
		}
	}
	if err := b.Run(nil); err != nil {
		t.Fatal(err)
	}
	out := map[string][]float32{}
	for name, x := range bound {
		out[name] = slices.Clone(ort.View[float32](x.Bytes()))
	}
	return out
}

func tensor(t *testing.T, v ort.ValueInfo, sizes shapes.Sizes) *ort.Tensor {
	t.Helper()
	var shape []int
	n := 1
	for _, d := range v.Shape {
		size := d.Size
		if d.Symbol != "" {
			size = int(sizes[d.Symbol])
		}
		shape = append(shape, size)
		n *= size
	}
	b, err := ort.NewBuffer(n * v.DType.Size())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { b.Close() })
	x, err := ort.NewTensor(b.Bytes(), v.DType, shape)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { x.Close() })
	return x
}

func compare(t *testing.T, got, want map[string][]float32) {
	t.Helper()
	for name, w := range want {
		var difference, norm float64
		for i := range w {
			difference = math.Hypot(difference, float64(got[name][i])-float64(w[i]))
			norm = math.Hypot(norm, float64(w[i]))
		}
		if !(difference <= 3e-5*norm) {
			t.Errorf("%s: %g of its norm %g away", name, difference/norm, norm)
		}
	}
}
