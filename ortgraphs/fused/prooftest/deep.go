// Package prooftest checks the proof of kernels: on deep networks that amplify roundings on purpose, with kernels that
// are wrong on purpose.
package prooftest

import (
	"cmp"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/xtts-host/xtts-host/ortgraphs/fuse"
	"github.com/xtts-host/xtts-host/ortgraphs/fused"
	"github.com/xtts-host/xtts-host/ortgraphs/onnxpb"
	"github.com/xtts-host/xtts-host/ortgraphs/ort"
	"github.com/xtts-host/xtts-host/ortgraphs/shapes"
	"github.com/xtts-host/xtts-host/shared/manifest"
)

// Deep is a network of 40 layers that amplifies roundings on purpose, and the precision in which it computes.
type Deep struct {
	Seed uint64
	// Squeeze stands for batch norms with squeeze and excitation instead, in f32 with gates in bf16.
	Squeeze     bool
	Short, TF32 bool // in bf16; in f32 with products in TF32
	Form        fused.Form
	Compiler    fused.Compiler
	// Session has what the sessions need on a GPU. Without it they run on the CPU, where nodes compute bf16 in f32 and
	// round it, and products round their operands for TF32.
	Session ort.SessionConfig
}

// Check proves the kernels, without and with planted faults. No right one may be refused, and each wrong one must be
// found, unless it changes less than the proof can tell from roundings. In bf16 two others may be missed, since
// exchanged neighbours may be almost equal on most batches.
func (d Deep) Check(t *testing.T) {
	kind := onnxpb.TensorProto_FLOAT
	if d.Short {
		kind = onnxpb.TensorProto_BFLOAT16
	}
	model := newNetwork(d.Seed, kind)
	if d.Squeeze {
		model = newSqueeze(d.Seed)
	}
	p, err := fused.PlanOf(model, nil, d.Form)
	must(t, err)
	compiled, err := plant(d.Compiler, p.Sources(), d.Short)
	must(t, err)
	defer func() { must(t, compiled.programs.Close()) }()
	load := func(programs fused.Programs) {
		t.Helper()
		if failed := p.Load(programs); len(failed) > 0 {
			t.Fatal(failed)
		}
	}
	load(compiled.programs)
	faults, _ := d.prove(t, p)
	for region, fault := range faults {
		t.Errorf("region %d (%s) is right: %v", region, p.Describe(region), fault)
	}
	if len(compiled.wrong) == 0 {
		t.Fatal("no program can have a fault")
	}
	load(compiled.faulty())
	faults, verdicts := d.prove(t, p)
	// In bf16, where one number of 8 is moved, a result may be as far away as 4 times the noise, and exchanged
	// neighbours are nearer than that in more of the programs.
	within, most, allowed := 1.0, 4, 0
	if d.Short {
		within, most, allowed = 4, 3, 2
	}
	wrong, small, missed := 0, 0, 0
	for region, v := range verdicts {
		fault, is := compiled.faults[p.Source(region)]
		switch found := faults[region] != nil; {
		case is && found:
			wrong++
		case is && v.Difference <= within*v.Noise:
			small++
		case is:
			missed++
			t.Logf("region %d (%s) has the fault %q, which is not found: it differs by %.2g, the noise is %.2g",
				region, p.Describe(region), fault, v.Difference, v.Noise)
		case found:
			t.Errorf("region %d (%s) is right: %v", region, p.Describe(region), faults[region])
		}
	}
	t.Logf("of %d regions %d are proved, and %d found to be wrong by faults in %d programs; %d faults are "+
		"too small to be found, %d are missed", p.Regions(), len(verdicts), wrong, len(compiled.wrong), small, missed)
	if wrong == 0 || small > wrong/most || missed > allowed {
		t.Errorf("%d faults are found, %d are too small to be found, %d are missed", wrong, small, missed)
	}
}

// prove runs a proof on as many batches as a run does. It returns the faults by region, and what the first batch shows.
func (d Deep) prove(t *testing.T, p *fused.Plan) (faults map[int]error, verdicts map[int]*fused.Verdict) {
	t.Helper()
	random := rand.New(rand.NewPCG(d.Seed, 10))
	return Prove(t, p, d.Session, d.TF32, All, func(v ort.ValueInfo, at int) float32 {
		if v.Name == mask {
			return float32(min(1, (at%frames)/(frames-5+at/frames*4)^1))
		}
		return float32(random.NormFloat64())
	})
}

// All has all regions proved.
func All(string) bool { return true }

