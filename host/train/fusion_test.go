package train

import (
	"crypto/sha256"
	"errors"
	"fmt"
	"math"
	"strings"
	"testing"

	"google.golang.org/protobuf/proto"

	"github.com/xtts-host/xtts-host/gpu"
	"github.com/xtts-host/xtts-host/ortgraphs"
	"github.com/xtts-host/xtts-host/ortgraphs/fuse/cost"
	"github.com/xtts-host/xtts-host/ortgraphs/fused"
	"github.com/xtts-host/xtts-host/ortgraphs/fused/fusedtest"
	"github.com/xtts-host/xtts-host/ortgraphs/onnxpb"
	"github.com/xtts-host/xtts-host/ortgraphs/ort"
	"github.com/xtts-host/xtts-host/shared/hint"
	"github.com/xtts-host/xtts-host/shared/manifest"
	"github.com/xtts-host/xtts-host/shared/ring"
)

// faultyCompiler returns a compiler that makes the first program with a cube wrong, and the launch of the second one
// fail, if so many faults are loaded.
func faultyCompiler(t *testing.T) *fusedtest.Compiler {
	c := fusedtest.NewCompiler(t)
	planted := 0
	c.Change = func(program string) string {
		if !strings.Contains(program, "x3 = x") {
			return program
		}
		if planted++; planted == 2 {
			return failing(program, 9)
		}
		return strings.Replace(program, " * x", " + x", 1)
	}
	return c
}

// refuseOne refuses the first program with a root.
func refuseOne() func(string) bool {
	refused := ""
	return func(program string) bool {
		if refused == "" && strings.Contains(program, "sqrtf(") {
			refused = program
		}
		return program == refused
	}
}

// TestFusion: the fused training graph gives the losses of the graph as exported, a faulty kernel is found, and then
// only its region runs as exported.
func TestFusion(t *testing.T) {
	b := open(t, pico)
	layouts, _ := shaped(t, b, 3, []goldenBatch{
		{Sizes: manifest.Bucket{"T_text": 3, "T_mel": 5, "T_ref_mel": 4}},
		{Sizes: manifest.Bucket{"T_text": 4, "T_mel": 7, "T_ref_mel": 6}},
	})
	open := func(c ModelConfig) *Model {
		c.Bundle, c.Arenas, c.Layouts, c.Slots, c.Threads = b, arenasOf(b), layouts, 1, 1
		m, err := NewModel(c)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { m.Close() })
		return m
	}
	plain, compiler := open(ModelConfig{}), faultyCompiler(t)
	for _, c := range []struct {
		faults int
		refuse func(string) bool
		want   []string
	}{{0, nil, nil}, {2, refuseOne(), []string{
		"from the plain nodes' result, where roundings explain", "CUDA failure 9", "kernel.cu(7): error: this is wrong",
	}}} {
		d, _ := fakeDevice(t)
		checked, before := 0, sessions(t)
		compiler.Faults, compiler.Refuse = c.faults, c.refuse
		m := open(ModelConfig{
			Device: d, CUDAGraphs: true, Fuse: FuseConfig{
				Compiler: compiler, Costs: func(string) (cost.Settings, bool) {
					card, ok := cost.CardOf("H200")
					return cost.Settings{Card: card}, ok
				},
			},
			Capturable: func(_ string, fused []byte) error {
				checked += min(1, len(fused))
				return nil
			},
		})
		p, err := m.Prepare()
		if err != nil || p.Fault != nil {
			t.Fatal(p.Fault, err)
		}
		if p.Evaluation.Fusion != nil || p.Evaluation.Unfused != nil {
			t.Errorf("the evaluation graph, which needs less memory than training: %+v", p.Evaluation)
		}
		f := p.Forms[0].Fusion
		t.Logf("%d kernels; left %v; faulty %q; distances %.2g; %+v", f.Kernels, f.Left, f.Faulty, f.Distances, f.Times)
		reopened := map[string]bool{} // buckets of faults that the proof has found
		for _, fault := range f.Faulty {
			if bucket, reason, _ := strings.Cut(fault, ":"); !strings.Contains(reason, fusedtest.ErrRefused.Error()) {
				reopened[bucket] = true
			}
		}
		if p.Graphs != len(layouts) || checked != len(layouts)+len(reopened) || len(reopened) > c.faults {
			t.Errorf("%d CUDA graphs, %d fused graphs checked", p.Graphs, checked)
		}
		if f.Kernels < 50 || len(f.Faulty) < len(c.want) || len(c.want) == 0 && len(f.Faulty) > 0 {
			t.Errorf("%d kernels; found %q", f.Kernels, f.Faulty)
		}
		for _, reason := range c.want {
			if !strings.Contains(strings.Join(f.Faulty, "\n"), reason) {
				t.Errorf("nothing because of %q: %q", reason, f.Faulty)
			}
		}
		if f.Predicted == nil || f.Predicted.MS <= 0 || !f.Predicted.CUDAGraph {
			t.Errorf("predicted %+v", f.Predicted)
		}
		if open := sessions(t) - before; open != len(layouts)+1 {
			t.Errorf("%d sessions are open for %d buckets and the evaluation", open, len(layouts))
		}
		for bucket := range layouts {
			want, err := plain.Try(0, bucket)
			if err != nil {
				t.Fatal(err)
			}
			got, err := m.Try(0, bucket)
			if d := got.Loss/want.Loss - 1; err != nil || !(math.Abs(d) < 1e-5) {
				t.Errorf("bucket %d: loss %v, want %v; %v", bucket, got.Loss, want.Loss, err)
			}
		}
	}
}

