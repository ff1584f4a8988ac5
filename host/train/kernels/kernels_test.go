package kernels

import (
	"fmt"
	"log/slog"
	"os"
	"strings"
	"testing"

	"github.com/xtts-host/xtts-host/gpu"
	"github.com/xtts-host/xtts-host/gpu/nvrtc/nvrtctest"
	"github.com/xtts-host/xtts-host/ortgraphs/fuse/cudac"
	"github.com/xtts-host/xtts-host/ortgraphs/fused"
)

// card is a GPU whose driver refuses a program with the given name.
type card struct {
	gpu.Context
	device  gpu.Device
	refused string
	open    int
}

func (c *card) Device() gpu.Device { return c.device }

func (c *card) LaunchAddress() uintptr            { return 1 }
func (c *card) CooperativeLaunchAddress() uintptr { return 2 }

func (c *card) NewModule(image []byte) (gpu.Module, error) {
	if strings.Contains(string(image), c.refused) {
		return nil, fmt.Errorf("load kernels: %w", gpu.ErrNoKernel)
	}
	c.open++
	return &module{c}, nil
}

type module struct{ card *card }

func (m *module) Kernel(string) (gpu.Kernel, error) { return function{}, nil }
func (m *module) Close() error {
	m.card.open--
	return nil
}

type function struct{ gpu.Kernel }

func (function) Pointer() uintptr { return 2 }

// TestSetGPU: kernels are planned for what the driver says of the part of the GPU that the process has.
func TestSetGPU(t *testing.T) {
	c := &Compiler{context: &card{device: gpu.Device{
		Capability: 80, Multiprocessors: gpu.Multiprocessors{Count: 14, SharedMemory: 164 << 10, Cooperative: true},
	}}}
	form := fused.Form{BF16Attention: true}
	if c.SetGPU(&form); form != (fused.Form{
		BF16Attention: true, Capability: 80,
		Multiprocessors: cudac.Multiprocessors{Count: 14, SharedMemory: 164 << 10},
	}) {
		t.Errorf("%+v", form)
	}
	c.context = &card{}
	if c.SetGPU(&form); !form.Multiprocessors.Uncooperative {
		t.Errorf("%+v", form)
	}
}

// TestRefusedPrograms: a program that NVRTC or the driver refuses is the error of its own functions only.
func TestRefusedPrograms(t *testing.T) {
	nvrtctest.Open(t)
	var lines strings.Builder
	c := &card{refused: "too_new"}
	compiler, err := New(c, Config{Capability: 80, Library: os.Getenv("XTTS_HOST_TEST_NVRTC"), Cache: t.TempDir()},
		slog.New(slog.NewTextHandler(&lines, nil)))
	if err != nil {
		t.Fatal(err)
	}
	source := func(name, body string) string {
		return fmt.Sprintf("extern \"C\" __global__ void %s(float *x) { %s }\n", name, body)
	}
	sources := []string{source("good", "*x = 1;"), source("bad", "*y = 1;"), source("too_new", "*x = 2;")}
	programs, err := compiler.Compile(sources)
	if err != nil {
		t.Fatal(err)
	}
	for i, want := range []string{"", `kernel.cu(1): error: identifier "y" is undefined`, "no kernel for this GPU"} {
		f, err := programs.Function(sources[i], "any", 0)
		if (err == nil) != (want == "") || err == nil && f != 2 || err != nil && !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v", sources[i], err)
		}
	}
	if _, err := programs.Function("another source", "any", 0); err == nil {
		t.Error("a program that was not compiled has a function")
	}
	if !strings.Contains(lines.String(), "compiled=2 cached=0 refused=2") {
		t.Error(lines.String())
	}
	if err := programs.Close(); err != nil || c.open != 0 {
		t.Errorf("%d programs are open, %v", c.open, err)
	}
}