// Prove runs a proof on as many batches as a run does, of the regions that proved accepts by what they compute. input
// returns each number of an input. c has what the session needs on a GPU; without it, it runs on the CPU, as
// [Deep.Session] says. It returns the faults by region, and what the first batch shows.
func Prove(
	t *testing.T, p *fused.Plan, c ort.SessionConfig, tf32 bool, proved func(what string) bool,
	input func(v ort.ValueInfo, at int) float32,
) (faults map[int]error, verdicts map[int]*fused.Verdict) {
	t.Helper()
	proof, err := p.LinkProof(func(region int) bool { return !proved(p.Describe(region)) }, tf32)
	must(t, err)
	c.Model, c.Kernels, c.Threads, c.Unoptimized = proof.Model, proof.Kernels, 1, true
	if c.CUDA == nil {
		c.Model = onCPU(t, proof.Model, nil, tf32)
	}
	s, err := ort.NewSession(c)
	must(t, err)
	defer s.Close()
	var trial fused.Trial
	for more := true; more; {
		found := proof.Judge(run(t, s, nil, input)[fuse.ProofOutput])
		if verdicts == nil {
			verdicts = found
		}
		more = trial.Add(found)
	}
	return trial.Faults(), verdicts
}

// run runs a session whose symbols have those sizes, and returns its outputs.
func run(
	t *testing.T, s *ort.Session, sizes map[string]int, input func(v ort.ValueInfo, at int) float32,
) map[string][]byte {
	t.Helper()
	b, err := s.NewBinding()
	must(t, err)
	defer b.Close()
	open := func(v ort.ValueInfo) *ort.Tensor {
		var shape []int
		size := v.DType.Size()
		for _, d := range v.Shape {
			n := cmp.Or(sizes[d.Symbol], d.Size)
			shape, size = append(shape, n), size*n
		}
		memory, err := ort.NewBuffer(size)
		must(t, err)
		t.Cleanup(func() { memory.Close() })
		x, err := ort.NewTensor(memory.Bytes(), v.DType, shape)
		must(t, err)
		t.Cleanup(func() { x.Close() })
		return x
	}
	for _, v := range s.Inputs() {
		x := open(v)
		for i := range len(x.Bytes()) / v.DType.Size() {
			switch f := input(v, i); v.DType {
			case manifest.BF16:
				ort.View[uint16](x.Bytes())[i] = shapes.BF16(f)
			case manifest.I32:
				ort.View[int32](x.Bytes())[i] = int32(f)
			case manifest.I64:
				ort.View[int64](x.Bytes())[i] = int64(f)
			default:
				ort.View[float32](x.Bytes())[i] = f
			}
		}
		must(t, b.BindInput(v.Name, x))
	}
	found := map[string][]byte{}
	for _, v := range s.Outputs() {
		x := open(v)
		found[v.Name] = x.Bytes() // until the test ends
		must(t, b.BindOutput(v.Name, x))
	}
	must(t, b.Run(nil))
	return found
}

// loaded loads the programs of a plan, and returns what closes them.
func loaded(t *testing.T, p *fused.Plan, c fused.Compiler) (done func()) {
	t.Helper()
	programs, err := c.Compile(p.Sources())
	must(t, err)
	if failed := p.Load(programs); len(failed) > 0 {
		t.Fatal(failed)
	}
	return func() { must(t, programs.Close()) }
}

// proveModel proves the kernels of a graph on noise, and returns how many regions have a word in their descriptions,
// and the faults of these.
func proveModel(
	t *testing.T, m *onnxpb.ModelProto, c fused.Compiler, session ort.SessionConfig, seed uint64, word string,
) (proved int, faults []error) {
	t.Helper()
	p, err := fused.PlanOf(m, nil, fused.Form{})
	must(t, err)
	defer loaded(t, p, c)()
	random := rand.New(rand.NewPCG(seed, 1))
	found, verdicts := Prove(t, p, session, false, All, func(ort.ValueInfo, int) float32 {
		return float32(random.NormFloat64())
	})
	return described(p, word, found, verdicts)
}

// described returns how many proved regions have a word in their descriptions, and the faults of these.
func described(
	p *fused.Plan, word string, found map[int]error, verdicts map[int]*fused.Verdict,
) (proved int, faults []error) {
	for region := range verdicts {
		if !strings.Contains(p.Describe(region), word) {
			continue
		}
		proved++
		if found[region] != nil {
			faults = append(faults, found[region])
		}
	}
	return proved, faults
}

func must(t *testing.T, err error) {
	if err != nil {
		t.Helper()
		t.Fatal(err)
	}
}
