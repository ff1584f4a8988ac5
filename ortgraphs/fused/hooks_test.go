package fused_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/xtts-host/xtts-host/ortgraphs/fused"
	"github.com/xtts-host/xtts-host/ortgraphs/ort"
	"github.com/xtts-host/xtts-host/ortgraphs/ort/orttest"
	"github.com/xtts-host/xtts-host/ortgraphs/shapes"
)

// TestHooks: a graph calls its hooks in their order, also if that is not the order in which it would compute what they
// wait for, and returns what it returns without them. What a hook waits for needs no kernel.
func TestHooks(t *testing.T) {
	sizes := shapes.Sizes{"B": 3, "T_text": 3, "T_mel": 4, "T_ref_mel": 3}
	_, p := planned(t, "../testdata/pico/training_model.onnx", sizes)
	finished, err := p.Finished()
	if err != nil {
		t.Fatal(err)
	}
	plain := func(int) bool { return true }
	written, kernels, err := p.Link(plain)
	if err != nil {
		t.Fatal(err)
	}
	kernels.Launch = orttest.Launch
	want := run(t, ort.SessionConfig{Model: written, Kernels: kernels}, sizes)
	all := slices.Concat(finished...)
	if len(all) != len(want) {
		t.Fatalf("%d outputs are computed, the graph has %d", len(all), len(want))
	}
	backward := slices.Clone(all)
	slices.Reverse(backward)
	for name, order := range map[string][][]string{
		"as computed": slices.Collect(slices.Chunk(all, 7)),
		"reverse":     slices.Collect(slices.Chunk(backward, 7)),
	} {
		t.Run(name, func(t *testing.T) {
			var called []string
			var hooks []fused.Hook
			for i, outputs := range order {
				hooks = append(hooks, fused.Hook{Outputs: outputs, Call: func() error {
					called = append(called, fmt.Sprint(i))
					return nil
				}})
			}
			model, kernels, err := p.Link(plain, hooks...)
			if err != nil {
				t.Fatal(err)
			}
			kernels.Launch = orttest.Launch
			got := run(t, ort.SessionConfig{Model: model, Kernels: kernels}, sizes)
			for i := range order {
				if called[i] != fmt.Sprint(i) || len(called) != len(order) {
					t.Fatalf("called %s", strings.Join(called, " "))
				}
			}
			for output, values := range want {
				if !slices.Equal(got[output], values) {
					t.Errorf("%s differs", output)
				}
			}
		})
	}
}
