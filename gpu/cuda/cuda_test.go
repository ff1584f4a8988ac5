package cuda_test

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"runtime"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/xtts-host/xtts-host/gpu"
	"github.com/xtts-host/xtts-host/gpu/cuda"
	"github.com/xtts-host/xtts-host/gpu/gputest"
	"github.com/xtts-host/xtts-host/gpu/nvrtc"
	"github.com/xtts-host/xtts-host/gpu/nvrtc/nvrtctest"
	"gorgonia.org/cu"
)

// uuid returns the UUID of the first GPU, only through cu: these tests also run on the fake driver, where package gpu
// sees no GPU.
func uuid(t testing.TB) string {
	t.Helper()
	if os.Getenv("XTTS_HOST_TEST_GPU") == "" {
		t.Skip("XTTS_HOST_TEST_GPU names no GPU")
	}
	must(t, cuda.Start())
	device, err := cu.GetDevice(0)
	must(t, err)
	id, err := device.UUID()
	must(t, err)
	return "GPU-" + id.String()
}

func TestContext(t *testing.T) {
	gputest.TestContext(t, func() (gpu.Context, error) { return cuda.Open(uuid(t)) })
}

func TestErrorsNameTheCall(t *testing.T) {
	c := bound(t)
	_, err := c.Allocate(1 << 45)
	want := "allocate 35184372088832 bytes of GPU memory: cuMemAlloc: CUDA_ERROR_OUT_OF_MEMORY (2)"
	if err == nil || err.Error() != want || !errors.Is(err, gpu.ErrOutOfMemory) {
		t.Errorf("error %v, want %s, as gpu.ErrOutOfMemory", err, want)
	}
	e, err := c.NewEvent()
	must(t, err)
	defer e.Close()
	_, err = e.Since(e)
	want = "measure time between events: cuEventElapsedTime: CUDA_ERROR_INVALID_HANDLE (400)"
	if err == nil || err.Error() != want || errors.Is(err, gpu.ErrOutOfMemory) {
		t.Errorf("error %v, want %s", err, want)
	}
}

func TestOpenOfAnUnknownGPU(t *testing.T) {
	const unknown = "GPU-00000000-0000-0000-0000-000000000000"
	c, err := cuda.Open(unknown)
	want := "open GPU " + unknown + ": CUDA shows this process only " + uuid(t)
	if c != nil || err == nil || !strings.HasPrefix(err.Error(), want) {
		t.Errorf("returns %v, %v, want %s", c, err, want)
	}
	for visible, hint := range map[string]string{
		"0": "CUDA_VISIBLE_DEVICES=0 hides the others", "": "nvidia-smi -L lists the GPUs of this machine",
	} {
		t.Setenv("CUDA_VISIBLE_DEVICES", visible)
		var h interface{ Hint() string }
		if !errors.As(err, &h) || h.Hint() != hint {
			t.Errorf("with CUDA_VISIBLE_DEVICES=%q no hint %q", visible, hint)
		}
	}
}

// TestOneContextForAll: a GPU that is opened twice stays open until both are closed, and its UUID is found in upper and
// lower case.
func TestOneContextForAll(t *testing.T) {
	first := bound(t)
	second, err := cuda.Open(strings.ToUpper(uuid(t)))
	must(t, err)
	if second.Device() != first.Device() || second.Device().UUID != uuid(t) {
		t.Errorf("%+v and %+v are one device", first.Device(), second.Device())
	}
	m, err := first.Allocate(100)
	must(t, err)
	must(t, second.Close())
	must(t, m.Close())
}

// TestStartWithoutGPU: where CUDA finds no GPU, the program starts, and says so when a GPU is opened.
func TestStartWithoutGPU(t *testing.T) {
	if os.Getenv("XTTS_HOST_TEST_START") != "" {
		fmt.Println(cuda.Start())
		return
	}
	uuid(t)
	program := exec.Command(os.Args[0], "-test.run=^TestStartWithoutGPU$")
	program.Env = append(os.Environ(), "CUDA_VISIBLE_DEVICES=", "XTTS_HOST_TEST_START=1")
	out, err := program.CombinedOutput()
	want := "the NVIDIA driver does not start: cuInit: CUDA_ERROR_NO_DEVICE (100)\n"
	if err != nil || !strings.HasPrefix(string(out), want) {
		t.Errorf("%v: %s, want %s", err, out, want)
	}
}

