package fuse_test

import (
	le "encoding/binary"
	"math"
	"slices"
	"testing"
	"unsafe"

	"google.golang.org/protobuf/proto"

	"github.com/xtts-host/xtts-host/ortgraphs/fuse"
	"github.com/xtts-host/xtts-host/ortgraphs/fuse/cudac"
	"github.com/xtts-host/xtts-host/ortgraphs/fuse/cudac/cudactest"
	"github.com/xtts-host/xtts-host/ortgraphs/onnxpb"
	"github.com/xtts-host/xtts-host/ortgraphs/shapes"
)

// kernels collects the programs of regions with the memory in which they run.
type kernels struct {
	regions []*fuse.Region
	kernels []*cudac.Kernel
	memory  []memory
	sources []cudactest.Source
	source  []int // of each kernel
	left    map[string]int
}

func (k *kernels) add(t *testing.T, regions []*fuse.Region, m memory) {
	t.Helper()
	for _, r := range regions {
		kernel, err := cudac.Generate(r)
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
		k.regions, k.kernels, k.memory, k.source = append(k.regions, r), append(k.kernels, kernel), append(k.memory, m), append(k.source, at)
	}
}

// check compiles all programs and compares their results with the interpreter's.
func (k *kernels) check(t *testing.T, within float64) {
	t.Helper()
	program := cudactest.Compile(t, cudac.Prelude, k.sources)
	for i, kernel := range k.kernels {
		var buffers [][]byte
		for _, in := range kernel.In {
			data := k.memory[i][in]
			if in.Data != nil {
				data = encode(in.Data, in.Type)
			}
			buffers = append(buffers, pack(data, in.Type))
		}
		for _, out := range k.regions[i].Out {
			buffers = append(buffers, poisoned(out.Bytes()))
		}
		buffers = append(buffers, poisoned(kernel.Scratch))
		for _, l := range kernel.Launches {
			var pointers []uintptr
			for _, at := range l.Arguments {
				pointers = append(pointers, uintptr(unsafe.Pointer(unsafe.SliceData(buffers[at]))))
			}
			if err := program.Run(program.Function(k.source[i], l.Function), l.Blocks, l.Threads, pointers); err != nil {
				t.Fatal(err)
			}
		}
		for j, out := range k.regions[i].Out {
			got, want := unpack(buffers[len(kernel.In)+j], out.Type), k.memory[i][out]
			if d := apart(got, want); !(d <= within) {
				t.Errorf("%s of %v: %g away from the interpreter's\n%s", out.Name, k.regions[i].Nodes[0].Op, d, kernel.Source)
			}
		}
	}
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

// poisoned returns memory, aligned as a GPU's, that has NaN everywhere.
func poisoned(size int) []byte {
	const align = 64
	data := make([]byte, size+align)
	at := int(-uintptr(unsafe.Pointer(unsafe.SliceData(data))) % align)
	data = data[at : at+size]
	for i := range data {
		data[i] = 0xff
	}
	return data
}

func pack(x []number, t shapes.Type) []byte {
	size := int(shapes.ElementSize(t))
	data := poisoned(len(x) * size)
	for i, v := range x {
		at := data[i*size:]
		switch t {
		case onnxpb.TensorProto_FLOAT:
			le.LittleEndian.PutUint32(at, math.Float32bits(float32(v.f)))
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

// TestKernels: the generated programs of training graphs and of random graphs compute what the interpreter computes.
func TestKernels(t *testing.T) {
	var k kernels
	for name, sizes := range map[string]shapes.Sizes{
		"../testdata/pico":               {"B": 3, "T_text": 3, "T_mel": 4, "T_ref_mel": 3},
		"../builtin/myxtts-multispeaker": {"B": 3, "T_text": 3, "T_mel": 6},
	} {
		model := load(t, name+"/training_model.onnx")
		r, g, regions := partition(t, model, sizes)
		m, _ := results(t, model, r, g, regions, batch(r, sizes))
		k.add(t, regions, m)
	}
	for seed := range uint64(60) {
		model := newBuilder(seed).model()
		if seed >= 40 {
			model = newWideBuilder(seed).model()
		}
		r, g, regions := partition(t, model, shapes.Sizes{})
		m, _ := results(t, model, r, g, regions, batch(r, nil))
		k.add(t, regions, m)
	}
	if len(k.kernels) < 300 || len(k.left) > 0 {
		t.Errorf("%d kernels; left: %v", len(k.kernels), k.left)
	}
	k.check(t, 2e-6)
}

// TestShortKernels: the programs of graphs in bf16 compute what the interpreter computes, as far as bf16 is exact.
func TestShortKernels(t *testing.T) {
	var k kernels
	for seed := range uint64(24) {
		b := newBuilder(seed)
		if seed >= 8 {
			b = newWideBuilder(seed)
		}
		model := b.model()
		short := proto.Int32(int32(onnxpb.TensorProto_BFLOAT16))
		for _, v := range model.Graph.Input {
			v.Type.GetTensorType().ElemType = short
		}
		for _, v := range model.Graph.Output {
			v.Type.GetTensorType().ElemType = short
		}
		for _, c := range model.Graph.Initializer {
			if c.GetDataType() == int32(onnxpb.TensorProto_FLOAT) {
				c.DataType = short
				for _, x := range c.FloatData {
					c.RawData = le.LittleEndian.AppendUint16(c.RawData, uint16(math.Float32bits(x)>>16))
				}
				c.FloatData = nil
			}
		}
		_, g, regions := partition(t, model, shapes.Sizes{})
		given := memory{}
		for _, in := range g.Inputs {
			x := make([]float64, in.Elements())
			for i := range x {
				x[i] = b.NormFloat64()
			}
			given[in] = encode(x, in.Type)
		}
		m, err := interpret(g, regions, given)
		if err != nil {
			t.Fatal(err)
		}
		k.add(t, regions, m)
	}
	if len(k.kernels) < 100 || len(k.left) > 0 {
		t.Errorf("%d kernels; left: %v", len(k.kernels), k.left)
	}
	k.check(t, 2e-2)
}
