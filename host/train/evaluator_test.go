package train

import (
	"bytes"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"google.golang.org/protobuf/proto"

	"github.com/xtts-host/xtts-host/ortgraphs"
	"github.com/xtts-host/xtts-host/ortgraphs/bundletest"
	"github.com/xtts-host/xtts-host/ortgraphs/fused/fusedtest"
	"github.com/xtts-host/xtts-host/ortgraphs/onnxpb"
	"github.com/xtts-host/xtts-host/shared/manifest"
)

// wasteful copies a bundle with an evaluation graph that needs 16 MiB as exported: it repeats the loss 2,048 times in
// two directions, and returns the largest of them. A kernel needs nothing for that.
func wasteful(t *testing.T, dir string) *ortgraphs.Bundle {
	return bundletest.Rewrite(t, dir, func(dir string, b *manifest.Bundle) {
		g, ok := b.EvalGraph()
		if !ok {
			t.Fatal("no evaluation graph")
		}
		if g.Nodes != nil {
			g.Nodes["Expand"]++
			g.Nodes["ReduceMax"]++
		}
		path := filepath.Join(dir, g.File)
		file, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		m := &onnxpb.ModelProto{}
		if err := proto.Unmarshal(file, m); err != nil {
			t.Fatal(err)
		}
		for _, n := range m.Graph.Node {
			for i, name := range n.Output {
				if name == "loss" {
					n.Output[i] = "one_loss"
				}
			}
		}
		m.Graph.Initializer = append(m.Graph.Initializer, &onnxpb.TensorProto{
			Name: proto.String("often"), DataType: proto.Int32(int32(onnxpb.TensorProto_INT64)), Dims: []int64{2},
			Int64Data: []int64{2048, 2048},
		})
		m.Graph.Node = append(m.Graph.Node,
			&onnxpb.NodeProto{
				OpType: proto.String("Expand"), Input: []string{"one_loss", "often"}, Output: []string{"many_losses"},
			},
			&onnxpb.NodeProto{
				OpType: proto.String("ReduceMax"), Input: []string{"many_losses"}, Output: []string{"loss"},
				Attribute: []*onnxpb.AttributeProto{{
					Name: proto.String("keepdims"), Type: onnxpb.AttributeProto_INT.Enum(), I: proto.Int64(0),
				}},
			})
		if file, err = proto.Marshal(m); err == nil {
			err = os.WriteFile(path, file, 0o644)
		}
		if err != nil {
			t.Fatal(err)
		}
	})
}

