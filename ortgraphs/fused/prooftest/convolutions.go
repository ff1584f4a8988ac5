package prooftest

import (
	_ "embed"
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

// Convolutions is a graph with convolutions that are dilated, in groups and over two dimensions, in bf16.
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
	programs, err := c.Compiler.Compile(p.Sources())
	must(t, err)
	defer func() { must(t, programs.Close()) }()
	if failed := p.Load(programs); len(failed) > 0 {
		t.Fatal(failed)
	}
	random := rand.New(rand.NewPCG(1, 1))
	faults, verdicts := Prove(t, p, c.Session, false, func(v ort.ValueInfo, _ int) float32 {
		if v.DType == manifest.I32 || v.DType == manifest.I64 {
			return frames // no row is empty
		}
		return float32(random.NormFloat64())
	})
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
	if proved != 9 {
		t.Errorf("%d convolutions and gradients are proved, want three of each", proved)
	}
}