// sessions returns how many sessions are open. ONNX Runtime counts them where it is to be shut down, which open tensors
// prevent.
func sessions(t *testing.T) (n int) {
	t.Helper()
	data, err := ort.NewBuffer(4)
	if err != nil {
		t.Fatal(err)
	}
	defer data.Close()
	x, err := ort.NewTensor(data.Bytes(), manifest.F32, []int{1})
	if err != nil {
		t.Fatal(err)
	}
	defer x.Close()
	err = ort.Shutdown()
	if _, scanned := fmt.Sscanf(err.Error(), "ONNX Runtime is in use: %d sessions", &n); scanned != nil {
		t.Fatal(err)
	}
	return n
}

// lost is the stream of a GPU on which nothing works any more after the first kernel of a proof.
type lost struct {
	gpu.Stream
	proof bool
	waits int
}

var errLost = errors.New("CUDA_ERROR_ILLEGAL_ADDRESS")

func (l *lost) Synchronize() error {
	if l.proof {
		l.waits++ // before the CPU runs a graph, and then after a kernel that is not launched
	}
	err := l.Stream.Synchronize() // nothing runs any more on a GPU that is lost
	if l.waits > 1 {
		return errLost
	}
	return err
}

// proving tells when the memory for what a proof measures is allocated.
type proving struct {
	gpu.Context
	preparing bool
	lost      *lost
}

func (p *proving) Allocate(size int) (gpu.Memory, error) {
	p.lost.proof = p.preparing
	return p.Context.Allocate(size)
}

// TestProofLosesTheGPU: after a fault that the process cannot survive, the error names the fused graph and the way
// without it.
func TestProofLosesTheGPU(t *testing.T) {
	g, b := readGolden(t, "pico.json"), open(t, pico)
	layouts, _ := shaped(t, b, g.Rows, g.Steps[:1])
	d, _ := fakeDevice(t)
	l := &lost{Stream: d.Compute}
	context := &proving{Context: d.Context, lost: l}
	d.Compute, d.Context = l, context
	m, err := NewModel(ModelConfig{
		Bundle: b, Arenas: arenasOf(b), Layouts: layouts, Slots: 1, Threads: 1, Device: d,
		Fuse: FuseConfig{Compiler: failingCompiler(t)},
	})
	if err != nil {
		t.Fatal(err)
	}
	defer m.Close()
	context.preparing = true
	_, err = m.Prepare()
	if !errors.Is(err, errLost) || !errors.Is(err, ort.ErrLaunch) ||
		!strings.HasPrefix(err.Error(), "prove the fused graph of training_model.onnx, bucket 0: ") ||
		hint.Of(err) != "train with --fuse off" {
		t.Errorf("%v; hint: %s", err, hint.Of(err))
	}
}

