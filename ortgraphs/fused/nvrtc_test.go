package fused_test

import (
	"errors"
	"os"
	"path/filepath"
	"testing"

	"github.com/xtts-host/xtts-host/gpu/nvrtc"
	"github.com/xtts-host/xtts-host/gpu/nvrtc/nvrtctest"
	"github.com/xtts-host/xtts-host/ortgraphs/fused"
	"github.com/xtts-host/xtts-host/ortgraphs/shapes"
)

// TestNVRTC: what the emulation accepts is CUDA C++ for NVIDIA's compiler, too.
func TestNVRTC(t *testing.T) {
	c := nvrtctest.Open(t)
	for _, file := range []string{"myxtts-multispeaker/training_model.onnx", "myxtts-nano/training_model.bf16.onnx"} {
		data, err := os.ReadFile(filepath.Join("../builtin", file))
		if err != nil {
			t.Fatal(err)
		}
		p, err := fused.NewPlan(data, shapes.Sizes{"B": 8, "T_text": 128, "T_mel": 256, "T_ref_mel": 128}, fused.Form{})
		if err != nil {
			t.Fatal(err)
		}
		compiled, err := c.Compile(t.Context(), nvrtc.Options{Capability: 80, Flags: fused.Options}, p.Sources())
		if err := errors.Join(append(compiled.Refused, err)...); err != nil {
			t.Errorf("%s: %v", file, err)
		}
		t.Logf("%s: %d programs", file, compiled.New)
	}
}
