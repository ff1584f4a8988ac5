package train_test

import (
	"bytes"
	"errors"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"google.golang.org/protobuf/proto"

	"github.com/xtts-host/xtts-host/host/train"
	"github.com/xtts-host/xtts-host/ortgraphs"
	"github.com/xtts-host/xtts-host/ortgraphs/bundletest"
	"github.com/xtts-host/xtts-host/ortgraphs/onnxpb"
	"github.com/xtts-host/xtts-host/ortgraphs/ort"
	"github.com/xtts-host/xtts-host/shared/manifest"
)

const (
	pico         = "../../ortgraphs/testdata/pico"
	multispeaker = "../../ortgraphs/builtin/myxtts-multispeaker"
)

func load(t *testing.T, dir string) *ortgraphs.Bundle {
	t.Helper()
	b, err := ortgraphs.Load(dir)
	if err != nil {
		t.Fatal(err)
	}
	return b
}

// each runs a test of ranks with one player and with two, without state and with a mean over rows, of windows that
// accumulate two micro-batches and of windows of one, whose gradients are shared as they are.
func each(t *testing.T, test func(t *testing.T, x experiment)) {
	t.Helper()
	stateful := bundletest.Stateful(t, pico)
	for name, bundle := range map[string]*ortgraphs.Bundle{
		"one player": load(t, pico), "players": players(t, pico), "state": stateful,
		"players with state": players(t, stateful.Dir),
	} {
		for accumulate := 1; accumulate <= 2; accumulate++ {
			t.Run(fmt.Sprintf("%s, accumulate %d", name, accumulate), func(t *testing.T) {
				test(t, experiment{bundle: bundle, ranks: 2, rows: 4, accumulate: accumulate})
			})
		}
	}
}

// players returns a bundle like pico with two players. The state, if there is any, is that of the first one.
func players(t *testing.T, dir string) *ortgraphs.Bundle {
	t.Helper()
	return bundletest.WithPlayers(t, dir, func(name string) bool {
		return strings.HasPrefix(name, "text_encoder.") || strings.HasPrefix(name, "statistics.") ||
			name == "metric.stop_loss"
	}, nil)
}

// sameBits compares what ranks, or runs, end each step with.
func sameBits(t *testing.T, what string, a, b []step) {
	t.Helper()
	if len(a) != len(b) || len(a) == 0 {
		t.Fatalf("%s: %d and %d steps", what, len(a), len(b))
	}
	for i := range a {
		if !bytes.Equal(a[i].weights, b[i].weights) {
			t.Errorf("%s: weights differ after step %d", what, a[i].Step.Step)
			return
		}
	}
}

// distance is that of two vectors of f32, relative to the second.
func distance(a, b []byte) float64 {
	var difference, size float64
	for i, v := range ort.View[float32](b) {
		d := float64(ort.View[float32](a)[i]) - float64(v)
		difference, size = difference+d*d, size+float64(v)*float64(v)
	}
	return math.Sqrt(difference / size)
}

// TestTwoRanksAreOne trains two ranks of 4 rows, and one of 8: every step has the same rows, loss, metrics, gradient
// norm, weights and state. The windows have one micro-batch, or two and the last of an epoch one; the last batches of
// an epoch leave a rank without a row. Dropout is off since a graph draws it by the row's place in the batch.
func TestTwoRanksAreOne(t *testing.T) {
	each(t, func(t *testing.T, x experiment) { twoRanksAreOne(t, x, bounds{loss: 1e-6, norm: 1e-6, weights: 1e-6}) })
}

// TestTwoRanksWeighTogether: two ranks that add up the totals of a step are one, also when a rank has no row.
func TestTwoRanksWeighTogether(t *testing.T) {
	x := experiment{bundle: weighted(t), ranks: 2, rows: 4, accumulate: 1}
	twoRanksAreOne(t, x, bounds{loss: 1e-6, norm: 1e-6, weights: 1e-6})
}

// weighted returns a bundle like pico whose graphs divide sums over frames by the frames of the step.
func weighted(t *testing.T) *ortgraphs.Bundle {
	t.Helper()
	return bundletest.Rewrite(t, pico, func(dir string, m *manifest.Bundle) {
		m.Accumulation = manifest.Weighted
		m.Scalars = []manifest.Scalar{{Name: "frames", Origin: manifest.OriginWindow, Lengths: "mel_lengths"}}
		for i, g := range m.Graphs {
			m.Graphs[i].Nodes = nil
			path := filepath.Join(dir, g.File)
			data, err := os.ReadFile(path)
			model := new(onnxpb.ModelProto)
			if err == nil {
				err = proto.Unmarshal(data, model)
			}
			if err == nil {
				weigh(model.Graph)
				data, err = proto.Marshal(model)
			}
			if err = errors.Join(err, os.WriteFile(path, data, 0o600)); err != nil {
				t.Fatal(err)
			}
		}
	})
}

