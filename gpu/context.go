package gpu

import "time"

// Context is one GPU in this process. Package cuda implements it for a real GPU, package gputest for tests without a
// GPU, whose streams take virtual time.
//
// A context is current on a thread, not on a goroutine: before calling Context, Stream, Event or Memory, a goroutine
// must lock itself to its thread and call Bind once. Calls may come from any number of such threads.
//
// Every value created here has one owner, who must close it before the Context. Close is idempotent.
type Context interface {
	Device() Device
	// Bind makes the context current on the calling thread. It also allows that thread to copy and wait while another
	// thread captures a CUDA graph, which would fail otherwise.
	Bind() error
	// MemInfo returns the free and the total memory of the whole card, in bytes.
	MemInfo() (free, total int, err error)
	// Allocate returns size bytes of zeroed GPU memory, aligned to 256 bytes. The error matches ErrOutOfMemory if the
	// card has not enough memory.
	Allocate(size int) (Memory, error)
	// Share returns a name by which other processes of the machine open a block that Allocate has returned.
	Share(m Memory) (Shared, error)
	// OpenShared returns the block of another process by its name. It may be on another GPU, which this one can reach:
	// copies and kernels of this GPU read and write it there. The other process must not close it before it is closed
	// here.
	OpenShared(name Shared, size int) (Memory, error)
	// AllocateHost returns size bytes of zeroed, pinned host memory. Copies from and to it run at full speed and
	// overlap with other work.
	AllocateHost(size int) (HostMemory, error)
	// Register pins memory that is already mapped, such as a ring. mem must not be in Go's heap, and must stay mapped
	// until the Registration is closed.
	Register(mem []byte) (Registration, error)
	NewStream() (Stream, error)
	NewEvent() (Event, error)
	// Synchronize returns when all queued work is done, also that of streams that libraries have made.
	Synchronize() error
	// NewModule loads compiled kernels: a cubin for this card (package nvrtc), or PTX, which the driver compiles. The
	// error matches ErrNoKernel if the driver cannot use it on this card.
	NewModule(image []byte) (Module, error)
	// LaunchAddress returns the address of the driver's C function cuLaunchKernel, for libraries that launch kernels.
	LaunchAddress() uintptr
	// CooperativeLaunchAddress is that of cuLaunchCooperativeKernel, which fails if not all blocks can run at the same
	// time.
	CooperativeLaunchAddress() uintptr
	Close() error
}

// Shared is the name of a block for other processes: CUDA's CUipcMemHandle.
type Shared [64]byte

// Memory is a block of GPU memory.
type Memory interface {
	// Pointer returns the GPU address of the block (CUdeviceptr).
	Pointer() uintptr
	Size() int
	Close() error
}

// HostMemory is pinned host memory.
type HostMemory interface {
	Bytes() []byte // nil after Close
	Close() error
}

// Registration is memory that Context.Register has pinned.
type Registration interface{ Close() error }

// Stream is a queue of work that the GPU executes in order, concurrently with other streams. Calls return when the work
// is queued, not when it is done. The caller must keep the memory until the work is done. An error may belong to work
// that was queued earlier.
type Stream interface {
	// Pointer returns the CUstream, for libraries that queue their own work.
	Pointer() uintptr
	// Upload copies src, which must be pinned, to dst at an offset in bytes. Download copies in the other direction.
	Upload(dst Memory, offset int, src []byte) error
	Download(dst []byte, src Memory, offset int) error
	// Copy copies size bytes within the GPU.
	Copy(dst Memory, dstOffset int, src Memory, srcOffset, size int) error
	// Clear sets size bytes to zero.
	Clear(dst Memory, offset, size int) error
	// Launch runs a kernel in blocks of threads. The arguments are the kernel's, in its order: addresses
	// (Memory.Pointer) and numbers, which occupy the low bytes. They are not checked.
	Launch(k Kernel, blocks, threads int, arguments ...uint64) error
	// Record makes e happen when the work queued so far is done.
	Record(e Event) error
	// Wait delays the work queued from now on until the last recorded point of e has happened.
	Wait(e Event) error
	// Idle reports whether all queued work is done.
	Idle() (bool, error)
	// Synchronize returns when all queued work is done.
	Synchronize() error
	Close() error
}

// Event is a point in a stream's work. Before its first Record it has happened.
type Event interface {
	// Synchronize returns when the last recorded point has happened.
	Synchronize() error
	// Happened reports whether it has.
	Happened() (bool, error)
	// Since returns the GPU time from an earlier event to this one. Both must have happened.
	Since(earlier Event) (time.Duration, error)
	Close() error
}

// Module is a set of kernels on a GPU.
type Module interface {
	// Kernel returns the kernel of that name, which lasts as long as the module.
	Kernel(name string) (Kernel, error)
	Close() error
}

// Kernel is a function that a GPU runs.
type Kernel interface {
	// Pointer returns the CUfunction, for libraries that launch it.
	Pointer() uintptr
	// SetShared lets launches ask for so many bytes of shared memory, apart from what the kernel declares. Without it,
	// the limit is 48 KiB, together with what it declares.
	SetShared(bytes int) error
}
