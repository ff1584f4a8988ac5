package gpu

import "time"

// Context is one GPU as this process works on it. Package cuda has the real one, package gputest one for tests without a GPU,
// whose streams take virtual time.
//
// A context is current on a thread, not on a goroutine: whoever calls Context, Stream, Event or Memory has locked its goroutine
// to its thread and called Bind on it once. Apart from that, calls may come from any number of threads.
//
// Every value made here has one owner, who closes it before the Context; Close is idempotent.
type Context interface {
	Device() Device
	// Bind makes the context current on the calling thread, and lets that thread copy and wait while another one captures a CUDA
	// graph, which would fail otherwise.
	Bind() error
	// MemInfo returns the bytes of the whole card that are free, and all it has.
	MemInfo() (free, total int, err error)
	// Allocate returns size bytes of zeroed memory on the GPU, aligned to 256 bytes. The error matches ErrOutOfMemory when
	// the card has no room.
	Allocate(size int) (Memory, error)
	// AllocateHost returns size bytes of zeroed memory of the machine that copies run from and to at full speed, beside
	// everything else.
	AllocateHost(size int) (HostMemory, error)
	// Register gives memory that is mapped already, such as a ring, the same property. mem must not lie in Go's heap and stays
	// mapped until the Registration is closed.
	Register(mem []byte) (Registration, error)
	NewStream() (Stream, error)
	NewEvent() (Event, error)
	// NewKernel has the driver compile PTX, and returns the function of that name in it. The error matches ErrNoKernel when the driver
	// cannot do that for this card.
	NewKernel(ptx, name string) (Kernel, error)
	Close() error
}

// Memory is a block on the GPU.
type Memory interface {
	// Pointer is the block's address on the GPU (CUdeviceptr).
	Pointer() uintptr
	Size() int
	Close() error
}

// HostMemory is pinned memory of the machine.
type HostMemory interface {
	Bytes() []byte // nil after Close
	Close() error
}

// Registration is what Context.Register has pinned.
type Registration interface{ Close() error }

// Stream is a queue of work that the GPU does in order, beside that of other streams. Its calls return when the work is queued,
// not when it is done; the memory they name stays the caller's to keep until then. An error may be that of work queued earlier.
type Stream interface {
	// Pointer is the CUstream, for libraries that queue work of their own.
	Pointer() uintptr
	// Upload copies src, which must be pinned, to dst at an offset in bytes. Download goes the other way.
	Upload(dst Memory, offset int, src []byte) error
	Download(dst []byte, src Memory, offset int) error
	// Copy copies size bytes within the GPU.
	Copy(dst Memory, dstOffset int, src Memory, srcOffset, size int) error
	// Clear fills size bytes with zero.
	Clear(dst Memory, offset, size int) error
	// Launch runs a kernel in blocks of threads. The arguments are the kernel's, in its order: addresses (Memory.Pointer) and numbers, which
	// lie in the low bytes. Nobody checks that they are right.
	Launch(k Kernel, blocks, threads int, arguments ...uint64) error
	// Record lets e happen when the work queued so far is done.
	Record(e Event) error
	// Wait holds back the work queued from now on until what was recorded last in e has happened.
	Wait(e Event) error
	// Idle reports whether all queued work is done.
	Idle() (bool, error)
	// Synchronize returns when all queued work is done.
	Synchronize() error
	Close() error
}

// Event is a point in a stream's work. Before its first Record it counts as happened.
type Event interface {
	// Synchronize returns when what was recorded last has happened.
	Synchronize() error
	// Happened reports whether it has.
	Happened() (bool, error)
	// Since returns the time on the GPU from an earlier event to this one. Both have happened.
	Since(earlier Event) (time.Duration, error)
	Close() error
}

// Kernel is a function that a GPU runs.
type Kernel interface{ Close() error }
