// Package ort runs ONNX graphs in place, on memory that the caller owns.
//
// A training step reads batches that another process wrote to shared memory and updates weights that must not move, so
// nothing is copied. A [Buffer] is mapped memory, a [Tensor] is a typed view of such memory, a [Binding] binds tensors
// to the inputs and outputs of a [Session], and [Binding.Run] computes without an allocation. All of them are created
// once, before the first step:
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
// The code that creates a value closes it. Every Close is idempotent. Closing a session closes its bindings. A binding
// keeps the tensors bound to it, so a tensor may be closed after it was bound, but its memory must stay mapped until
// the binding is closed or another tensor is bound. [Shutdown] refuses to unload the library while sessions, tensors,
// run options or arenas are open, and counts them, which makes leaks visible.
//
// The memory of a tensor must not be in the Go heap: ONNX Runtime keeps the pointer, which the rules of cgo forbid for
// Go memory. Use a [Buffer], another mapping, or C memory.
//
// # Kernels
//
// Nodes of a domain of this package's own launch kernels that the caller has compiled: see [Kernels].
//
// # The library
//
// [Init] loads ONNX Runtime as a shared library. scripts/fetch-ort.sh fetches the version that the tests use. Most of
// its interface comes through onnxruntime_go. The C code of this package makes the few calls that this module lacks
// through the library's function table, by position. slots.h lists them, and a test checks that list against the
// module's header.
//
// ONNX Runtime 1.29 sends telemetry unless ORT_DISABLE_TELEMETRY=1 is set before it is loaded. Init sets it.
package ort
