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

// The training graph of convolutions.py, which says how it is made.
//
//go:embed testdata/convolutions.bf16.onnx
var graphOfConvolutions []byte

// Convolutions is a graph with convolutions that are dilated, causal, long, in groups and over two dimensions, in bf16.
type Convolutions struct {
	Form     fused.Form
	Compiler fused.Compiler
	Session  ort.SessionConfig // as in Deep
	// Wrong, unless empty, describes the convolutions that the compiler's library computes wrongly.
	Wrong string
}

// Check proves the convolutions and their gradients. The wrong ones, and no others, must be found.
func (c Convolutions) Check(t *testing.T) {
	t.Helper()
	const rows, hop, frames = 2, 256, 5
	sizes := map[string]int{"B": rows, "T_mel": frames, "T_wav": hop * (frames - 1)}
	p, err := fused.NewPlan(graphOfConvolutions, sizes, c.Form)
	must(t, err)
	defer loaded(t, p, c.Compiler)()
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
	faults, verdicts := Prove(t, p, c.Session, false, input)
	proved := 0
	for region := range verdicts {
		what := p.Describe(region)
		if !strings.Contains(what, "conv") {
			continue
		}
		proved++
		wrong := c.Wrong != "" && strings.HasPrefix(what, c.Wrong+" over")
		if found := faults[region] != nil; found != wrong {
			t.Errorf("%s, wrong in %q: %v", what, c.Wrong, faults[region])
		}
	}
	if proved != 18 {
		t.Errorf("%d convolutions and gradients are proved, want six of each", proved)
	}
}

// compare runs the graph as exported, and with and without the library, on the same numbers. The proof compares a
// convolution with nodes that are made of what was found: what was found wrongly shows here.
func (c Convolutions) compare(t *testing.T, p *fused.Plan, sizes map[string]int) {
	t.Helper()
	outputs := func(model []byte, kernels *ort.Kernels) map[string][]byte {
		s, err := ort.NewSession(ort.SessionConfig{
			Model: onCPU(t, model, sizes, false), Kernels: kernels, Threads: 1, Unoptimized: true,
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
	exported := outputs(graphOfConvolutions, nil)
	for what, plain := range map[string]func(int) bool{
		"library": nil, "nodes": func(int) bool { return true },
	} {
		model, kernels, err := p.Link(plain)
		must(t, err)
		for name, got := range outputs(model, kernels) {
			if d := distance(got, exported[name]); !(d < 0.03) {
				t.Errorf("%s of the %s is %.2g away from that of the exported graph", name, what, d)
			}
		}
	}
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