// failingCompiler returns a compiler that makes the launch of a program fail.
func failingCompiler(t *testing.T) *fusedtest.Compiler {
	c := fusedtest.NewCompiler(t)
	c.Change = func(program string) string { return failing(program, 700) }
	c.Faults = 1
	return c
}

// failing makes the launch of a program's first kernel return an error of CUDA.
func failing(program string, code int) string {
	kernel := strings.Index(program, "__global__")
	return program[:kernel] + strings.Replace(program[kernel:], "{\n", fmt.Sprintf("{\nlaunch_result = %d;\n", code), 1)
}

// refusing compiles nothing.
type refusing struct{}

func (refusing) Compile([]string) (fused.Programs, error) { return nil, errors.New("no space left") }

// unlaunchable compiles programs that sessions refuse, of all buckets but the first.
type unlaunchable struct{ *fusedtest.Compiler }

func (u unlaunchable) Compile(sources []string) (fused.Programs, error) {
	p, err := u.Compiler.Compile(sources)
	return &lacksLaunch{Programs: p}, err
}

type lacksLaunch struct {
	fused.Programs
	asked int
}

func (p *lacksLaunch) Launch() uintptr {
	if p.asked++; p.asked > 1 {
		return 0
	}
	return p.Programs.Launch()
}

// TestUnopened: if the session of a fused graph cannot be opened, those that are open are closed, and the graph runs as
// exported. So it does if all programs are refused.
func TestUnopened(t *testing.T) {
	b := open(t, pico)
	layouts, _ := shaped(t, b, 3, []goldenBatch{
		{Sizes: manifest.Bucket{"T_text": 3, "T_mel": 5, "T_ref_mel": 4}},
		{Sizes: manifest.Bucket{"T_text": 4, "T_mel": 7, "T_ref_mel": 6}},
	})
	compiler := fusedtest.NewCompiler(t)
	refused := *compiler
	refused.Refuse = func(string) bool { return true }
	for want, compiler := range map[string]fused.Compiler{
		"kernels without a launch function": unlaunchable{compiler}, fusedtest.ErrRefused.Error(): &refused,
	} {
		d, _ := fakeDevice(t)
		before := sessions(t)
		m, err := NewModel(ModelConfig{
			Bundle: b, Arenas: arenasOf(b), Layouts: layouts, Slots: 1, Threads: 1, Device: d,
			Fuse: FuseConfig{Compiler: compiler},
		})
		if err != nil {
			t.Fatal(err)
		}
		defer m.Close()
		if open := sessions(t) - before; open != 2 {
			t.Errorf("%d sessions are open for training and evaluation", open)
		}
		p, err := m.Prepare()
		if err != nil || p.Forms[0].Fusion != nil || p.Forms[0].Unfused == nil ||
			!strings.Contains(p.Forms[0].Unfused.Error(), want) {
			t.Errorf("%v, want %s; %v", p.Forms, want, err)
		}
	}
}

