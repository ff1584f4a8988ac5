package fuse_test

import (
	"math"
	"strings"
	"testing"

	"github.com/xtts-host/xtts-host/gpu/nvrtc"
	"github.com/xtts-host/xtts-host/gpu/nvrtc/nvrtctest"
	"github.com/xtts-host/xtts-host/ortgraphs/fuse/cudac"
	"github.com/xtts-host/xtts-host/ortgraphs/shapes"
)

// notAtHand are the multiprocessors of a GPU of which only the compute capability is known.
var notAtHand cudac.Multiprocessors

// warpgroups are a target whose blocks compute all gradients of a head, even of a single one.
var warpgroups = cudac.Target{Warpgroups: true, Multiprocessors: cudac.Multiprocessors{Count: 1}}

// inOneBlock adds attentions whose gradients one block computes.
func (k *kernels) inOneBlock(t *testing.T) {
	t.Helper()
	k.target = warpgroups
	k.attend(t, []attending{
		{batch: 2, heads: 1, queries: 70, keys: 66, head: 64},
		{batch: 1, heads: 2, queries: 64, keys: 128, head: 64, lengths: true, penalty: 3e38},
		// both warpgroups have the last keys
		{batch: 3, heads: 1, queries: 130, keys: 150, head: 64, causal: true, lengths: true, penalty: 1e9},
		{batch: 3, heads: 1, queries: 130, keys: 130, head: 64, causal: true, lengths: true, infinite: true},
		{batch: 2, heads: 1, queries: 200, keys: 130, head: 64, causal: true, lengths: true, added: 1e4},
		{
			batch: 1, heads: 2, queries: 140, keys: 140, head: 64, causal: true, merged: true, joined: 3, biases: true,
			multiplied: true,
		},
		{batch: 1, heads: 1, queries: 20, keys: 300, head: 64, dropout: true, form: "hashes", biases: true, joined: 2},
		{batch: 2, heads: 1, queries: 100, keys: 90, head: 64, bias: true, dropout: true, transposedKeys: true},
		{batch: 2, heads: 2, queries: 70, keys: 66, head: 64, lengths: true, form: "time first"},
		// with one copy of the gradients of scores
		{batch: 1, heads: 1, queries: 500, keys: 40, head: 64, lengths: true, dropout: true},
		{batch: 1, heads: 1, queries: 500, keys: 140, head: 64},
		{batch: 1, heads: 1, queries: 560, keys: 20, head: 64},
		{batch: 1, heads: 1, queries: 20, keys: 4200, head: 64}, // a bit of the keys in reach is for keys of two passes
	})
}

// TestGradientsInOneBlock: where multiprocessors multiply by warpgroups, one block computes all gradients of a head as
// the graph says.
func TestGradientsInOneBlock(t *testing.T) {
	var k kernels
	k.inOneBlock(t)
	for i, r := range k.regions {
		if attentionOf(r) != nil && attentionOf(r).Backward != nil &&
			!strings.HasPrefix(k.kernels[i].Launches[0].Function, "gradients_") {
			t.Errorf("the gradient of %v is computed by %s", attentionOf(r).Product.Shape,
				k.kernels[i].Launches[0].Function)
		}
	}
	k.check(t, &emulation{}, 2e-2)
}

// TestWarpgroupsNVRTC: NVRTC compiles for the instructions of warpgroups what the emulation accepts.
func TestWarpgroupsNVRTC(t *testing.T) {
	compiler := nvrtctest.Open(t)
	var k kernels
	k.inOneBlock(t)
	var sources []string
	for _, s := range k.sources {
		if strings.Contains(s.Text, "wgmma") {
			sources = append(sources, cudac.Prelude+s.Text)
		}
	}
	compiled, err := compiler.Compile(t.Context(), nvrtc.Options{Capability: 90, Flags: cudac.Options}, sources)
	if err != nil || len(sources) == 0 {
		t.Fatalf("%d sources: %v", len(sources), err)
	}
	for _, err := range compiled.Refused {
		if err != nil {
			t.Error(err)
		}
	}
}

// TestMaskedNaN: values that no query attends to may be NaN, also where the exported graph multiplies them by 0.
func TestMaskedNaN(t *testing.T) {
	for _, target := range []cudac.Target{{}, warpgroups} {
		k := kernels{target: target}
		// seven keys count
		a := attending{batch: 1, heads: 1, queries: 70, keys: 140, head: 64, lengths: true, penalty: 1e9}
		_, g, regions := partition(t, a.model(), shapes.Sizes{})
		m, err := interpret(g, regions, given(g))
		if err != nil {
			t.Fatal(err)
		}
		for _, in := range g.Inputs {
			for i := 64 * a.head; in.Name == "v" && i < in.Elements(); i++ {
				m[in][i].f = math.NaN()
			}
		}
		k.add(t, regions, m)
		k.check(t, &emulation{}, 2e-2)
	}
}

// TestTargetOfHeads: one block computes the gradients of a head where enough multiprocessors have one.
func TestTargetOfHeads(t *testing.T) {
	for heads, launches := range map[int]int{87: 2, 88: 1, 132: 1, 133: 2, 175: 2, 176: 1} {
		if got := gradientLaunches(
			t, attending{batch: heads, heads: 1, queries: 9, keys: 11, head: 64}, cudac.TargetOf(90, notAtHand),
		); got != launches {
			t.Errorf("%d heads: %d launches, want %d", heads, got, launches)
		}
	}
}

// gradientLaunches generates the gradient of an attention, and returns how many functions it has.
func gradientLaunches(t *testing.T, a attending, target cudac.Target) int {
	t.Helper()
	_, _, regions := partition(t, a.model(), shapes.Sizes{})
	for _, r := range regions {
		if attentionOf(r) == nil || attentionOf(r).Backward == nil {
			continue
		}
		k, err := cudac.Generate(r, target)
		if err != nil {
			t.Fatal(err)
		}
		return len(k.Launches)
	}
	t.Fatal("no gradient of attention")
	return 0
}

// TestGradientsInTwoFunctions: what one block cannot compute others compute.
func TestGradientsInTwoFunctions(t *testing.T) {
	can := attending{batch: 2, heads: 2, queries: 9, keys: 11, head: 64}
	if gradientLaunches(t, can, warpgroups) != 1 {
		t.Fatal("two functions compute what one block can")
	}
	for name, change := range map[string]func(a *attending, target *cudac.Target){
		"another GPU": func(_ *attending, target *cudac.Target) {
			*target = cudac.TargetOf(80, notAtHand)
		},
		"a later GPU": func(_ *attending, target *cudac.Target) {
			*target = cudac.TargetOf(100, notAtHand)
		},
		"heads of other columns":        func(a *attending, _ *cudac.Target) { a.head = 32 },
		"too many queries":              func(a *attending, _ *cudac.Target) { a.queries = 561 },
		"a result that is not in rows":  func(a *attending, _ *cudac.Target) { a.form = "columns" },
		"sums that are not of a result": func(a *attending, _ *cudac.Target) { a.form = "other values" },
	} {
		a, target := can, warpgroups
		change(&a, &target)
		if got := gradientLaunches(t, a, target); got != 2 {
			t.Errorf("%s: %d launches", name, got)
		}
	}
}
