package fuse_test

import (
	"bytes"
	le "encoding/binary"
	"math"
	"math/rand/v2"
	"slices"
	"testing"
	"unsafe"

	"google.golang.org/protobuf/proto"

	"github.com/xtts-host/xtts-host/ortgraphs/fuse"
	"github.com/xtts-host/xtts-host/ortgraphs/fuse/cudac"
	"github.com/xtts-host/xtts-host/ortgraphs/fuse/cudac/cudactest"
	"github.com/xtts-host/xtts-host/ortgraphs/onnxpb"
	"github.com/xtts-host/xtts-host/ortgraphs/shapes"
	"github.com/xtts-host/xtts-host/scripts/nightly"
)

// kernels collects the programs of regions with the memory in which they run.
type kernels struct {
	regions []*fuse.Region
	kernels []*cudac.Kernel
	memory  []memory
	sources []cudactest.Source
	source  []int // of each kernel
	left    map[string]int
	// gradients is how far the gradients of attention may be away, where they are differences of almost equal numbers
	// in bf16.
	gradients float64
	// target is what the programs are generated for.
	target cudac.Target
	// unreached says that the keys of some row beyond the first bit are not in reach, as should be.
	unreached bool
}

func (k *kernels) add(t *testing.T, regions []*fuse.Region, m memory) {
	t.Helper()
	for _, r := range regions {
		if productsOf(r) != nil { // a library computes them: see the tests of package fused
			continue
		}
		kernel, err := cudac.Generate(r, k.target)
		if err != nil {
			if k.left == nil {
				k.left = map[string]int{}
			}
			k.left[err.Error()]++
			continue
		}
		source := cudactest.Source{Text: kernel.Source, Functions: map[string]int{}}
		for _, l := range kernel.Launches {
			source.Functions[l.Function] = len(l.Arguments)
		}
		at := slices.IndexFunc(k.sources, func(s cudactest.Source) bool { return s.Text == source.Text })
		if at < 0 {
			at = len(k.sources)
			k.sources = append(k.sources, source)
		}
		k.regions, k.kernels, k.memory, k.source = append(k.regions, r), append(k.kernels, kernel), append(k.memory, m),
			append(k.source, at)
	}
}

// processor compiles programs and runs them.
type processor interface {
	compile(t *testing.T, sources []cudactest.Source)
	// run runs the launches of a program. It changes the memory of the buffers up to their capacity.
	run(t *testing.T, source int, launches []cudac.Launch, buffers [][]byte)
}

// check compiles all programs and compares their results with the interpreter's.
func (k *kernels) check(t *testing.T, p processor, within float64) {
	t.Helper()
	p.compile(t, append(k.sources, cudactest.Source{Text: cudac.Sums, Functions: cudactest.Functions(cudac.Sums)}))
	worst := 0.0
	for i, kernel := range k.kernels {
		var buffers [][]byte
		for _, in := range kernel.In {
			data := k.memory[i][in]
			if in.Data != nil {
				data = encode(in.Data, in.Type)
			}
			buffers = append(buffers, pack(data, in.Type))
		}
		results := map[*fuse.Tensor][]byte{}
		for _, out := range k.regions[i].Out {
			results[out] = poisoned(out.Bytes())
		}
		for _, out := range kernel.Out {
			buffers = append(buffers, results[out])
		}
		partials := poisoned(4 * kernel.PartialsLength)
		for _, b := range [][]byte{partials, poisoned(kernel.Scratch)} {
			if len(b) > 0 {
				buffers = append(buffers, b)
			}
		}
		p.run(t, k.source[i], kernel.Launches, buffers)
		if len(kernel.Sums) > 0 {
			buffers = append(buffers, k.finishSums(t, p, kernel, partials, results)...)
		}
		for j, b := range buffers {
			if beyond := b[len(b):cap(b)]; !bytes.Equal(beyond, poisoned(len(beyond))) {
				t.Errorf("pointer %d: written after its end\n%s", j, kernel.Source)
			}
		}
		for _, out := range k.regions[i].Out {
			got, want := unpack(results[out], out.Type), k.memory[i][out]
			if out.From.Op == fuse.Reach {
				k.checkReach(t, got, want)
				continue
			}
			if s, ok := columnSumOf(k.regions[i], out); ok {
				checkColumnSum(t, got, unpack(results[s.Of], s.Of.Type), s)
				continue
			}
			limit := within
			if a := attentionOf(k.regions[i]); a != nil && a.Backward != nil {
				limit = max(within, k.gradients)
			}
			d := apart(got, want)
			if worst = max(worst, d); !(d <= limit) {
				t.Errorf("%s of %v: %g away from the interpreter's\n%s", out.Name, k.regions[i].Nodes[0].Op, d,
					kernel.Source)
			}
		}
	}
	t.Logf("%d kernels, %d programs, within %.1g", len(k.kernels), len(k.sources), worst)
}

