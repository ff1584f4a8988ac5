package ortgraphs

import (
	"reflect"
	"testing"

	"github.com/xtts-host/xtts-host/shared/manifest"
)

// TestInspectCountsStateOfSGD: the graph of SGD keeps a vector even without momentum.
func TestInspectCountsStateOfSGD(t *testing.T) {
	b, err := Load(newFixture().write(t))
	if err != nil {
		t.Fatal(err)
	}
	b.Manifest.Optimizer = manifest.Optimizer{Name: "sgd"}
	if got := b.Inspect().Parameters.Memory.Moments; got != 2*256 {
		t.Errorf("moments of %d bytes, want one vector of two parameters", got)
	}
}

func TestInspect(t *testing.T) {
	b, err := Load(newFixture().write(t))
	if err != nil {
		t.Fatal(err)
	}
	s := b.Inspect()
	if want := (ParameterSummary{
		Tensors: 3, Elements: 17, Decayed: 12, NotDecayed: 3, Frozen: 2, BF16Tensors: 1, BF16: 12,
		Memory: Memory{Weights: 3 * 256, Gradients: 2 * 256, Moments: 2 * 2 * 256},
	}); s.Parameters != want {
		t.Errorf("parameters %+v, want %+v", s.Parameters, want)
	}
	if s.Name != "tiny" || s.Hash != b.Hash() || len(s.Buckets) != 2 || len(s.Inputs) != 3 || len(s.Outputs) != 3 {
		t.Errorf("%+v", s)
	}
	want := []GraphSummary{}
	for _, g := range s.Graphs {
		want = append(want, GraphSummary{Graph: g.Graph, Bytes: g.Bytes, Producer: "test", IRVersion: 10, Nodes: 5,
			Ops:       []OpCount{{"Identity", 2}, {"Erf", 1}, {"ReduceSum", 1}, {"xtts.fused.v1.Gelu", 1}},
			Functions: []string{"xtts.fused.v1.Gelu"},
			Inputs: []string{
				"mel_spectrograms f32[batch,frames,4]", "mel_lengths i32[batch]", "out.weight f32[4,3]",
				"out.bias f32[3]", "table f32[2]",
			},
			Outputs: []string{"loss f32[]", "loss_weight f32[]"}})
		if g.Bytes == 0 {
			t.Errorf("%s has no size", g.File)
		}
	}
	for i := range want {
		if !reflect.DeepEqual(b.Manifest.Graphs[i], s.Graphs[i].Graph) {
			t.Errorf("graph %d is %v", i, s.Graphs[i].Graph)
		}
	}
	for i := range 2 {
		want[i].Inputs = append(want[i].Inputs, "seed i64[]")
		want[i].Outputs = append(want[i].Outputs, "metric.mel_loss f32[]", "grad.out.weight f32[4,3]",
			"grad.out.bias f32[3]")
	}
	want[1].Inputs[2], want[1].Outputs[3] = "out.weight bf16[4,3]", "grad.out.weight bf16[4,3]"
	if !reflect.DeepEqual(s.Graphs, want) {
		t.Errorf("got\n%+v\nwant\n%+v", s.Graphs, want)
	}
}
