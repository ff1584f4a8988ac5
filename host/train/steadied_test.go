package train

import (
	"bytes"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"google.golang.org/protobuf/proto"

	"github.com/xtts-host/xtts-host/ortgraphs"
	"github.com/xtts-host/xtts-host/ortgraphs/bundletest"
	"github.com/xtts-host/xtts-host/ortgraphs/onnxpb"
	"github.com/xtts-host/xtts-host/scripts/nightly"
	"github.com/xtts-host/xtts-host/shared/manifest"
)

// hidden is the size of the state of the recurrence, above which sums depend on the number of threads.
const hidden = 192

const mel = "mel_spectrograms"

// TestDeterministicOnTheCPU trains and evaluates a model with a convolution and an LSTM, with batches of several sizes:
// with Deterministic no bit depends on the number of threads, and without it some do. make nightly tries every size,
// optimizer and more numbers of threads.
func TestDeterministicOnTheCPU(t *testing.T) {
	if card != "" {
		t.Skip("the tests compute on a GPU")
	}
	b := bundletest.Rewrite(t, pico, func(dir string, m *manifest.Bundle) {
		for _, g := range m.Graphs {
			convolve(t, filepath.Join(dir, g.File))
			for op, n := range map[string]int{
				"Add": 1, "Conv": 1, "LSTM": 1, "MatMul": 1, "Squeeze": 1, "Transpose": 3,
			} {
				g.Nodes[op] += n
			}
		}
	})
	sizes, optimizers, counts := []int{1, 2, 16}, []string{"adamw", "muon"}, []int{3}
	if nightly.Full() {
		sizes, optimizers, counts = nil, []string{"adamw", "sgd", "lion", "adafactor", "muon"}, []int{2, 3, 17}
		for n := range 16 {
			sizes = append(sizes, n+1)
		}
	}
	depends := false // without it
	for _, optimizer := range optimizers {
		for _, rows := range sizes {
			want := trained(t, b, optimizer, rows, 1, true)
			for _, threads := range counts {
				if !bytes.Equal(trained(t, b, optimizer, rows, threads, true), want) {
					t.Errorf("%s, %d rows: other bits with %d threads", optimizer, rows, threads)
				}
			}
			if !depends {
				depends = !bytes.Equal(trained(t, b, optimizer, rows, 3, false),
					trained(t, b, optimizer, rows, 1, false))
			}
		}
	}
	if !depends {
		t.Error("no bit depends on the number of threads without it: the test shows nothing")
	}
}

// trained returns losses, weights and the state of the optimizer after two steps and an evaluation.
func trained(t *testing.T, b *ortgraphs.Bundle, optimizer string, rows, threads int, deterministic bool) []byte {
	t.Helper()
	g := readGolden(t, "pico.json")
	batch := g.Steps[0]
	p := g.Optimizer
	if _, err := os.Stat(filepath.Join("../../ortgraphs/testdata/parity", "pico."+optimizer+".json")); err == nil {
		p = readGolden(t, "pico."+optimizer+".json").Optimizer
	}
	layouts, _ := shaped(t, b, rows, []goldenBatch{batch})
	m, err := NewModel(ModelConfig{
		Bundle: b, Arenas: arenasOf(b), Layouts: layouts, Slots: 1, Threads: threads,
		Device: Device{Deterministic: deterministic},
	})
	if err != nil {
		t.Fatal(err)
	}
	defer m.Close()
	training, evaluation := m.Programs()
	alone := training[0].OneThread
	if strings.HasPrefix(alone, "Conv (") != deterministic || evaluation.OneThread != alone {
		t.Errorf("deterministic %v: one thread because of %q", deterministic, alone)
	}
	p.Name, p.Groups = optimizer, nil
	o, err := NewOptimizer(m, 0, p, false, threads)
	if err != nil {
		t.Fatal(err)
	}
	defer o.Close()
	var said []byte
	for i := range 2 {
		batch.Batch = uint64(i)
		g.fill(t, batch, &layouts[0], input(t, m))
		r := trainOn(t, m, 0, 7)
		norm, updated := step(t, m, o, 1e-3)
		if !updated {
			t.Fatalf("%s: no update after the loss %v", optimizer, r.Loss)
		}
		said = fmt.Appendf(said, "%x %x ", r.Loss, norm)
	}
	load(t, m, 0)
	r, err := m.Evaluate(0, 0)
	if err = errors.Join(err, m.Pull(), o.Pull()); err != nil {
		t.Fatal(err)
	}
	return append(fmt.Appendf(said, "%x", r.Loss), bits(m, o)...)
}

