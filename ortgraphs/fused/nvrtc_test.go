package fused_test

import (
	"errors"
	"os"
	"path/filepath"
	"testing"

	"github.com/xtts-host/xtts-host/gpu/nvrtc"
	"github.com/xtts-host/xtts-host/gpu/nvrtc/nvrtctest"
	"github.com/xtts-host/xtts-host/ortgraphs/fused"
	"github.com/xtts-host/xtts-host/ortgraphs/ort/orttest"
	"github.com/xtts-host/xtts-host/ortgraphs/shapes"
)

// TestNVRTC: what the emulation accepts is CUDA C++ for NVIDIA's compiler, too.
func TestNVRTC(t *testing.T) {
	c := nvrtctest.Open(t)
	before := orttest.Handlers()
	defer func() {
		if after := orttest.Handlers(); after != before {
			t.Errorf("signals are handled with the flags %x, before with %x", after, before)
		}
	}()
	for _, file := range []string{
		"builtin/myxtts-multispeaker/training_model.onnx", "builtin/myxtts-nano/training_model.bf16.onnx",
		"testdata/layers/recurrent.onnx", "testdata/layers/scanned.onnx",
	} {
		data, err := os.ReadFile(filepath.Join("..", file))
		if err != nil {
			t.Fatal(err)
		}
		for _, capability := range []int{80, 90} {
			sizes := shapes.Sizes{"B": 8, "T_text": 128, "T_mel": 256, "T_ref_mel": 128, "T_wav": 256 * 255}
			p, err := fused.NewPlan(data, sizes, fused.Form{Capability: capability})
			if err != nil {
				t.Fatal(err)
			}
			compiled, err := c.Compile(t.Context(), nvrtc.Options{Capability: capability, Flags: fused.Options},
				p.Sources())
			if err := errors.Join(append(compiled.Refused, err)...); err != nil {
				t.Errorf("%s for %d: %v", file, capability, err)
			}
			t.Logf("%s for %d: %d programs", file, capability, compiled.New)
		}
	}
}
