package fuse_test

import (
	"strings"
	"testing"

	"github.com/xtts-host/xtts-host/gpu/nvrtc"
	"github.com/xtts-host/xtts-host/gpu/nvrtc/nvrtctest"
	"github.com/xtts-host/xtts-host/ortgraphs/fuse/cudac"
	"github.com/xtts-host/xtts-host/ortgraphs/shapes"
)

// warpgroups are a target whose blocks compute all gradients of a head, even of a single one.
var warpgroups = cudac.Target{Warpgroups: 1}

// inOneBlock adds attentions whose gradients one block computes.
func (k *kernels) inOneBlock(t *testing.T) {
	t.Helper()
	k.target = warpgroups
	k.attend(t, []attending{
		{batch: 2, heads: 1, queries: 70, keys: 66, head: 64},
		{batch: 1, heads: 2, queries: 64, keys: 128, head: 64, lengths: true, penalty: 3e38},
		{batch: 3, heads: 1, queries: 130, keys: 150, head: 64, causal: true, lengths: true, penalty: 1e9}, // both warpgroups have the last keys
		{batch: 3, heads: 1, queries: 130, keys: 130, head: 64, causal: true, lengths: true, infinite: true},
		{batch: 2, heads: 1, queries: 200, keys: 130, head: 64, causal: true, lengths: true, added: 1e4},
		{batch: 1, heads: 2, queries: 140, keys: 140, head: 64, causal: true, merged: true, joined: 3, biases: true, multiplied: true},
		{batch: 1, heads: 1, queries: 20, keys: 300, head: 64, dropout: true, form: "hashes", biases: true, joined: 2},
		{batch: 2, heads: 1, queries: 100, keys: 90, head: 64, bias: true, dropout: true, transposedKeys: true},
		{batch: 1, heads: 1, queries: 500, keys: 40, head: 64, lengths: true, dropout: true}, // with one copy of the gradients of scores
	})
}

// TestGradientsInOneBlock: where multiprocessors multiply by warpgroups, one block computes all gradients of a head as the graph says.
func TestGradientsInOneBlock(t *testing.T) {
	var k kernels
	k.inOneBlock(t)
	for i, r := range k.regions {
		if r.Attention != nil && r.Attention.Backward != nil && !strings.HasPrefix(k.kernels[i].Launches[0].Function, "gradients_") {
			t.Errorf("the gradient of %v is computed by %s", r.Attention.Product.Shape, k.kernels[i].Launches[0].Function)
		}
	}
	k.check(t, &emulation{}, 2e-2)
}

// TestGradientsCompile: NVRTC compiles for the instructions of warpgroups what the emulation accepts.
func TestGradientsCompile(t *testing.T) {
	compiler := nvrtctest.Open(t)
	var k kernels
	k.inOneBlock(t)
	var sources []string
	for _, s := range k.sources {
		if strings.Contains(s.Text, "attend_gradients") {
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

// TestGradientsInTwoFunctions: what one block cannot compute, or not as fast, others compute.
func TestGradientsInTwoFunctions(t *testing.T) {
	for name, c := range map[string]struct {
		attending
		target cudac.Target
	}{
		"another GPU":                   {attending{}, cudac.TargetOf(80)},
		"a later GPU":                   {attending{}, cudac.TargetOf(100)},
		"few heads":                     {attending{}, cudac.TargetOf(90)},
		"heads of other columns":        {attending{head: 32}, warpgroups},
		"too many queries":              {attending{queries: 600}, warpgroups},
		"a result that is not in rows":  {attending{form: "columns"}, warpgroups},
		"sums that are not of a result": {attending{form: "other values"}, warpgroups},
	} {
		a := c.attending
		a.batch, a.heads, a.keys = 2, 2, 11
		if a.queries == 0 {
			a.queries = 9
		}
		if a.head == 0 {
			a.head = 64
		}
		_, _, regions := partition(t, a.model(), shapes.Sizes{})
		for _, r := range regions {
			if r.Attention == nil || r.Attention.Backward == nil {
				continue
			}
			if k, err := cudac.Generate(r, c.target); err != nil || len(k.Launches) != 2 {
				t.Errorf("%s: %d launches, %v", name, len(k.Launches), err)
			}
		}
	}
}
