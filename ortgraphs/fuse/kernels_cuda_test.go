package fuse_test

import (
	"bytes"
	"cmp"
	"os"
	"runtime"
	"testing"

	"github.com/xtts-host/xtts-host/gpu"
	"github.com/xtts-host/xtts-host/gpu/cuda"
	"github.com/xtts-host/xtts-host/gpu/nvrtc"
	"github.com/xtts-host/xtts-host/ortgraphs/fuse/cudac"
	"github.com/xtts-host/xtts-host/ortgraphs/fuse/cudac/cudactest"
	"github.com/xtts-host/xtts-host/ortgraphs/ort"
	"github.com/xtts-host/xtts-host/ortgraphs/shapes"
)

// card runs programs on the GPU whose UUID the environment names.
type card struct {
	gpu.Context
	stream   gpu.Stream
	compiler *nvrtc.Compiler
	modules  []gpu.Module
}

// newCard opens the GPU for a test, or skips the test where the environment names none. NVRTC is next to ONNX
// Runtime, or where XTTS_HOST_TEST_NVRTC says.
func newCard(t *testing.T) *card {
	t.Helper()
	uuid := os.Getenv("XTTS_HOST_TEST_GPU")
	if uuid == "" {
		t.Skip("XTTS_HOST_TEST_GPU names no GPU")
	}
	runtime.LockOSThread() // for the test's goroutine, which ends with it
	c := &card{}
	var err error
	c.compiler, err = nvrtc.Open(cmp.Or(os.Getenv("XTTS_HOST_TEST_NVRTC"), ort.Library()))
	must(t, err)
	c.Context, err = cuda.Open(uuid)
	must(t, err)
	t.Cleanup(func() { must(t, c.Context.Close()) })
	must(t, c.Bind())
	c.stream, err = c.NewStream()
	must(t, err)
	t.Cleanup(func() { must(t, c.stream.Close()) })
	return c
}

// onFakeDriver reports whether the GPU is of the fake driver, on which the CPU computes: scripts/cuda-fake.sh. It
// skips a test without a GPU.
func onFakeDriver(t *testing.T) bool { return newCard(t).Device().Name == "Fake card" }

func must(t *testing.T, err error) {
	if err != nil {
		t.Helper()
		t.Fatal(err)
	}
}

func (c *card) compile(t *testing.T, sources []cudactest.Source) {
	t.Helper()
	var texts []string
	for _, s := range sources {
		texts = append(texts, cudac.Prelude+s.Text)
	}
	compiled, err := c.compiler.Compile(t.Context(),
		nvrtc.Options{Capability: c.Device().Capability, Flags: cudac.Options}, texts)
	must(t, err)
	for i, image := range compiled.Images {
		must(t, compiled.Refused[i])
		m, err := c.NewModule(image)
		must(t, err)
		t.Cleanup(func() { must(t, m.Close()) })
		c.modules = append(c.modules, m)
	}
}

func (c *card) run(t *testing.T, source int, launches []cudac.Launch, buffers [][]byte) {
	t.Helper()
	var blocks []gpu.Memory
	var first, again [][]byte
	size := 1
	for _, b := range buffers {
		block, err := c.Allocate(cap(b))
		must(t, err)
		defer block.Close()
		blocks, size = append(blocks, block), max(size, cap(b))
		first, again = append(first, b[:cap(b)]), append(again, bytes.Clone(b[:cap(b)]))
	}
	stage, err := c.AllocateHost(size)
	must(t, err)
	defer stage.Close()
	c.runOn(t, source, launches, blocks, first, stage.Bytes())
	c.runOn(t, source, launches, blocks, again, stage.Bytes())
	for i := range first {
		if !bytes.Equal(first[i], again[i]) {
			t.Errorf("%s: other bits in the second run", launches[0].Function)
		}
	}
}

