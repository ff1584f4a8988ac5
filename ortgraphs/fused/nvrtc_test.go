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
		for _, capability := range []int{80, 90} {
			p, err := fused.NewPlan(data, shapes.Sizes{"B": 8, "T_text": 128, "T_mel": 256, "T_ref_mel": 128},
				fused.Form{Capability: capability})
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