// TestFusedEvaluation: an evaluation graph that needs more memory than training is fused, with the losses of the graph
// as exported, also of averaged weights. A kernel that is wrong is found. TestFusion has one that needs less.
func TestFusedEvaluation(t *testing.T) {
	compiler := fusedtest.NewCompiler(t)
	compiler.Change = func(program string) string {
		if !strings.Contains(program, "x3 = x") {
			return program
		}
		return strings.Replace(program, " * x", " + x", 1)
	}
	stateful := bundletest.Stateful(t, pico).Dir
	for _, c := range []struct {
		name    string
		bundle  *ortgraphs.Bundle
		average float64
		faults  int // in the programs of training, and in those of evaluation
	}{
		{"of pico", wasteful(t, pico), 0, 0},
		{"a wrong kernel", wasteful(t, pico), 0, 1},
		{"averaged weights, and state", wasteful(t, stateful), 0.9, 0},
	} {
		t.Run(c.name, func(t *testing.T) {
			layouts, _ := shaped(t, c.bundle, 3, []goldenBatch{
				{Sizes: manifest.Bucket{"T_text": 4, "T_mel": 7, "T_ref_mel": 6}},
			})
			open := func(c ModelConfig, b *ortgraphs.Bundle, average float64) *Model {
				c.Bundle, c.Arenas, c.Layouts, c.Slots, c.Threads = b, arenasOf(b), layouts, 1, 1
				c.Average = average
				m, err := NewModel(c)
				if err != nil {
					t.Fatal(err)
				}
				t.Cleanup(func() { m.Close() })
				return m
			}
			plain, before := open(ModelConfig{}, c.bundle, c.average), sessions(t)
			compiler.Faults = c.faults
			d, _ := fakeDevice(t)
			m := open(ModelConfig{Device: d, Fuse: FuseConfig{Compiler: compiler}}, c.bundle, c.average)
			p, err := m.Prepare()
			if err != nil {
				t.Fatal(err)
			}
			if open := sessions(t) - before; open != 2 {
				t.Errorf("%d sessions are open for training and evaluation", open)
			}
			f := p.Evaluation.Fusion
			if f == nil {
				t.Fatal(p.Evaluation.Unfused)
			}
			t.Logf("%d kernels; faulty %q; unproved %q; distances %.2g", f.Kernels, f.Faulty, f.Unproved, f.Distances)
			if f.Kernels < 20 || f.ArenaBytes >= 16<<20 {
				t.Errorf("%d kernels, an arena of %d bytes", f.Kernels, f.ArenaBytes)
			}
			if found := len(f.Faulty) > 0; found != (c.faults > 0) || len(f.AsExported) > 0 {
				t.Errorf("faulty %q, as exported %q", f.Faulty, f.AsExported)
			}
			if got, want := lossOf(t, m), lossOf(t, plain); !(math.Abs(got/want-1) < 1e-5) {
				t.Errorf("loss %v, as exported %v", got, want)
			}
		})
	}
}

// lossOf is the loss of an evaluation of the same batch for all models.
func lossOf(t *testing.T, m *Model) float64 {
	t.Helper()
	batch, err := newTrial(m)
	if err != nil {
		t.Fatal(err)
	}
	defer batch.close()
	if err := batch.fill(0, 0, anyRows); err != nil {
		t.Fatal(err)
	}
	r, err := m.Evaluate(0, 0)
	if err != nil {
		t.Fatal(err)
	}
	return r.Loss
}

// TestVariables: what a proof changes of the weights reaches the graph that is tried, also one that evaluates copies in
// bf16. State that may be a variance does not become negative.
func TestVariables(t *testing.T) {
	for _, c := range []struct {
		bundle *ortgraphs.Bundle
		copies bool
	}{{bundletest.WithoutEval(t, bundletest.Mixed(t, pico).Dir), true}, {bundletest.Mixed(t, pico), false}} {
		d, _ := fakeDevice(t)
		m, _, _ := newMixed(t, c.bundle, d)
		batch, err := newTrial(m)
		if err != nil {
			t.Fatal(err)
		}
		defer batch.close()
		batch.player = batch.evaluator
		read := &m.players[0].weights.block
		if c.copies {
			read = &m.players[0].copies.block
		}
		sent := func() []byte {
			if err := m.pull(read); err != nil {
				t.Fatal(err)
			}
			return bytes.Clone(read.host)
		}
		before := sent()
		for _, v := range batch.variables() {
			for i := range v.values {
				v.values[i] *= 1.5
			}
			if err := v.send(); err != nil {
				t.Fatal(err)
			}
		}
		if bytes.Equal(sent(), before) {
			t.Errorf("copies %t: the graph reads the same weights", c.copies)
		}
	}
	d, _ := fakeDevice(t)
	m, _, _ := newMixed(t, bundletest.Mixed(t, bundletest.Stateful(t, pico).Dir), d)
	batch, err := newTrial(m)
	if err != nil {
		t.Fatal(err)
	}
	defer batch.close()
	batch.player = batch.evaluator
	for _, v := range batch.variables() {
		if v.state {
			clear(v.values)
		}
	}
	if _, err := varyWeights(batch); err != nil {
		t.Fatal(err)
	}
	for _, v := range batch.variables() {
		if v.state && (constant(v.values) || slices.Min(v.values) < 0) {
			t.Errorf("state %v", v.values)
		}
	}
}
