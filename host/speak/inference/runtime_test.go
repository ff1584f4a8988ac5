package inference

import (
	"context"
	"math"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"testing"

	"github.com/xtts-host/xtts-host/gpu/gputest"
	"github.com/xtts-host/xtts-host/host/speak/synthesize/synthesizetest"
	"github.com/xtts-host/xtts-host/host/train"
	"github.com/xtts-host/xtts-host/host/train/device"
	"github.com/xtts-host/xtts-host/ortgraphs/ort"
	"github.com/xtts-host/xtts-host/ortgraphs/ort/orttest"
	"github.com/xtts-host/xtts-host/ortgraphs/variant"
	"github.com/xtts-host/xtts-host/shared/manifest"
)

func TestMain(m *testing.M) { os.Exit(orttest.Run(m)) }

// speaking opens a runtime with the bundle of synthesizetest, or a variant.
func speaking(t *testing.T, c Config, changes ...variant.Change) *Runtime {
	t.Helper()
	folder := filepath.Join(t.TempDir(), "bundle")
	if err := synthesizetest.Write(
		folder, "../../../ortgraphs/testdata/pico", "../../data/dataset/testdata/voicebpe/tokenizer.json",
	); err != nil {
		t.Fatal(err)
	}
	var err error
	if c.Bundle, err = variant.Rewrite(folder, folder+".variant", changes...); err != nil {
		t.Fatal(err)
	}
	weights, err := c.Bundle.Weights()
	if err != nil {
		t.Fatal(err)
	}
	c.Weights, c.Threads = weights, 1
	r := New(c)
	t.Cleanup(func() {
		if err := r.Close(); err != nil {
			t.Error(err)
		}
		weights.Close()
	})
	return r
}

// run runs a graph with a parameter of the bundle and one with weights of its own, and gives the first's cache to the
// next run.
func run(t *testing.T, r *Runtime) (latents, wave []float32) {
	t.Helper()
	step, err := r.Open(t.Context(), "step")
	if err != nil {
		t.Fatal(err)
	}
	vocoder, err := r.Open(t.Context(), "vocoder")
	if err != nil {
		t.Fatal(err)
	}
	values := Values{}
	must := func(v *Value, err error) *Value {
		if err != nil {
			t.Fatal(err)
		}
		return v
	}
	values["past_keys"] = must(Floats([]float32{2, 3}, 1, 2))
	for i := range int32(3) {
		values["code"], values["position"] = must(Integers([]int32{1}, 1)), must(Integers([]int32{i}, 1))
		results, err := step.Run(values, "latent")
		if err != nil {
			t.Fatal(err)
		}
		latents = append(latents, results["latent"].Floats()...)
		values.Close()
		values = Values{"past_keys": results["keys"]}
		delete(results, "keys")
		results.Close()
	}
	values["latents"], values["speaker"] = must(Floats(latents, 1, 3, 2)), must(Floats([]float32{1, 9}, 1, 2))
	defer values.Close()
	results, err := vocoder.Run(values, "waveform")
	if err != nil {
		t.Fatal(err)
	}
	defer results.Close()
	return latents, slices.Clone(results["waveform"].Floats())
}

// On a fake GPU, whose memory the CPU computes with, weights come through pinned memory that is smaller than they are.
func TestDeviceChangesNoBit(t *testing.T) {
	latents, wave := run(t, speaking(t, onCPU(t)))
	// Sums of 6, 8 and 11 keys modulo 7, and the number of keys.
	bias := latents[0] - 6
	near := func(x, want float32) bool { return math.Abs(float64(x-bias-want)) < 1e-5 }
	if len(wave) != 12 || latents[1] != 3 || !near(latents[2], 1) || !near(latents[4], 4) || latents[5] != 5 {
		t.Errorf("latents %v, waveform %v", latents, wave)
	}
	if again, same := run(t, speaking(t, onGPU(t))); !slices.Equal(again, latents) || !slices.Equal(same, wave) {
		t.Errorf("on a GPU %v and %v, on the CPU %v and %v", again, same, latents, wave)
	}
}

func onCPU(*testing.T) Config { return Config{Device: new(device.Device)} }