// TestClosedBeforeItsProofs: a model that is closed closes the proofs that it has begun, and begins no others.
func TestClosedBeforeItsProofs(t *testing.T) {
	b := open(t, pico)
	var batches []goldenBatch
	for i := range proofsAhead + 2 {
		batches = append(batches, goldenBatch{Sizes: manifest.Bucket{"T_text": 3 + i, "T_mel": 5 + i, "T_ref_mel": 4}})
	}
	layouts, _ := shaped(t, b, 3, batches)
	d, _ := fakeDevice(t)
	before := sessions(t)
	m, err := NewModel(ModelConfig{
		Bundle: b, Arenas: arenasOf(b), Layouts: layouts, Slots: 1, Threads: 1, Device: d,
		Fuse: FuseConfig{Compiler: fusedtest.NewCompiler(t)},
	})
	if err != nil {
		t.Fatal(err)
	}
	p := &m.players[0].fusion.proving
	if len(p.begun) != proofsAhead || len(p.waiting) != len(layouts)-proofsAhead {
		t.Errorf("%d proofs are begun, %d wait", len(p.begun), len(p.waiting))
	}
	if err := m.Close(); err != nil || sessions(t) != before || len(p.begun) > 0 || len(p.waiting) > 0 {
		t.Errorf("%v; %d more sessions are open, %d proofs are begun, %d wait", err, sessions(t)-before, len(p.begun),
			len(p.waiting))
	}
}

// TestUnfused: a graph that cannot be fused runs as exported, also in CUDA graphs.
func TestUnfused(t *testing.T) {
	g, b := readGolden(t, "pico.json"), open(t, pico)
	layouts, _ := shaped(t, b, g.Rows, g.Steps[:1])
	uncapturable := errors.New("a table from the host")
	for _, want := range []error{nil, uncapturable} {
		d, _ := fakeDevice(t)
		m, err := NewModel(ModelConfig{
			Bundle: b, Arenas: arenasOf(b), Layouts: layouts, Slots: 1, Threads: 1, Device: d,
			Fuse: FuseConfig{Compiler: refusing{}}, CUDAGraphs: true,
			Capturable: func(_ string, fused []byte) error {
				if fused != nil {
					t.Error("a fused graph is to be captured")
				}
				return want
			},
		})
		if err != nil {
			t.Fatal(err)
		}
		defer m.Close()
		p, err := m.Prepare()
		if err != nil || p.Forms[0].Fusion != nil || p.Forms[0].Unfused == nil ||
			p.Forms[0].Unfused.Error() != "no space left" || p.Fault != want || (p.Graphs == 1) != (want == nil) {
			t.Errorf("%+v, %v", p, err)
		}
		if r, err := m.Try(0, 0); err != nil || !(r.Loss > 0) {
			t.Error(r, err)
		}
	}
}

// fusedModel opens a model on a fake GPU, with kernels.
func fusedModel(t *testing.T, b *ortgraphs.Bundle, layouts []ring.Layout, compiler *fusedtest.Compiler) *Model {
	t.Helper()
	d, _ := fakeDevice(t)
	m, err := NewModel(ModelConfig{
		Bundle: b, Arenas: arenasOf(b), Layouts: layouts, Slots: 1, Threads: 1, Device: d,
		Fuse: FuseConfig{Compiler: compiler},
	})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { m.Close() })
	return m
}

// proved prepares a fused model of pico, after change.
func proved(t *testing.T, compiler *fusedtest.Compiler, change func(*fusedGraphs)) *Fusion {
	t.Helper()
	b := open(t, pico)
	layouts, _ := shaped(t, b, 3, []goldenBatch{{Sizes: manifest.Bucket{"T_text": 4, "T_mel": 7, "T_ref_mel": 6}}})
	m := fusedModel(t, b, layouts, compiler)
	change(m.players[0].fusion)
	p, err := m.Prepare()
	if err != nil || p.Fault != nil {
		t.Fatal(p.Fault, err)
	}
	f := p.Forms[0].Fusion
	t.Logf("distances %.2g, roundings %.2g, faulty %q", f.Distances, f.Roundings, f.Faulty)
	return f
}