// convolve puts a convolution and an LSTM between the spectrograms and what reads them.
func convolve(t *testing.T, file string) {
	t.Helper()
	data, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	m := new(onnxpb.ModelProto)
	if err := proto.Unmarshal(data, m); err != nil {
		t.Fatal(err)
	}
	g := m.Graph
	for _, n := range g.Node {
		for i, name := range n.Input {
			if name == mel {
				n.Input[i] = "mel.new"
			}
		}
	}
	var bands int64
	for _, in := range g.Input {
		if in.GetName() == mel {
			bands = in.GetType().GetTensorType().GetShape().GetDim()[2].GetDimValue()
		}
	}
	g.Node = append([]*onnxpb.NodeProto{
		turned(mel, "mel.a", 0, 2, 1),
		node("Conv", "mel.a mel.conv", "mel.b", list("pads", 1, 1)), turned("mel.b", "mel.c", 2, 0, 1),
		node("LSTM", "mel.c mel.w mel.r", "mel.d", whole("hidden_size", hidden)),
		node("Squeeze", "mel.d mel.one", "mel.e"), turned("mel.e", "mel.f", 1, 0, 2),
		node("MatMul", "mel.f mel.out", "mel.g"), node("Add", mel+" mel.g", "mel.new"),
	}, g.Node...)
	g.Initializer = append(g.Initializer,
		weights("mel.conv", hidden, bands, 3), weights("mel.w", 1, 4*hidden, hidden),
		weights("mel.r", 1, 4*hidden, hidden), weights("mel.out", hidden, bands),
		&onnxpb.TensorProto{
			Name: proto.String("mel.one"), DataType: proto.Int32(int32(onnxpb.TensorProto_INT64)), Dims: []int64{1},
			Int64Data: []int64{1},
		})
	if data, err = proto.Marshal(m); err == nil {
		err = os.WriteFile(file, data, 0o666)
	}
	if err != nil {
		t.Fatal(err)
	}
}

func node(op, inputs, output string, attributes ...*onnxpb.AttributeProto) *onnxpb.NodeProto {
	return &onnxpb.NodeProto{
		OpType: proto.String(op), Input: strings.Fields(inputs), Output: []string{output}, Attribute: attributes,
	}
}

func turned(from, to string, order ...int64) *onnxpb.NodeProto {
	return node("Transpose", from, to, list("perm", order...))
}

func list(name string, values ...int64) *onnxpb.AttributeProto {
	return &onnxpb.AttributeProto{Name: proto.String(name), Type: onnxpb.AttributeProto_INTS.Enum(), Ints: values}
}

func whole(name string, value int64) *onnxpb.AttributeProto {
	return &onnxpb.AttributeProto{
		Name: proto.String(name), Type: onnxpb.AttributeProto_INT.Enum(), I: proto.Int64(value),
	}
}

func weights(name string, shape ...int64) *onnxpb.TensorProto {
	n, rng := int64(1), rand.New(rand.NewPCG(1, uint64(len(name))))
	for _, d := range shape {
		n *= d
	}
	values := make([]float32, n)
	for i := range values {
		values[i] = float32(rng.NormFloat64() * 0.1)
	}
	return &onnxpb.TensorProto{
		Name: proto.String(name), DataType: proto.Int32(int32(onnxpb.TensorProto_FLOAT)), Dims: shape,
		FloatData: values,
	}
}
