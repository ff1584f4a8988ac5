package prooftest

import (
	_ "embed"
	"hash/fnv"
	"math"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/xtts-host/xtts-host/ortgraphs/fused"
	"github.com/xtts-host/xtts-host/ortgraphs/ort"
	"github.com/xtts-host/xtts-host/shared/manifest"
)

// The training graphs of convolutions.py, which says how they are made.
var (
	//go:embed testdata/convolutions.onnx
	convolutionsInF32 []byte
	//go:embed testdata/convolutions.bf16.onnx
	convolutionsInBF16 []byte
)

// Convolutions is a graph with convolutions that are dilated, strided, causal, long, in groups and over two dimensions.
type Convolutions struct {
	Form        fused.Form
	Compiler    fused.Compiler
	Session     ort.SessionConfig // as in Deep
	Short, TF32 bool              // in bf16; in f32 with products in TF32
	// Wrong, unless empty, describes the convolutions that the compiler's library computes wrongly, Refused those that
	// it cannot compute.
	Wrong, Refused string
}

func (c Convolutions) graph() []byte {
	if c.Short {
		return convolutionsInBF16
	}
	return convolutionsInF32
}

// Check proves the convolutions and their gradients. The wrong ones, and no others, must be found.
func (c Convolutions) Check(t *testing.T) {
	t.Helper()
	const rows, hop, frames = 2, 256, 5
	sizes := map[string]int{"B": rows, "T_mel": frames, "T_wav": hop * (frames - 1)}
	p, err := fused.NewPlan(c.graph(), sizes, c.Form)
	must(t, err)
	defer c.load(t, p)()
	random := rand.New(rand.NewPCG(1, 1))
	input := func(v ort.ValueInfo, _ int) float32 {
		if v.DType == manifest.I32 || v.DType == manifest.I64 {
			return frames // no row is empty
		}
		return float32(random.NormFloat64())
	}
	if c.Session.CUDA == nil && c.Wrong == "" {
		c.compare(t, p, sizes)
	}
	convolves := func(what string) bool { return strings.Contains(what, "conv") }
	faults, verdicts := Prove(t, p, c.Session, c.TF32, convolves, input)
	for region := range verdicts {
		what := p.Describe(region)
		wrong := c.Wrong != "" && strings.HasPrefix(what, c.Wrong+" over")
		if found := faults[region] != nil; found != wrong {
			t.Errorf("%s, wrong in %q: %v", what, c.Wrong, faults[region])
		}
	}
	want := 24
	if c.Refused != "" {
		want -= 8
	}
	if proved := len(verdicts); proved != want {
		t.Errorf("%d convolutions and gradients are proved, want eight of each, but none in %q", proved, c.Refused)
	}
}

// load loads the programs of a plan. The refused convolutions, and no other regions, must stay plain.
func (c Convolutions) load(t *testing.T, p *fused.Plan) (done func()) {
	t.Helper()
	programs, err := c.Compiler.Compile(p.Sources())
	must(t, err)
	failed := p.Load(programs)
	for region := range p.Regions() {
		refused := c.Refused != "" && strings.HasPrefix(p.Describe(region), c.Refused+" over")
		if err := failed[region]; refused != (err != nil) {
			t.Errorf("%s, refused in %q: %v", p.Describe(region), c.Refused, err)
		}
	}
	return func() { must(t, programs.Close()) }
}

// compare runs the graph as exported, and with and without the library, on the same numbers. The proof compares a
// convolution with nodes that are made of what was found: what was found wrongly shows here.
func (c Convolutions) compare(t *testing.T, p *fused.Plan, sizes map[string]int) {
	t.Helper()
	outputs := func(model []byte, kernels *ort.Kernels) map[string][]byte {
		s, err := ort.NewSession(ort.SessionConfig{
			Model: onCPU(t, model, sizes, c.TF32), Kernels: kernels, Threads: 1, Unoptimized: true,
		})
		must(t, err)
		defer func() { must(t, s.Close()) }()
		return run(t, s, sizes, func(v ort.ValueInfo, at int) float32 {
			if v.DType == manifest.I32 || v.DType == manifest.I64 {
				return 5
			}
			name := fnv.New64()
			name.Write([]byte(v.Name))
			return float32(0.3 * rand.New(rand.NewPCG(name.Sum64(), uint64(at))).NormFloat64())
		})
	}
	exported := outputs(c.graph(), nil)
	for what, plain := range map[string]func(int) bool{
		"library": nil, "nodes": func(int) bool { return true },
	} {
		model, kernels, err := p.Link(plain)
		must(t, err)
		for name, got := range outputs(model, kernels) {
			if d := distance(got, exported[name]); !(d < c.roundings()) {
				t.Errorf("%s of the %s is %.2g away from that of the exported graph", name, what, d)
			}
		}
	}
}

// roundings is how far those of a precision take a result away from that of another order of the same arithmetic.
func (c Convolutions) roundings() float64 {
	switch {
	case c.Short:
		return 0.03
	case c.TF32:
		return 0.01
	}
	return 1e-4
}

// distance is that of two lists of f32, as a part of the norm of the second.
func distance(got, want []byte) float64 {
	var apart, norm float64
	for i, x := range ort.View[float32](want) {
		d := float64(ort.View[float32](got)[i]) - float64(x)
		apart, norm = apart+d*d, norm+float64(x)*float64(x)
	}
	return math.Sqrt(apart / norm)
}