// TestCompiledKernels compiles kernels for the card as the program does, and runs them.
func TestCompiledKernels(t *testing.T) {
	c, compiler := bound(t), nvrtctest.Open(t)
	const threads, blocks = 64, 3
	source := func(n int) string {
		return fmt.Sprintf(
			`extern "C" __global__ void __launch_bounds__(64) add(const int *__restrict__ x, int *__restrict__ y) {
	int i = blockIdx.x * blockDim.x + threadIdx.x;
	y[i] = x[i] + %d;
}`, n)
	}
	compiled, err := compiler.Compile(t.Context(), nvrtc.Options{Capability: c.Device().Capability, Cache: t.TempDir()},
		[]string{source(7), source(100)})
	must(t, err)
	stream, err := c.NewStream()
	must(t, err)
	defer stream.Close()
	memory, err := c.Allocate(4 * threads * blocks)
	must(t, err)
	defer memory.Close()
	host, err := c.AllocateHost(memory.Size())
	must(t, err)
	defer host.Close()
	for _, image := range compiled.Images {
		module, err := c.NewModule(image)
		must(t, err)
		defer module.Close()
		add, err := module.Kernel("add")
		must(t, err)
		must(t, stream.Launch(add, blocks, threads, uint64(memory.Pointer()), uint64(memory.Pointer())))
	}
	must(t, stream.Download(host.Bytes(), memory, 0))
	must(t, stream.Synchronize())
	if want := bytes.Repeat([]byte{107, 0, 0, 0}, threads*blocks); !bytes.Equal(host.Bytes(), want) {
		t.Errorf("%v, want %v", host.Bytes(), want)
	}
}

// TestLaunchAddress: the address is in the driver, not in this program's table of calls.
func TestLaunchAddress(t *testing.T) {
	address := bound(t).LaunchAddress()
	maps, err := os.ReadFile("/proc/self/maps")
	must(t, err)
	for line := range strings.Lines(string(maps)) {
		var from, to uintptr
		if _, err := fmt.Sscanf(line, "%x-%x", &from, &to); err == nil && from <= address && address < to {
			if !strings.Contains(line, "libcuda.so") {
				t.Errorf("%#x is in %s", address, line)
			}
			return
		}
	}
	t.Errorf("%#x is nowhere", address)
}

// BenchmarkUpload measures the transfer of a batch to the GPU as the copier does it: queue, and poll until it is done.
func BenchmarkUpload(b *testing.B) {
	const size = 16 * 500 * 80 * 4
	c := bound(b)
	for name, pin := range map[string]func([]byte) (gpu.Registration, error){
		"registered":   c.Register,
		"unregistered": func([]byte) (gpu.Registration, error) { return io.NopCloser(nil), nil },
	} {
		b.Run(name, func(b *testing.B) {
			runtime.LockOSThread()
			must(b, c.Bind())
			batch, err := syscall.Mmap(-1, 0, size, syscall.PROT_READ|syscall.PROT_WRITE,
				syscall.MAP_SHARED|syscall.MAP_ANON|syscall.MAP_POPULATE)
			must(b, err)
			defer syscall.Munmap(batch)
			registration, err := pin(batch)
			must(b, err)
			defer registration.Close()
			stream, err := c.NewStream()
			must(b, err)
			defer stream.Close()
			memory, err := c.Allocate(size)
			must(b, err)
			defer memory.Close()
			b.SetBytes(size)
			var took []float64 // µs
			for b.Loop() {
				began := time.Now()
				must(b, stream.Upload(memory, 0, batch))
				for done := false; !done; { // polls like the copier: waking a sleeping thread takes about 30 µs
					done, err = stream.Idle()
					must(b, err)
				}
				took = append(took, float64(time.Since(began))/float64(time.Microsecond))
			}
			slices.Sort(took)
			b.ReportMetric(took[len(took)/2], "median-µs")
		})
	}
}

func must(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// bound opens the first GPU for a test and binds its thread permanently.
func bound(t testing.TB) gpu.Context {
	t.Helper()
	runtime.LockOSThread()
	c, err := cuda.Open(uuid(t))
	must(t, err)
	t.Cleanup(func() { must(t, c.Close()) })
	must(t, c.Bind())
	return c
}
