package prooftest

import (
	"math/rand/v2"
	"testing"

	"github.com/xtts-host/xtts-host/ortgraphs/fused"
	"github.com/xtts-host/xtts-host/ortgraphs/ort"
	"github.com/xtts-host/xtts-host/shared/manifest"
)

// Recurrences is a graph with recurrences, such as LSTMs or sums in logarithms, and their gradients.
type Recurrences struct {
	Of       string // what the descriptions of their regions have
	Form     fused.Form
	Compiler fused.Compiler
	Session  ort.SessionConfig // as in Deep
	TF32     bool
}

// Check proves the recurrences of a training graph, and returns how many of them there are and the faults.
func (c Recurrences) Check(t *testing.T, file []byte, rows, frames int) (proved int, faults []error) {
	t.Helper()
	const hop = 256
	sizes := map[string]int{"B": rows, "T_mel": frames, "T_wav": hop * (frames - 1)}
	p, err := fused.NewPlan(file, sizes, c.Form)
	must(t, err)
	defer loaded(t, p, c.Compiler)()
	random := rand.New(rand.NewPCG(2, 1))
	found, verdicts := Prove(t, p, c.Session, c.TF32, All, func(v ort.ValueInfo, _ int) float32 {
		if v.DType == manifest.I32 || v.DType == manifest.I64 {
			return float32(frames)
		}
		return float32(0.2 * random.NormFloat64())
	})
	return described(p, c.Of, found, verdicts)
}