// weigh multiplies what a graph returns as means over the frames of a batch by their number, divided by a scalar.
func weigh(g *onnxpb.GraphProto) {
	node := func(op, out string, in ...string) {
		g.Node = append(g.Node, &onnxpb.NodeProto{
			OpType: proto.String(op), Input: in, Output: []string{out}, Name: proto.String(out + "~node"),
		})
	}
	for _, n := range g.Node {
		for i, out := range n.Output {
			if slices.ContainsFunc(g.Output, func(o *onnxpb.ValueInfoProto) bool { return o.GetName() == out }) {
				n.Output[i] = out + "~mean"
			}
		}
		for i, in := range n.Input {
			if slices.ContainsFunc(g.Output, func(o *onnxpb.ValueInfoProto) bool { return o.GetName() == in }) {
				n.Input[i] = in + "~mean"
			}
		}
	}
	node("Div", "share~", "loss_weight~mean", "frames")
	for _, o := range g.Output {
		if o.GetName() == "loss_weight" {
			node("Sign", "loss_weight", "loss_weight~mean")
			continue
		}
		node("Mul", o.GetName(), o.GetName()+"~mean", "share~")
	}
	g.Input = append(g.Input, &onnxpb.ValueInfoProto{Name: proto.String("frames"), Type: &onnxpb.TypeProto{
		Value: &onnxpb.TypeProto_TensorType{TensorType: &onnxpb.TypeProto_Tensor{
			ElemType: proto.Int32(int32(onnxpb.TensorProto_FLOAT)), Shape: &onnxpb.TensorShapeProto{},
		}}}})
}

// TestTwoRanksAreOneInBF16: gradients in bf16 are shared in bf16. The product with the loss weight and the sum round
// them, each by 2^-9 at most.
func TestTwoRanksAreOneInBF16(t *testing.T) {
	for name, b := range map[string]*ortgraphs.Bundle{
		"matrices": bundletest.Mixed(t, pico), "a matrix in f32": bundletest.Mixed(t, pico, "mel_head.weight"),
	} {
		t.Run(name, func(t *testing.T) {
			twoRanksAreOne(t, experiment{bundle: b, ranks: 2, rows: 4, accumulate: 1, precision: manifest.BF16},
				bounds{loss: 5e-4, norm: 1.0 / (1 << 8), weights: 5e-4})
		})
	}
}

// bounds limit relative differences: of loss and metrics, of norms, and of weights.
type bounds struct{ loss, norm, weights float64 }

func twoRanksAreOne(t *testing.T, x experiment, limit bounds) {
	two := x.run(t)
	x.ranks, x.rows = 1, 8
	one := x.run(t)[0]
	sameBits(t, "the ranks", two[0], two[1])
	var worst bounds
	idle := false
	for i, s := range one {
		a, b := two[0][i], two[1][i]
		idle = idle || b.empty && !a.empty
		rows := slices.Sorted(slices.Values(slices.Concat(a.rows, b.rows)))
		if !slices.Equal(rows, slices.Sorted(slices.Values(s.rows))) {
			t.Errorf("step %d: the ranks train on %v and %v, one on %v", s.Step.Step, a.rows, b.rows, s.rows)
		}
		if a.Loss != b.Loss || a.GradNorm != b.GradNorm || a.Skipped || b.Skipped {
			t.Errorf("step %d: rank 0 reports %v of norm %v, rank 1 %v of norm %v", s.Step.Step, a.Loss, a.GradNorm,
				b.Loss, b.GradNorm)
		}
		worst.loss = max(worst.loss, math.Abs(a.Loss/s.Loss-1))
		worst.norm = max(worst.norm, math.Abs(a.GradNorm/s.GradNorm-1))
		worst.weights = max(worst.weights, distance(a.weights, s.weights))
		for i, v := range s.Metrics {
			if a.Metrics[i] != b.Metrics[i] {
				t.Errorf("step %d: rank 0 reports the metrics %v, rank 1 %v", s.Step.Step, a.Metrics, b.Metrics)
			}
			worst.loss = max(worst.loss, math.Abs(a.Metrics[i]/v-1))
		}
		for p := range s.Players {
			if a.Players[p] != b.Players[p] {
				t.Errorf("step %d: rank 0 has %+v, rank 1 %+v", s.Step.Step, a.Players[p], b.Players[p])
			}
			worst.norm = max(worst.norm, math.Abs(a.Players[p].GradNorm/s.Players[p].GradNorm-1))
		}
	}
	if worst.loss > limit.loss || worst.norm > limit.norm || worst.weights > limit.weights || !idle {
		t.Errorf("largest relative differences %+v; a rank had no row: %v", worst, idle)
	}
	t.Logf("%d steps: largest relative differences %+v", len(one), worst)
}