// checkReach: keys that a row attends to are in reach.
func (k *kernels) checkReach(t *testing.T, got, want []number) {
	t.Helper()
	for i := range want {
		if want[i].i&^got[i].i != 0 {
			t.Errorf("row %d: the keys %b are in reach, not %b", i, want[i].i, got[i].i)
		}
		k.unreached = k.unreached || want[i].i == 1 && got[i].i == 1
	}
}

// finishSums completes the column sums of a kernel from their parts, and returns the memory of the second launch.
func (k *kernels) finishSums(
	t *testing.T, p processor, kernel *cudac.Kernel, parts []byte, results map[*fuse.Tensor][]byte,
) [][]byte {
	t.Helper()
	buffers := [][]byte{nil, parts}
	var jobs []cudac.Job
	for i, s := range kernel.Sums {
		jobs = append(jobs, cudac.Job{Sum: s, Source: 1, Result: 2 + i})
		buffers = append(buffers, results[s.Out])
	}
	table, blocks := cudac.SumsTable(jobs)
	buffers[0] = pack(encode(table, i64), i64)
	launch := cudac.Launch{Function: cudac.SumsFunction, Blocks: [2]int{blocks, 1}, Threads: cudac.SumsThreads}
	for i := range buffers {
		launch.Arguments = append(launch.Arguments, i)
	}
	p.run(t, len(k.sources), []cudac.Launch{launch}, buffers)
	return buffers
}

// apart is the largest difference, relative to the largest number.
func apart(got, want []number) float64 {
	var difference, most float64
	for i := range want {
		a, b := got[i].f+float64(got[i].i), want[i].f+float64(want[i].i)
		if a == b || a != a && b != b {
			continue
		}
		difference = max(difference, math.Abs(a-b))
		if a != a || b != b {
			return math.Inf(1)
		}
		most = max(most, math.Abs(b))
	}
	if difference == 0 {
		return 0
	}
	return difference / max(most, 1e-6)
}

// poisoned returns memory, aligned as a GPU's, that has NaN everywhere. So has a margin after it, up to the capacity.
func poisoned(size int) []byte {
	const align, margin = 64, 256
	data := make([]byte, size+margin+align)
	at := int(-uintptr(unsafe.Pointer(unsafe.SliceData(data))) % align)
	data = data[at : at+size+margin : at+size+margin]
	for i := range data {
		data[i] = 0xff
	}
	return data[:size]
}

func pack(x []number, t shapes.Type) []byte {
	size := int(shapes.ElementSize(t))
	data := poisoned(len(x) * size)
	for i, v := range x {
		at := data[i*size:]
		switch t {
		case onnxpb.TensorProto_FLOAT:
			le.LittleEndian.PutUint32(at, math.Float32bits(float32(v.f)))
		case onnxpb.TensorProto_DOUBLE:
			le.LittleEndian.PutUint64(at, math.Float64bits(v.f))
		case onnxpb.TensorProto_BFLOAT16:
			le.LittleEndian.PutUint16(at, uint16(math.Float32bits(float32(v.f))>>16))
		case onnxpb.TensorProto_INT32:
			le.LittleEndian.PutUint32(at, uint32(v.i))
		case onnxpb.TensorProto_INT64:
			le.LittleEndian.PutUint64(at, uint64(v.i))
		default:
			at[0] = byte(v.f)
		}
	}
	return data
}

func unpack(data []byte, t shapes.Type) []number {
	size := int(shapes.ElementSize(t))
	x := make([]number, len(data)/size)
	for i := range x {
		at := data[i*size:]
		switch t {
		case onnxpb.TensorProto_FLOAT:
			x[i].f = float64(math.Float32frombits(le.LittleEndian.Uint32(at)))
		case onnxpb.TensorProto_DOUBLE:
			x[i].f = math.Float64frombits(le.LittleEndian.Uint64(at))
		case onnxpb.TensorProto_BFLOAT16:
			x[i].f = float64(math.Float32frombits(uint32(le.LittleEndian.Uint16(at)) << 16))
		case onnxpb.TensorProto_INT32:
			x[i].i = int64(int32(le.LittleEndian.Uint32(at)))
		case onnxpb.TensorProto_INT64:
			x[i].i = int64(le.LittleEndian.Uint64(at))
		default:
			x[i].f = float64(at[0])
		}
	}
	return x
}

// training adds the regions of a training graph.
func (k *kernels) training(t *testing.T, file string, sizes shapes.Sizes) {
	t.Helper()
	r, g, regions := partition(t, load(t, file), sizes)
	m, err := interpret(g, regions, givenBatch(g, batch(r, sizes)))
	if err != nil {
		t.Fatal(err)
	}
	k.add(t, regions, m)
}

// givenBatch returns the inputs of a training graph. Numbers in bf16 are small, as weights are.
func givenBatch(g *fuse.Graph, inputs map[string][]float64) memory {
	random := rand.New(rand.NewPCG(5, 6))
	m := memory{}
	for _, in := range g.Inputs {
		x := inputs[in.Name]
		if in.Type == short {
			for i := range x {
				x[i] = random.NormFloat64() / 8
			}
		}
		m[in] = encode(x, in.Type)
	}
	return m
}

