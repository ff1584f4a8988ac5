// Package gpustage lets a stage compute its batches on the data GPU, by an ONNX graph that ONNX Runtime runs in the plugin's process:
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
//		copy(gpustage.View[float32](call.Host("gain")), gains) // pinned memory of the call's own
//		return call.Run(gpustage.Bytes{"waveform": b.Bytes("waveform")}, gpustage.Bytes{"louder": b.Bytes("waveform")})
//	}
//
// All stages of a process share one Device: a CUDA context takes half a GiB of the card. One thread of the device queues all
// work, another waits for it, and up to Lanes batches are under way, so that one crosses while another one is computed and a third one
// is drawn by the CPU. The work of a batch costs a copy per tensor, of pinned memory and therefore asynchronous, and one run.
//
// The package itself has neither cgo nor ONNX Runtime, so that a plugin without CUDA is a static program. Package engine has the device,
// package datagpu opens it in a program that is built with the tag cuda. In one that is not it says so: a stage that was given a GPU never
// computes on the CPU instead.
package gpustage

import (
	"context"
	"unsafe"

	"github.com/xtts-host/xtts-host/shared/manifest"
	"github.com/xtts-host/xtts-host/shared/stage"
)

// Lanes is how many batches of a program are under way at most.
const Lanes = 3

// Opener is how a stage gets at its device: datagpu.Open, or what a test has in its place.
type Opener func(*stage.Config) (Device, error)

// Device is the GPU of the process. Its methods may be called from any goroutine.
type Device interface {
	// Load opens a graph and runs every bucket once, on zeros: what does not fit into the memory that the process may use is refused
	// here, with a hint, and so is a graph with a node that would run on the CPU. Graphs of one name are loaded once.
	Load(Graph) (Program, error)
	// Pin registers the memory that batches lie in, so that copies run at full speed and beside everything else. It is welcome again
	// for the same memory, which stays mapped until Close.
	Pin(memory []byte) error
	// Close gives the device back. The last of those who opened it closes it for good, behind their programs.
	Close() error
}

// Program is a loaded graph with its tables, and memory on the device for the batches of all buckets.
type Program interface {
	// Begin waits for a free lane. The error is that of ctx.
	Begin(ctx context.Context, bucket int) (Call, error)
	// Close is called when no call is under way. It may be called again.
	Close() error
}

// Bytes are tensors' elements, little-endian and row-major, by the names of a graph's inputs or outputs.
type Bytes map[string][]byte

// Call is one batch. It serves one goroutine, which ends it.
type Call interface {
	// Host returns the pinned memory of a tensor that the bucket has as Own, for the caller to write before Run, or to read behind it. It
	// holds anything, and is the caller's until End.
	Host(name string) []byte
	// Run copies the inputs to the device, computes, copies the outputs that are named back, and returns when they are there. The memory
	// must be that of Host or Pin. Inputs that are Own are taken from Host when in leaves them out, and outputs that are Own are always
	// written there. An error leaves anything in the outputs; nobody writes to them any more.
	Run(in, out Bytes) error
	End()
}

// Graph is what a stage wants computed.
type Graph struct {
	Name  string // stands in messages, and names the model
	Model []byte // the ONNX file
	// Tables are inputs that are the same for every batch and bucket.
	Tables  []Table
	Buckets []Bucket
}

// Bucket describes the batches of one shape. Every input of the graph stands in one of the lists, or in the graph's.
type Bucket struct {
	Rows int // of a batch
	// Together is how many rows are computed at a time, to bound the memory of intermediate values; 0 means all.
	Together        int
	Inputs, Outputs []Tensor
	Tables          []Table // of this bucket only
}

// Tensor is an input or output whose first axis is that of the rows.
type Tensor struct {
	Name  string
	DType manifest.DType
	Row   []int // shape of one row
	Own   bool  // lies in Call.Host
}

// RowBytes is the size of a row.
func (t Tensor) RowBytes() int {
	n := t.DType.Size()
	for _, d := range t.Row {
		n *= d
	}
	return n
}

// Table is an input that never changes.
type Table struct {
	Name  string
	DType manifest.DType
	Shape []int // empty for a scalar
	Data  []byte
}

// NewTable makes a table of elements. A shape that is left out is that of a scalar. Data is a view of the elements, not a copy.
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

// View returns the elements of a tensor's bytes, which are aligned to their size.
func View[T float32 | float64 | int32 | bool](b []byte) []T {
	var element T
	return unsafe.Slice((*T)(unsafe.Pointer(unsafe.SliceData(b))), len(b)/int(unsafe.Sizeof(element)))
}
