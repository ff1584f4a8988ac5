package precision_test

import (
	"strings"
	"testing"

	"github.com/xtts-host/xtts-host/gpu"
	"github.com/xtts-host/xtts-host/host/settings/config"
	"github.com/xtts-host/xtts-host/host/settings/precision"
	"github.com/xtts-host/xtts-host/ortgraphs"
	"github.com/xtts-host/xtts-host/shared/hint"
	"github.com/xtts-host/xtts-host/shared/manifest"
)

func bundle(precisions ...string) *ortgraphs.Bundle {
	b := &ortgraphs.Bundle{Dir: "model", Manifest: &manifest.Bundle{}}
	for _, p := range precisions {
		b.Manifest.Graphs = append(b.Manifest.Graphs, manifest.Graph{Kind: "train", Precision: p})
	}
	return b
}

func TestResolve(t *testing.T) {
	hopper, turing, unknown := &gpu.Device{Name: "H200", Capability: 90},
		&gpu.Device{Index: 1, Name: "T4", UUID: "GPU-t", Capability: 75}, &gpu.Device{}
	both := bundle("f32", "bf16")
	f32, tf32, bf16 := precision.Precision{Name: "f32", Graph: "f32"},
		precision.Precision{Name: "tf32", Graph: "f32", TF32: true},
		precision.Precision{Name: "bf16", Graph: "bf16", TF32: true}
	for _, c := range []struct {
		asked   config.Precision
		card    *gpu.Device
		bundle  *ortgraphs.Bundle
		want    precision.Precision
		refused string // with the hint after a line feed
	}{
		{"auto", nil, both, f32, ""},
		{"f32", nil, both, f32, ""},
		{"tf32", nil, both, f32, ""},
		{"auto", hopper, both, tf32, ""},
		{"f32", hopper, both, f32, ""},
		{"tf32", turing, both, tf32, ""},
		{"bf16", hopper, both, bf16, ""},
		{"bf16", unknown, both, bf16, ""},
		{"bf16", nil, both, bf16, "--precision bf16 needs a GPU: ONNX Runtime has no bf16 kernels for the CPU\n" +
			"train with --precision f32, or on a GPU of compute capability 8.0 or later"},
		{"bf16", turing, both, bf16, "--precision bf16 needs a GPU of compute capability 8.0 or later: GPU 1 (T4, " +
			"GPU-t) has 7.5\ntrain with --precision f32"},
		{"bf16", hopper, bundle("f32"), bf16, "bundle model has no training graph in bf16\n" +
			"train with --precision f32, or export the bundle with --precision f32,bf16"},
		{"auto", nil, bundle(), f32, "bundle model has no training graph in f32\nexport the bundle again"},
	} {
		got, err := precision.Resolve(c.asked, c.card, c.bundle)
		text := ""
		if err != nil {
			text = err.Error() + "\n" + hint.Of(err)
		}
		if text != c.refused || err == nil && got != c.want {
			t.Errorf("%s on %v: %+v, %q; want %+v, %q", c.asked, c.card, got, text, c.want, c.refused)
		}
	}
}

func TestString(t *testing.T) {
	for _, name := range []string{"f32", "tf32", "bf16"} {
		p, err := precision.Resolve(config.Precision(name), &gpu.Device{}, bundle("f32", "bf16"))
		if err != nil || !strings.HasPrefix(p.String(), "f32") ||
			strings.Contains(p.String(), "products") != (name != "f32") || !strings.Contains(p.String(), name) {
			t.Errorf("%s: %q, %v", name, p, err)
		}
	}
}
