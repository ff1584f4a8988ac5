package cudactest

import (
	"runtime"
	"strings"
	"testing"
	"unsafe"
)

// kernel writes a program with one function.
func kernel(body string) Source {
	return Source{
		"extern \"C\" __global__ void __launch_bounds__(32) f(const float *__restrict__ x, float *__restrict__ y) {\n" +
			body + "\n}\n",
		map[string]int{"f": 2},
	}
}

// TestFaults: the emulation sees what only some runs on a GPU would show.
func TestFaults(t *testing.T) {
	const vector = "struct alignas(16) four { float at[4]; };\n"
	const copied = "alignas(16) __shared__ float tile[128];\n" +
		"copy_16(place_of(tile + threadIdx.x * 4), x + threadIdx.x * 4, true);\n"
	read := "y[threadIdx.x * 4] = tile[(threadIdx.x * 4 + 4) % 128];\n"
	sources := []Source{
		kernel(vector + "*(four *)(y + threadIdx.x * 4) = *(const four *)(x + threadIdx.x * 4);"),
		kernel(vector + "*(four *)(y + threadIdx.x * 4) = *(const four *)(x + threadIdx.x * 4 + 2);"),
		kernel(copied + "end_copies(); wait_for_copies<0>(); __syncthreads();\n" + read),
		kernel(copied + "end_copies(); wait_for_copies<1>(); __syncthreads();\n" + read),
		kernel(copied + "wait_for_copies<0>(); __syncthreads();\n" + read),
		kernel("copy_16(place_of(y + 1), x, true);"),
	}
	program := Compile(t, "", sources)
	for i, want := range []struct {
		failure string
		first   float32
	}{{"", 4}, {"CUDA failure 716", 4}, {"", 8}, {"", 0}, {"", 0}, {"CUDA failure 716", 0}} {
		x, y := memory(160), memory(160)
		for j := range x {
			x[j] = float32(j)
		}
		err := Launch(program.Launch, program.Function(i, "f"), 0, [2]int{1, 1}, 32, 0,
			[]uintptr{Address(t, x), Address(t, y)})
		runtime.KeepAlive(x)
		if (err == nil) != (want.failure == "") || err != nil && !strings.Contains(err.Error(), want.failure) {
			t.Errorf("%d: %v", i, err)
		}
		if err == nil && y[4] != want.first {
			t.Errorf("%d: %v", i, y[:8])
		}
	}
}

// TestContracted: with these options, a product and a sum are rounded once.
func TestContracted(t *testing.T) {
	options := Contracted()
	if options == nil {
		t.Skip("the processor has no such operation")
	}
	for _, options := range [][]string{nil, options} {
		program := Compile(t, "", []Source{kernel("y[0] = x[0] * x[0] - x[1];")}, options...)
		x, y := memory(2), memory(1)
		x[0] = 1 + 1.0/4096
		x[1] = x[0] * x[0] // rounded
		if err := Launch(program.Launch, program.Function(0, "f"), 0, [2]int{1, 1}, 1, 0, []uintptr{
			Address(t, x), Address(t, y),
		}); err != nil {
			t.Fatal(err)
		}
		runtime.KeepAlive(x)
		if (y[0] != 0) != (options != nil) {
			t.Errorf("%v: %g", options, y[0])
		}
	}
}

// memory returns numbers that begin at a multiple of 64 bytes.
func memory(n int) []float32 {
	x := make([]float32, n+16)
	at := -uintptr(unsafe.Pointer(&x[0])) % 64 / 4
	return x[at : int(at)+n]
}