// TestAmplifiedRoundings: a graph that is further away than its precision tolerates is fused, as far as roundings
// explain that. A graph that is rewritten wrongly is not.
func TestAmplifiedRoundings(t *testing.T) {
	compiler := fusedtest.NewCompiler(t)
	for _, tolerance := range []float64{accuracyF32.tolerance, 1e-8} {
		f := proved(t, compiler, func(f *fusedGraphs) { f.tolerance = tolerance })
		if within := f.Distances[0] <= tolerance; len(f.Faulty) > 0 || within != (f.Roundings[0] == 0) {
			t.Errorf("tolerance %g, distances %g, roundings %g: %q", tolerance, f.Distances, f.Roundings, f.Faulty)
		}
		f = proved(t, compiler, func(f *fusedGraphs) {
			f.tolerance = tolerance
			c := f.config
			var err error
			c.Model, c.Kernels, err = f.plans[0].Link(nil)
			if err == nil {
				c.Model, err = scaledLoss(c.Model)
			}
			if err == nil {
				err = f.rebind(0, f.model.open(c, false))
			}
			if err != nil {
				t.Fatal(err)
			}
		})
		if len(f.Faulty) > 0 || len(f.AsExported) != 1 || !strings.Contains(f.AsExported[0], errDiffers.Error()) {
			t.Errorf("tolerance %g: the graph is wrong: %q, %q", tolerance, f.Faulty, f.AsExported)
		}
	}
}

// remembered are the proofs of a test.
type remembered struct {
	proofs map[[sha256.Size]byte][]byte
	added  int
}

func (r *remembered) Proved(graph [sha256.Size]byte) []byte { return r.proofs[graph] }
func (r *remembered) Remember(graph [sha256.Size]byte, proved []byte) {
	r.added++
	r.proofs[graph] = proved
}

// TestProvedOnce: what was proved is not proved again, unless the graph is wrong. One with a wrong kernel is not
// remembered.
func TestProvedOnce(t *testing.T) {
	compiler, proofs := faultyCompiler(t), &remembered{proofs: map[[sha256.Size]byte][]byte{}}
	for _, c := range []struct{ faults, added int }{{1, 0}, {0, 1}, {0, 1}, {1, 1}} {
		compiler.Faults = c.faults
		f := proved(t, compiler, func(f *fusedGraphs) { f.proofs = proofs })
		if proofs.added != c.added || (len(f.Faulty) > 0) != (c.faults > 0) || f.Kernels < 50 {
			t.Errorf("%d proofs are added, want %d; %d kernels, faulty %q", proofs.added, c.added, f.Kernels, f.Faulty)
		}
	}
}

// TestAcquitted: a kernel that is wrong on the first batch only keeps its place, and the proof goes on as without it.
func TestAcquitted(t *testing.T) {
	compiler := fusedtest.NewCompiler(t)
	compiler.Faults = 1
	compiler.Change = func(program string) string {
		if !strings.Contains(program, "x3 = x") {
			return program
		}
		program = strings.Replace(program, " * x", " * (threads++ < 512 ? 2 : 1) * x", 1)
		return strings.Replace(program, "extern \"C\"", "static int threads;\nextern \"C\"", 1)
	}
	if f := proved(t, compiler, func(*fusedGraphs) {}); len(f.Faulty) > 0 || f.Kernels < 50 {
		t.Errorf("%d kernels, faulty %q, roundings %g", f.Kernels, f.Faulty, f.Roundings)
	}
}

// scaledLoss returns a graph whose loss is too large by 1 %.
func scaledLoss(file []byte) ([]byte, error) {
	m := &onnxpb.ModelProto{}
	if err := proto.Unmarshal(file, m); err != nil {
		return nil, err
	}
	m.Graph.Initializer = append(m.Graph.Initializer, &onnxpb.TensorProto{
		Name: proto.String("wrong"), DataType: proto.Int32(int32(onnxpb.TensorProto_FLOAT)), FloatData: []float32{1.01},
	})
	for _, n := range m.Graph.Node {
		for i, name := range n.Output {
			if name != "loss" {
				continue
			}
			n.Output[i] = "right"
			m.Graph.Node = append(m.Graph.Node, &onnxpb.NodeProto{
				OpType: proto.String("Mul"), Input: []string{"right", "wrong"}, Output: []string{name}})
			return proto.Marshal(m)
		}
	}
	return nil, errors.New("no node computes the loss")
}
