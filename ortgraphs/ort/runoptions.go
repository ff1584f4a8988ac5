package ort

import (
	"fmt"
	"unsafe"

	onnx "github.com/yalue/onnxruntime_go"
)

// RunOptions change and end runs. One value may be used for many runs, also concurrently.
type RunOptions struct{ options *onnx.RunOptions }

// NewRunOptions creates options that change nothing.
func NewRunOptions() (*RunOptions, error) {
	if err := retain(runOptionsKind); err != nil {
		return nil, fmt.Errorf("run options: %w", err)
	}
	o, err := onnx.NewRunOptions()
	if err != nil {
		release(runOptionsKind)
		return nil, fmt.Errorf("run options: %w", reclassify(err))
	}
	return &RunOptions{options: o}, nil
}

// pointer reads the C options from onnxruntime_go's struct, whose only field they are. layout_test.go checks that.
func (o *RunOptions) pointer() *cRunOptions {
	if o.options == nil {
		return nil
	}
	return *(**cRunOptions)(unsafe.Pointer(o.options))
}

// AddConfig sets an entry of ONNX Runtime's run configuration, such as "gpu_graph_id". An unknown key has no effect; a
// wrong value makes Run fail. Do not call it during a run.
func (o *RunOptions) AddConfig(key, value string) error {
	return o.call("add "+key+"="+value, func() error { return o.options.AddRunConfigEntry(key, value) })
}

// Terminate makes the runs in flight with these options end with [ErrTerminated] soon, between two operators. Call it
// from another goroutine. Later runs fail in the same way until ClearTerminate.
func (o *RunOptions) Terminate() error {
	return o.call("terminate", func() error { return o.options.Terminate() })
}

// ClearTerminate makes the options usable again after Terminate.
func (o *RunOptions) ClearTerminate() error {
	return o.call("clear terminate", func() error { return o.options.UnsetTerminate() })
}

func (o *RunOptions) call(what string, f func() error) error {
	if o.options == nil {
		return fmt.Errorf("run options: %s: %w", what, ErrClosed)
	}
	if err := f(); err != nil {
		return fmt.Errorf("run options: %s: %w", what, reclassify(err))
	}
	return nil
}

// Close releases the options. No run may be using them.
func (o *RunOptions) Close() error {
	if o.options == nil {
		return nil
	}
	o.options.Destroy() // never fails
	o.options = nil
	release(runOptionsKind)
	return nil
}
