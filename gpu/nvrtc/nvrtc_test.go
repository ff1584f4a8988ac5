package nvrtc_test

import (
	"bytes"
	"context"
	"debug/elf"
	_ "embed"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/xtts-host/xtts-host/gpu/nvrtc"
	"github.com/xtts-host/xtts-host/gpu/nvrtc/nvrtctest"
)

//go:embed testdata/kernels.cu
var kernels string

// TestCubins compiles for cards from the A100 to the RTX 50 series.
func TestCubins(t *testing.T) {
	c := nvrtctest.Open(t)
	const cuda = 190 // elf.EM_CUDA
	for _, capability := range []int{80, 86, 89, 90, 100, 120} {
		compiled, err := c.Compile(context.Background(), nvrtc.Options{Capability: capability}, []string{kernels})
		if err != nil {
			t.Fatal(err)
		}
		f, err := elf.NewFile(bytes.NewReader(compiled.Images[0]))
		if err != nil {
			t.Fatalf("sm_%d: %v", capability, err)
		}
		if f.Class != elf.ELFCLASS64 || f.Machine != cuda {
			t.Errorf("sm_%d: %v for machine %d", capability, f.Class, f.Machine)
		}
		for _, name := range []string{"gelu", "softmax", "columns"} {
			if s := f.Section(".text." + name); s == nil || s.Size == 0 {
				t.Errorf("sm_%d: no code of %s", capability, name)
			}
		}
	}
}

func TestNewerCard(t *testing.T) {
	c := nvrtctest.Open(t)
	compiled, err := c.Compile(context.Background(), nvrtc.Options{Capability: 990}, []string{kernels})
	if err != nil {
		t.Fatal(err)
	}
	ptx := string(compiled.Images[0])
	if !strings.Contains(ptx, "\n.target sm_1") || !strings.Contains(ptx, ".visible .entry softmax(") {
		t.Errorf("not PTX: %.300s", ptx)
	}
}

func TestErrorsNameTheLine(t *testing.T) {
	c := nvrtctest.Open(t)
	source := "extern \"C\" __global__ void k(float *x) {\n\tx[0] = y;\n}\n"
	compiled, err := c.Compile(context.Background(), nvrtc.Options{Capability: 80}, []string{kernels, source})
	if err != nil {
		t.Fatal(err)
	}
	want := "compile for sm_80: nvrtcCompileProgram: NVRTC_ERROR_COMPILATION: kernel.cu(2): error: identifier \"y\" " +
		"is undefined: x[0] = y;"
	if err := compiled.Refused[1]; err == nil || err.Error() != want || compiled.Images[1] != nil {
		t.Errorf("error %v, want %s", err, want)
	}
	if compiled.Refused[0] != nil || compiled.Images[0] == nil {
		t.Errorf("the other source: %v", compiled.Refused[0])
	}
	compiled, err = c.Compile(context.Background(), nvrtc.Options{Capability: 80, Flags: []string{"-no-such-option"}},
		[]string{kernels})
	if err != nil {
		t.Fatal(err)
	}
	if err := compiled.Refused[0]; err == nil || !strings.Contains(err.Error(), "no-such-option") {
		t.Errorf("error %v", err)
	}
}

// TestOpenFails: a library that is not NVRTC is refused, not ignored, and the error says what is wrong with it.
func TestOpenFails(t *testing.T) {
	file := filepath.Join(t.TempDir(), nvrtc.Library)
	for content, want := range map[string]string{
		"const char *nvrtcGetErrorString(int result) { return 0; }": "has no nvrtcDestroyProgram",
		"": "has no nvrtcGetErrorString",
	} {
		compiler := exec.Command("cc", "-shared", "-fPIC", "-xc", "-o", file, "-")
		compiler.Stdin = strings.NewReader(content)
		if out, err := compiler.CombinedOutput(); err != nil {
			t.Fatalf("%v: %s", err, out)
		}
		if _, err := nvrtc.Open(file); err == nil || !strings.Contains(err.Error(), file) ||
			!strings.Contains(err.Error(), want) {
			t.Errorf("error %v, want one with %s", err, want)
		}
		if err := os.Remove(file); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.WriteFile(file, []byte("truncated"), 0o666); err != nil {
		t.Fatal(err)
	}
	if _, err := nvrtc.Open(file); err == nil || !strings.Contains(err.Error(), file) {
		t.Errorf("error %v, want one with %s", err, file)
	}
}

// BenchmarkCompile compiles one kernel after another.
func BenchmarkCompile(b *testing.B) {
	c := nvrtctest.Open(b)
	for b.Loop() {
		if _, err := c.Compile(context.Background(), nvrtc.Options{Capability: 90}, []string{kernels}); err != nil {
			b.Fatal(err)
		}
	}
}