// runOn runs the launches of a program on a GPU's memory with the contents of buffers, which it changes.
func (c *card) runOn(
	t *testing.T, source int, launches []cudac.Launch, blocks []gpu.Memory, buffers [][]byte, stage []byte,
) {
	t.Helper()
	for i, b := range buffers {
		copy(stage, b)
		must(t, c.stream.Upload(blocks[i], 0, stage[:len(b)]))
		must(t, c.stream.Synchronize())
	}
	for _, l := range launches {
		kernel, err := c.modules[source].Kernel(l.Function)
		must(t, err)
		if l.Shared > 0 {
			must(t, kernel.SetShared(l.Shared))
		}
		var pointers []uintptr
		for _, at := range l.Arguments {
			pointers = append(pointers, blocks[at].Pointer())
		}
		launch, by := cudactest.Launch, c.LaunchAddress()
		if l.Cooperative {
			launch, by = cudactest.CooperativeLaunch, c.CooperativeLaunchAddress()
		}
		must(t, launch(by, kernel.Pointer(), c.stream.Pointer(), l.Blocks, l.Threads, l.Shared, pointers))
	}
	must(t, c.stream.Synchronize())
	for i, b := range buffers {
		must(t, c.stream.Download(stage[:len(b)], blocks[i], 0))
		must(t, c.stream.Synchronize())
		copy(b, stage)
	}
}

// TestGPUKernels: on a GPU, programs that NVRTC has compiled compute what the interpreter computes, on memory that is
// NaN before, write nothing after it, and give the same bits again. The fake driver runs a few: its compiler takes a
// second for each.
func TestGPUKernels(t *testing.T) {
	small, wide := uint64(smallGraphs), uint64(wideGraphs)
	sizes := shapes.Sizes{"B": 3, "T_text": 17, "T_mel": 24, "T_ref_mel": 13}
	fake := onFakeDriver(t)
	if fake {
		small, wide = 1, 1
	}
	const exact, rounded = 2e-5, 2e-2 // sums have another order, and exponentials are approximations; results in bf16
	graph := func(file string) func(*testing.T, *kernels) {
		return func(t *testing.T, k *kernels) { k.training(t, file, sizes) }
	}
	for _, c := range []struct {
		name   string
		add    func(*testing.T, *kernels)
		within float64
	}{
		{"random", func(t *testing.T, k *kernels) { k.random(t, small, wide) }, exact},
		{"random bf16", func(t *testing.T, k *kernels) { k.randomShort(t, small, wide) }, rounded},
		{"attention", func(t *testing.T, k *kernels) { k.gradients = 0; k.attention(t) }, rounded},
		{"gradients in one block", func(t *testing.T, k *kernels) { k.gradients = 0; k.inOneBlock(t) }, rounded},
		{"recurrences", func(t *testing.T, k *kernels) { k.addRecurrences(t, 5, 8) }, exact},
		{"sums up to each element", func(t *testing.T, k *kernels) { k.cumulations(t, false, 40) }, 1e-6},
		{"steps at once", func(t *testing.T, k *kernels) { k.lifted(t, f32, 100); k.lifted(t, f64, 20) }, 5e-5},
		{"f64", func(t *testing.T, k *kernels) { k.doubles(t); k.cumulations(t, true, 40) }, 1e-13},
		{"sums", func(t *testing.T, k *kernels) { k.awaitedSums(t, false) }, exact},
		{"sums bf16", func(t *testing.T, k *kernels) { k.awaitedSums(t, true) }, rounded},
		{"depthwise", func(t *testing.T, k *kernels) { k.allDepthwise(t, false) }, exact},
		{"depthwise bf16", func(t *testing.T, k *kernels) { k.allDepthwise(t, true) }, rounded},
		{"gradients of few channels", func(t *testing.T, k *kernels) { k.narrowGradients(t, narrowForms...) }, rounded},
		{"pico", graph("../testdata/pico/training_model.onnx"), exact},
		{"multispeaker", graph("../builtin/myxtts-multispeaker/training_model.onnx"), exact},
		{"nano", graph("../builtin/myxtts-nano/training_model.onnx"), exact},
		{"nano bf16", graph("../builtin/myxtts-nano/training_model.bf16.onnx"), rounded},
	} {
		if fake && c.name != "random" {
			continue
		}
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			card := newCard(t)
			if c.name == "gradients in one block" && card.Device().Capability != 90 {
				t.Skip("the GPU does not multiply by warpgroups")
			}
			k := kernels{gradients: 0.5} // a wrong kernel differs by about 1
			c.add(t, &k)
			k.complete(t, 5)
			k.check(t, card, c.within)
		})
	}
}