// TestRanksAreMicroBatches: two ranks are one with two micro-batches, bit for bit, dropout included, also where the
// mean of losses counts rather than that of frames, whether the ranks accumulate their micro-batch or weigh it.
func TestRanksAreMicroBatches(t *testing.T) {
	for _, c := range []struct {
		name, kind string
		bundle     *ortgraphs.Bundle
	}{
		{"exact", "exact", load(t, pico)}, {"mean", "mean", load(t, multispeaker)},
		{"players", "exact", players(t, pico)},
	} {
		t.Run(c.name, func(t *testing.T) {
			b := c.bundle
			if b.Manifest.Accumulation != c.kind {
				t.Fatalf("the accumulation is %s", b.Manifest.Accumulation)
			}
			two := experiment{bundle: b, ranks: 2, rows: 4, accumulate: 1, dropout: true}
			one := experiment{bundle: b, ranks: 1, rows: 4, accumulate: 2, dropout: true, halves: true}
			want := one.run(t)[0]
			sameBits(t, "ranks and micro-batches", two.run(t)[0], want)
			two.sums = true
			sameBits(t, "ranks that accumulate and micro-batches", two.run(t)[0], want)
		})
	}
}

// TestRanksResume: a checkpoint of rank 0 is all that both need.
func TestRanksResume(t *testing.T) { each(t, ranksResume) }

func ranksResume(t *testing.T, x experiment) {
	x.dropout, x.dir = true, t.TempDir()
	whole := x.run(t)
	first, then := x, x
	first.saveAfter, then.resume = 2, true
	begun, ended := first.run(t), then.run(t)
	for rank := range whole {
		sameBits(t, "resumed", whole[rank], append(begun[rank], ended[rank]...))
	}
	sameBits(t, "the ranks", ended[0], ended[1])
}

// TestRanksSkipTogether: what is not a number on one rank changes the weights of none.
func TestRanksSkipTogether(t *testing.T) { each(t, ranksSkipTogether) }

func ranksSkipTogether(t *testing.T, x experiment) {
	const spoilt = 2
	x.spoilt = spoilt
	two := x.run(t)
	sameBits(t, "the ranks", two[0], two[1])
	for rank, seen := range two {
		for i, s := range seen {
			if s.Skipped != (s.Step.Step == spoilt) || math.IsNaN(s.Loss) != s.Skipped {
				t.Errorf("rank %d, step %d: skipped %v, loss %v", rank, s.Step.Step, s.Skipped, s.Loss)
			}
			if s.Skipped != (i > 0 && bytes.Equal(s.weights, seen[i-1].weights)) {
				t.Errorf("rank %d, step %d: a skipped step changed weights, or another did not", rank, s.Step.Step)
			}
		}
	}
}

// TestRanksTell: with the result of a step, a skipped one too, every rank has the sum of what all told before it, and
// alone what it told itself.
func TestRanksTell(t *testing.T) {
	for accumulate := 1; accumulate <= 2; accumulate++ {
		x := experiment{bundle: players(t, pico), rows: 4, accumulate: accumulate, spoilt: 2}
		for x.ranks = 1; x.ranks <= 2; x.ranks++ {
			for rank, seen := range x.run(t) {
				for i, s := range seen {
					var want train.Tally
					for other := 0; i > 0 && other < x.ranks; other++ {
						own := tally(other, seen[i-1].Step.Step)
						want.Stops, want.Samples = want.Stops+own.Stops, want.Samples+own.Samples
						want.Frames, want.LeftOut = want.Frames+own.Frames, want.LeftOut+own.LeftOut
					}
					if s.told != want {
						t.Errorf("rank %d of %d, step %d: told %v, want %v", rank, x.ranks, s.Step.Step, s.told, want)
					}
				}
			}
		}
	}
}