// onGPU is a fake GPU, with pinned memory that is smaller than tensors.
func onGPU(t *testing.T) Config {
	runtime.LockOSThread() // for the test's goroutine, which ends with it
	card := gputest.New(gputest.Config{Misuse: func(err error) { t.Error(err) }})
	if err := card.Bind(); err != nil {
		t.Fatal(err)
	}
	stream, err := card.NewStream()
	if err != nil {
		t.Fatal(err)
	}
	staging, err := card.AllocateHost(3)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { staging.Close(); stream.Close(); card.Close() }) // reports what is still open
	return Config{
		Device: &device.Device{Device: train.Device{Context: card, Compute: stream}}, Staging: staging.Bytes(),
	}
}

// changing are weights with one that changes, and for which there are others on the device, which no graph may take.
type changing struct {
	Weights
	name  string
	value float32
}

func (w *changing) Read(name string, dst []byte) error {
	if name != w.name {
		return w.Weights.Read(name, dst)
	}
	for i := range ort.View[float32](dst) {
		ort.View[float32](dst)[i] = w.value
	}
	return nil
}

// TestRefresh: weights with adapters follow the present ones from one Refresh to the next.
func TestRefresh(t *testing.T) {
	for name, on := range map[string]func(*testing.T) Config{"CPU": onCPU, "GPU": onGPU} {
		t.Run(name, func(t *testing.T) {
			plain := speaking(t, onCPU(t), variant.Adapter("stop_head.weight"))
			w := &changing{Weights: plain.Config.Weights, name: "stop_head.lora_B.weight"}
			c := on(t)
			c.Bundle, c.Weights, c.Threads = plain.Bundle, w, 1
			c.Tensors = map[string]*ort.Tensor{"stop_head.weight": nil}
			r := New(c)
			defer r.Close()
			// A has the rank 2 and is 0.5 in 16 columns, and the scale is 3.
			first, _ := run(t, r)
			for _, value := range []float32{0.25, -1, 0} {
				w.value = value
				if err := r.Refresh(t.Context()); err != nil {
					t.Fatal(err)
				}
				latents, _ := run(t, r)
				if moved := latents[0] - first[0]; math.Abs(float64(moved-3*2*0.5*16*value)) > 1e-4 {
					t.Errorf("with %g in B, the latent has moved by %g", value, moved)
				}
			}
			w.value = 1
			ctx, cancel := context.WithCancelCause(t.Context())
			cancel(os.ErrDeadlineExceeded)
			if err := r.Refresh(ctx); err != os.ErrDeadlineExceeded {
				t.Errorf("interrupted: %v", err)
			}
		})
	}
}

// TestCopiedBytes: beside the weights that are on the GPU already, a runtime takes memory for what it says.
func TestCopiedBytes(t *testing.T) {
	for want, changes := range map[int][]variant.Change{4: nil, 4 + 4*16: {variant.Adapter("stop_head.weight")}} {
		c := onGPU(t)
		r := speaking(t, c, changes...)
		r.Tensors = map[string]*ort.Tensor{}
		for name, shape := range r.Bundle.Stored() {
			size := 4
			for _, n := range shape {
				size *= n
			}
			memory, err := c.Device.Context.Allocate(size)
			if err != nil {
				t.Fatal(err)
			}
			if r.Tensors[name], err = ort.NewTensorAt(
				ort.Host, memory.Pointer(), size, manifest.F32, shape,
			); err != nil {
				t.Fatal(err)
			}
			t.Cleanup(func() { r.Tensors[name].Close(); memory.Close() })
		}
		before, _, _ := c.Device.Context.MemInfo()
		run(t, r)
		after, _, _ := c.Device.Context.MemInfo()
		got, err := CopiedBytes(r.Bundle, func(graph string) bool { return graph == "step" || graph == "vocoder" })
		if err != nil || got != want || before-after != want {
			t.Errorf("%d bytes are announced and %d taken, want %d, %v", got, before-after, want, err)
		}
	}
}

func TestRefusals(t *testing.T) {
	r := speaking(t, Config{Device: new(device.Device)})
	if _, err := r.Open(t.Context(), "singing"); err == nil ||
		!strings.Contains(err.Error(), "has no inference graph singing") {
		t.Error(err)
	}
	ctx, cancel := context.WithCancelCause(t.Context())
	cancel(os.ErrDeadlineExceeded)
	if _, err := r.Open(ctx, "vocoder"); err != os.ErrDeadlineExceeded {
		t.Errorf("interrupted: %v", err)
	}
	step, err := r.Open(t.Context(), "step")
	if err != nil {
		t.Fatal(err)
	}
	if _, err := step.Run(Values{}); err == nil || err.Error() != `step: no value for its input "code"` {
		t.Error(err)
	}
}
