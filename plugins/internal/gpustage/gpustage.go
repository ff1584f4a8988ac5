// Package gpustage lets a stage compute its batches on the data GPU, with an ONNX graph that ONNX Runtime runs in the
// plugin process:
//
//	func (s *Stage) Configure(_ context.Context, cfg *stage.Config) error {
//		if cfg.Device == "" { ... } // on the CPU
//		device, err := datagpu.Open(cfg)
//		// ...
//		s.program, err = device.Load(gpustage.Graph{Name: "gain", Model: onnx, Buckets: buckets})
//	}
//
//	func (s *Stage) Attach(memory []byte) error { return s.device.Pin(memory) } // stage.Attacher
//
//	func (s *Stage) Process(ctx context.Context, b *stage.Batch) error {
//		call, err := s.program.Begin(ctx, b.Bucket())
//		if err != nil {
//			return err
//		}
//		defer call.End()
//		copy(gpustage.View[float32](call.Host("gain")), gains) // pinned memory of the call
//		return call.Run(gpustage.Bytes{"waveform": b.Bytes("waveform")}, gpustage.Bytes{"louder": b.Bytes("waveform")})
//	}
//
// All stages of a process share one Device, because a CUDA context takes about half a GiB of GPU memory. One thread of
// the device queues all work, another waits for it. Up to Lanes batches are in flight, so the transfer of one, the
// computation of another and the draws of a third on the CPU overlap. A batch costs one asynchronous transfer per
// tensor, from or to pinned memory, and one run.
//
// The package itself uses neither cgo nor ONNX Runtime. Package engine implements the device, and package datagpu opens
// it. A stage that is given a GPU never falls back to the CPU.
package gpustage

import (
	"context"
	"unsafe"

	"github.com/xtts-host/xtts-host/shared/manifest"
	"github.com/xtts-host/xtts-host/shared/stage"
)

// Lanes is the maximum number of batches of a program in flight.
const Lanes = 3

// Opener opens the device of a stage: datagpu.Open, or a replacement in tests.
type Opener func(*stage.Config) (Device, error)

// Device is the GPU of the process. Its methods are safe for concurrent use.
type Device interface {
	// Load loads a graph and runs every bucket once, in their order, on zeros or on [Tensor.Trial]. It fails, with a
	// hint, if the process's memory limit is too small, and, unless the graph allows it, if a node would run on the
	// CPU. Programs with the same name and model share a session.
	Load(Graph) (Program, error)
	// Pin registers the memory of all batches, so transfers run at full speed and overlap with other work. It may be
	// called again for the same memory, which must stay mapped until Close.
	Pin(memory []byte) error
	// Used returns the GPU memory of the process, in bytes, as it counts towards the limit: what was allocated, and
	// what CUDA and its libraries are expected to take.
	Used() (int, error)
	// Close releases the device. The last opener's Close closes it. All programs of the opener must be closed before.
	Close() error
}

// Program is a loaded graph with its tables, and device memory for the batches of all buckets.
type Program interface {
	// Begin waits for a free lane. The error is that of ctx.
	Begin(ctx context.Context, bucket int) (Call, error)
	// Close must not be called while a call is in flight. It is idempotent.
	Close() error
}

// Bytes maps the names of a graph's inputs or outputs to the elements of the tensors, little-endian and row-major.
type Bytes map[string][]byte

// Call is one batch. One goroutine uses it and must call End.
type Call interface {
	// Host returns the pinned memory of a tensor that the bucket lists as Own. The caller writes it before Run, or
	// reads it after Run. Its initial content is undefined. The caller owns it until End.
	Host(name string) []byte
	// Run copies the inputs to the device, computes, copies the named outputs back, and returns when they have arrived.
	// The memory must come from Host or be registered with Pin. An Own input that is missing in in is taken from Host.
	// Own outputs are always written to Host. After an error, the content of the outputs is undefined, but no one
	// writes to them any more.
	Run(in, out Bytes) error
	End()
}

// Graph is a computation for a stage.
type Graph struct {
	Name  string // used in messages
	Model []byte // the ONNX file
	// OnCPU lets ONNX Runtime place nodes on the CPU, such as the shape arithmetic of a graph that was exported for any
	// sizes. A run then ends when its results are there, so the runs of such a graph do not overlap.
	OnCPU bool
	// Tables are inputs that are the same for every batch and bucket.
	Tables  []Table
	Buckets []Bucket
}

// Bucket describes the batches of one shape. Every input of the graph is listed in one of these lists or in the graph's
// Tables.
type Bucket struct {
	Rows int // of a batch
	// Together is the number of rows that are computed at a time, which bounds the memory of intermediate values; 0
	// means all.
	Together        int
	Inputs, Outputs []Tensor
	Tables          []Table // only of this bucket
}

// Tensor is an input or output whose first axis is the row.
type Tensor struct {
	Name  string
	DType manifest.DType
	Row   []int // shape of one row
	Own   bool  // it is in Call.Host
	// Trial is the content of each row in the trial run, of an Own input; nil means zeros.
	Trial []byte
}

// RowBytes is the size of a row.
func (t Tensor) RowBytes() int {
	n := t.DType.Size()
	for _, d := range t.Row {
		n *= d
	}
	return n
}

// Table is a constant input.
type Table struct {
	Name  string
	DType manifest.DType
	Shape []int // empty for a scalar
	Data  []byte
}

// NewTable returns a table of the elements. Without a shape it is a scalar. Data is a view of the elements, not a copy.
func NewTable[T float32 | float64 | int32 | bool](name string, elements []T, shape ...int) Table {
	t := Table{Name: name, Shape: shape}
	switch any(elements).(type) {
	case []float32:
		t.DType = manifest.F32
	case []float64:
		t.DType = manifest.F64
	case []int32:
		t.DType = manifest.I32
	case []bool:
		t.DType = manifest.Bool
	}
	t.Data = unsafe.Slice((*byte)(unsafe.Pointer(unsafe.SliceData(elements))), len(elements)*t.DType.Size())
	return t
}

// View returns the elements of a tensor's bytes, which must be aligned to the element size.
func View[T float32 | float64 | int32 | bool](b []byte) []T {
	var element T
	return unsafe.Slice((*T)(unsafe.Pointer(unsafe.SliceData(b))), len(b)/int(unsafe.Sizeof(element)))
}
