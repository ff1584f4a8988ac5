package main

import (
	"cmp"
	"context"
	"os"
	"strconv"
	"sync"

	onnx "github.com/yalue/onnxruntime_go"

	"github.com/xtts-host/xtts-host/shared/stage"
)

// lowpass runs lowpass.onnx, which is in the plugin's folder, with the ONNX Runtime of the host.
type lowpass struct {
	session *onnx.DynamicAdvancedSession
	alone   sync.Mutex // one batch at a time has room on the GPU
}

// Configure opens the graph, and runs each bucket once: what a GPU lacks, it lacks before the first step.
func (l *lowpass) Configure(_ context.Context, cfg *stage.Config) error {
	if !onnx.IsInitialized() { // by another instance of the stage
		onnx.SetSharedLibraryPath(cmp.Or(os.Getenv("XTTS_HOST_ORT_LIB"), "libonnxruntime.so"))
		if err := onnx.InitializeEnvironment(); err != nil {
			return err
		}
	}
	options, err := onnx.NewSessionOptions()
	if err != nil {
		return err
	}
	defer options.Destroy()
	if cfg.Device != "" {
		if err := onGPU(options, cfg.MemoryLimit); err != nil {
			return err
		}
	}
	l.session, err = onnx.NewDynamicAdvancedSession("lowpass.onnx", []string{"x", "wet"}, []string{"y"}, options)
	if err != nil {
		return err
	}
	for bucket := range cfg.Buckets() {
		shape := cfg.Shape(bucket, "waveform")
		if err := l.filter(make([]float32, shape[0]*shape[1]), make([]float32, shape[0])); err != nil {
			return err
		}
	}
	return nil
}

// onGPU has the session compute on CUDA's device 0, the only one that the process sees.
func onGPU(options *onnx.SessionOptions, limit uint64) error {
	cuda, err := onnx.NewCUDAProviderOptions()
	if err != nil {
		return err
	}
	defer cuda.Destroy()
	// f32, as on the CPU: TF32 rounds a row to 1e-4 of its norm.
	settings := map[string]string{"device_id": "0", "use_tf32": "0"}
	const context = 920 << 20 // bytes that CUDA and its libraries need for themselves
	if limit > context {
		settings["gpu_mem_limit"] = strconv.FormatUint(limit-context, 10)
	}
	if err := cuda.Update(settings); err != nil {
		return err
	}
	return options.AppendExecutionProviderCUDA(cuda)
}

// Process draws how much of the filter each row gets, on the CPU: the same on either device.
func (l *lowpass) Process(_ context.Context, b *stage.Batch) error {
	wave, lengths, width := b.Float32("waveform"), b.Int32("waveform_lengths"), b.Shape("waveform")[1]
	wet := make([]float32, len(lengths))
	filtered := make([]float32, len(wave)) // without the padding, which the filter would take for sound
	for row, n := range lengths {
		if n > 0 {
			wet[row] = float32(b.Rand(row).Float64())
			copy(filtered[row*width:][:n], wave[row*width:])
		}
	}
	if err := l.filter(filtered, wet); err != nil {
		return err
	}
	for row, n := range lengths {
		copy(wave[row*width:][:n], filtered[row*width:])
	}
	return nil
}

// filter filters rows in place. It returns when they are in the memory of the CPU again.
func (l *lowpass) filter(wave, wet []float32) error {
	rows := int64(len(wet))
	x, err := onnx.NewTensor(onnx.NewShape(rows, 1, int64(len(wave))/rows), wave)
	if err != nil {
		return err
	}
	defer x.Destroy()
	amount, err := onnx.NewTensor(onnx.NewShape(rows, 1, 1), wet)
	if err != nil {
		return err
	}
	defer amount.Destroy()
	out := []onnx.Value{nil} // ONNX Runtime makes it
	l.alone.Lock()
	defer l.alone.Unlock()
	if err := l.session.Run([]onnx.Value{x, amount}, out); err != nil {
		return err
	}
	defer out[0].Destroy()
	copy(wave, out[0].(*onnx.Tensor[float32]).GetData())
	return nil
}