// random adds the regions of random graphs: of small tensors, and then of wide ones.
func (k *kernels) random(t *testing.T, small, wide uint64) {
	t.Helper()
	for seed := range small + wide {
		model := newBuilder(seed).model()
		if seed >= small {
			model = newWideBuilder(seed).model()
		}
		r, g, regions := partition(t, model, shapes.Sizes{})
		m, _ := results(t, model, r, g, regions, batch(r, nil))
		k.add(t, regions, m)
	}
}

// randomShort adds the regions of random graphs in bf16.
func (k *kernels) randomShort(t *testing.T, small, wide uint64) {
	t.Helper()
	for seed := range small + wide {
		b := newBuilder(seed)
		if seed >= small {
			b = newWideBuilder(seed)
		}
		model := b.model()
		toShort(model)
		k.model(t, model, b.NormFloat64)
	}
}

// model adds the regions of a graph whose inputs are random.
func (k *kernels) model(t *testing.T, model *onnxpb.ModelProto, random func() float64) {
	t.Helper()
	_, g, regions := partition(t, model, shapes.Sizes{})
	given := memory{}
	for _, in := range g.Inputs {
		x := make([]float64, in.Elements())
		for i := range x {
			x[i] = random()
		}
		given[in] = encode(x, in.Type)
	}
	m, err := interpret(g, regions, given)
	if err != nil {
		t.Fatal(err)
	}
	k.add(t, regions, m)
}

// toShort makes the tensors of a model bf16.
func toShort(model *onnxpb.ModelProto) {
	kind := proto.Int32(int32(short))
	for _, v := range append(model.Graph.Input, model.Graph.Output...) {
		v.Type.GetTensorType().ElemType = kind
	}
	for _, c := range model.Graph.Initializer {
		if c.GetDataType() == int32(f32) {
			c.DataType = kind
			for _, x := range c.FloatData {
				c.RawData = le.LittleEndian.AppendUint16(c.RawData, uint16(math.Float32bits(x)>>16))
			}
			c.FloatData = nil
		}
	}
}

// smallGraphs and wideGraphs are the random graphs whose kernels run on a GPU.
const smallGraphs, wideGraphs = 100, 100

// TestRandomGeneration: there is a kernel for each region of the random graphs that run on a GPU, whose compiler is not
// needed for it.
func TestRandomGeneration(t *testing.T) {
	every := nightly.Of[uint64](7, 1)
	for seed := range uint64(smallGraphs + wideGraphs) {
		if seed%every > 0 {
			continue
		}
		for _, short := range []bool{false, true} {
			b := newBuilder(seed)
			if seed >= smallGraphs {
				b = newWideBuilder(seed)
			}
			model := b.model()
			if short {
				toShort(model)
			}
			_, _, regions := partition(t, model, shapes.Sizes{})
			for _, r := range regions {
				if _, err := cudac.Generate(r, cudac.Target{}); err != nil {
					t.Errorf("seed %d, bf16 %t: %s: %v", seed, short, r.Ops(), err)
				}
			}
		}
	}
}

// complete reports kernels that are missing.
func (k *kernels) complete(t *testing.T, least int) {
	t.Helper()
	if len(k.kernels) < least || len(k.left) > 0 {
		t.Errorf("%d kernels; left: %v", len(k.kernels), k.left)
	}
}

// TestKernels: the generated programs of training graphs and of random graphs compute what the interpreter computes.
func TestKernels(t *testing.T) {
	var k kernels
	k.training(t, "../testdata/pico/training_model.onnx", shapes.Sizes{"B": 3, "T_text": 3, "T_mel": 4, "T_ref_mel": 3})
	k.training(t, "../builtin/myxtts-multispeaker/training_model.onnx", shapes.Sizes{"B": 3, "T_text": 3, "T_mel": 6})
	k.random(t, nightly.Of[uint64](12, 40), nightly.Of[uint64](6, 20))
	k.complete(t, 100)
	k.check(t, &emulation{}, 1e-5)
}

// TestContractedKernels: the results are the same within their tolerance where a product and a sum are rounded once.
func TestContractedKernels(t *testing.T) {
	options := cudactest.Contracted()
	if options == nil {
		t.Skip("the processor has no such operation")
	}
	var k kernels
	k.training(t, "../testdata/pico/training_model.onnx", shapes.Sizes{"B": 3, "T_text": 3, "T_mel": 4, "T_ref_mel": 3})
	k.random(t, 1, 4)
	k.complete(t, 70)
	k.check(t, &emulation{options: options}, 2e-6)
}

// TestShortKernels: the programs of graphs in bf16 compute what the interpreter computes, as far as bf16 is exact.
func TestShortKernels(t *testing.T) {
	var k kernels
	k.randomShort(t, nightly.Of[uint64](4, 40), nightly.Of[uint64](6, 40))
	k.complete(t, 40)
	k.check(t, &emulation{}, 2e-2)
}
