// Package ort runs ONNX graphs in place, over memory that the caller owns.
//
// A training step reads batches that another process wrote into shared memory and updates weights that
// must not move. So nothing is copied on the way: a [Buffer] is a piece of mapped memory, a [Tensor] is a
// typed view of such memory, a [Binding] ties the tensors to the inputs and outputs of a [Session], and
// [Binding.Run] computes, without an allocation. All of it is made once, before the first step:
//
//	if err := ort.Init(ort.Options{}); err != nil {
//		return err
//	}
//	defer ort.Shutdown()
//
//	s, err := ort.NewSession(ort.SessionConfig{Path: "training_model.onnx", Threads: 4})
//	// ...
//	buf, err := ort.NewBuffer(4 << 20)
//	x, err := ort.NewTensor(buf.Bytes()[:64], manifest.F32, []int{4, 4})
//	// ...
//	b, err := s.NewBinding()
//	b.BindInput("x", x) // a failed bind is remembered: Run returns it
//	b.BindOutput("loss", loss)
//	for range steps {
//		ort.View[float32](x.Bytes())[0] = 41 // new data, in place
//		if err := b.Run(nil); err != nil {
//			return err
//		}
//	}
//
// # Ownership
//
// Whoever makes a value closes it; every Close may be called again. Closing a session closes its bindings.
// A binding holds the tensors bound to it, so a tensor may be closed once it is bound, but its memory must
// stay mapped until the binding is closed or bound to something else. [Shutdown] refuses to unload while
// sessions, tensors or run options are open, and counts them, which makes leaks visible.
//
// Memory under a tensor must not lie in the Go heap: ONNX Runtime keeps the pointer, which the rules of
// cgo forbid for Go memory. Use a [Buffer], another mapping, or C memory.
//
// # The library
//
// ONNX Runtime is a shared library that is loaded by [Init]; scripts/fetch-ort.sh fetches the version that
// the tests run with. Most of its interface comes through onnxruntime_go. A few calls that module lacks
// are made from api.go through the library's function table, by position; slots.h lists them, and a test
// holds that list against the module's own header.
//
// ONNX Runtime 1.29 sends telemetry unless ORT_DISABLE_TELEMETRY=1 is set before it is loaded. Init sets it.
package ort
