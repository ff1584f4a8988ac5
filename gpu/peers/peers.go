// Package peers lets the GPUs of one machine, each in a process of its own, write into each other's memory, and add up
// what has come:
//
//	w, err := peers.Open(peers.Config{Context: context, Rank: rank, Size: size, Bytes: n, Exchange: all})
//	...
//	// in each round, on a stream beside the computation:
//	err = w.Begin(aside)
//	err = w.Send(aside, gradients, from, at, size) // and more
//	err = w.Tell(aside)
//	// and on the stream that needs the sums, after all that:
//	err = w.Wait(compute)
//	err = w.Sum(compute, peers.Part{...}) // and more
//	err = w.Took(compute)
//
// All of it is queued and may be captured in a CUDA graph, which then is a round each time it runs. Copies between GPUs
// need no multiprocessors, unlike those of NCCL, so kernels that run beside them are not slowed down.
//
// # Bits
//
// A sum adds in the order of the ranks, in f32, and is rounded once: all ranks get the same bits, in every run, however
// the parts are divided.
package peers

import (
	"cmp"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"sync"
	"sync/atomic"
	"unsafe"

	"github.com/xtts-host/xtts-host/gpu"
	"github.com/xtts-host/xtts-host/gpu/kernels"
)

// Config describes a window.
type Config struct {
	// Context is the GPU of this rank, current on the calling thread.
	Context    gpu.Context
	Rank, Size int
	// Bytes is the room for what each other rank sends, the same on all ranks.
	Bytes int
	// Exchange gives each rank what all ranks have passed to it, by rank. All call it together.
	Exchange func(own []byte) (all [][]byte, err error)
}

// Window is the memory of this GPU into which the others write, with theirs as this one sees it. Its owner closes it
// after all work, when no rank will send any more. Abort may be called on any thread, all else on one that is bound to
// the context.
type Window struct {
	context    gpu.Context
	rank, size int
	stride     int
	memory     gpu.Memory
	others     []gpu.Memory // by place: in the order of the ranks, without this one
	mu         sync.Mutex   // guards stop, of which Abort knows no end
	stop       gpu.HostMemory
	module     gpu.Module
	kernels    map[string]gpu.Kernel
}

// The memory has a place for each other rank, and then these numbers, each kind with a cache line or more of its own.
const (
	numbers  = 4096 // bytes
	roundAt  = 0
	sentAt   = 512  // by place: the last round that the rank has sent completely
	takenAt  = 1024 // by place: the last round whose sums the rank has computed
	toSent   = 1536 // by place: the address of sent, for this rank, on the rank's GPU
	toTaken  = 2560
	maxRanks = 32 // of a machine: the threads of one block
)

// ErrApart matches the reasons why ranks have no window, such as GPUs that do not reach each other's memory.
var ErrApart = errors.New("the GPUs do not share memory")

// hello is what a rank tells the others of its window.
type hello struct {
	Name    []byte
	Bytes   int
	Problem string // why it has none
}

// Open makes a window on each rank of a machine, and tries it. All ranks call it together, and all get a window or
// none: then the error matches ErrApart, unless Exchange fails.
func Open(c Config) (*Window, error) {
	w := &Window{context: c.Context, rank: c.Rank, size: c.Size, stride: (c.Bytes + 255) / 256 * 256}
	reason, err := w.connect(c)
	if err == nil && reason == nil {
		return w, nil
	}
	if err == nil {
		err = fmt.Errorf("%w: %w", ErrApart, reason)
		err = errors.Join(err, w.leave())
		_, missing := c.Exchange(nil) // no rank frees what another one has open
		err = errors.Join(err, missing)
	}
	return nil, errors.Join(err, w.Close())
}

// leave closes the windows of the others.
func (w *Window) leave() (err error) {
	for _, m := range w.others {
		err = errors.Join(err, m.Close())
	}
	w.others = nil
	return err
}

// connect opens the windows of all ranks. reason says why this is impossible, on this rank or another.
func (w *Window) connect(c Config) (reason, err error) {
	own, problem := w.prepare(c)
	if problem != nil {
		own.Problem = problem.Error()
	}
	all, err := exchange[hello](c, own)
	if err != nil {
		return nil, err
	}
	for rank, h := range all {
		if rank != w.rank && problem == nil {
			problem = w.open(c, h)
		}
		if h.Problem != "" {
			problem = cmp.Or(problem, fmt.Errorf("rank %d: %s", rank, h.Problem))
		}
	}
	if problem == nil {
		problem = w.setNumbers()
	}
	if problem, err = w.agree(c, problem); problem != nil || err != nil {
		return problem, err
	}
	return w.agree(c, w.prove())
}

// agree returns a problem that this rank or another one has.
func (w *Window) agree(c Config, own error) (problem, err error) {
	text := ""
	if own != nil {
		text = own.Error()
	}
	all, err := exchange[string](c, text)
	if err != nil {
		return nil, err
	}
	for rank, text := range all {
		if text != "" && own == nil {
			own = fmt.Errorf("rank %d: %s", rank, text)
		}
	}
	return own, nil
}

// exchange exchanges values in JSON.
func exchange[T any](c Config, own T) ([]T, error) {
	data, err := json.Marshal(own)
	if err != nil {
		return nil, err
	}
	texts, err := c.Exchange(data)
	if err != nil {
		return nil, err
	}
	all := make([]T, len(texts))
	for i, text := range texts {
		if err := json.Unmarshal(text, &all[i]); err != nil {
			return nil, fmt.Errorf("rank %d: %w", i, err)
		}
	}
	return all, nil
}

// prepare allocates the memory of this rank and loads the kernels.
func (w *Window) prepare(c Config) (own hello, err error) {
	own.Bytes = c.Bytes
	if c.Size > maxRanks {
		return own, fmt.Errorf("%d ranks, at most %d are possible", c.Size, maxRanks)
	}
	if w.module, err = c.Context.NewModule(kernels.Peers); err != nil {
		return own, err
	}
	w.kernels = map[string]gpu.Kernel{}
	for _, name := range []string{"peers_begin", "peers_tell", "peers_wait", "peers_sum", "peers_sum_bf16"} {
		if w.kernels[name], err = w.module.Kernel(name); err != nil {
			return own, err
		}
	}
	if w.stop, err = c.Context.AllocateHost(4); err != nil {
		return own, err
	}
	if w.memory, err = c.Context.Allocate((c.Size-1)*w.stride + numbers); err != nil {
		return own, err
	}
	name, err := c.Context.Share(w.memory)
	own.Name = name[:]
	return own, err
}

// open opens the window of the next other rank.
func (w *Window) open(c Config, h hello) error {
	if h.Problem != "" {
		return errors.New(h.Problem)
	}
	if h.Bytes != c.Bytes {
		return fmt.Errorf("windows of %d and %d bytes", c.Bytes, h.Bytes)
	}
	m, err := c.Context.OpenShared(gpu.Shared(h.Name), w.memory.Size())
	if err == nil {
		w.others = append(w.others, m)
	}
	return err
}

// placeIn is the place of this rank in one of the other windows. Each window has places in the order of the ranks,
// without its own: this rank comes after those before it, and its own window is not among the others.
func (w *Window) placeIn(other int) int {
	if other < w.rank { // a window of a rank before this one
		return w.rank - 1
	}
	return w.rank
}

// at is the address of one of the numbers.
func (w *Window) at(offset int) uint64 {
	return uint64(w.memory.Pointer()) + uint64((w.size-1)*w.stride+offset)
}

// setNumbers writes where this rank's numbers are on the other GPUs.
func (w *Window) setNumbers() (err error) {
	staged, err := w.context.AllocateHost(numbers)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, staged.Close()) }()
	stream, err := w.context.NewStream()
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, stream.Close()) }()
	for i, m := range w.others {
		base := uint64(m.Pointer()) + uint64((w.size-1)*w.stride+4*w.placeIn(i))
		binary.LittleEndian.PutUint64(staged.Bytes()[toSent+8*i:], base+sentAt)
		binary.LittleEndian.PutUint64(staged.Bytes()[toTaken+8*i:], base+takenAt)
	}
	return errors.Join(stream.Upload(w.memory, (w.size-1)*w.stride, staged.Bytes()), stream.Synchronize())
}

// Begin queues the begin of a round: the wait until no other rank needs what the round before has sent.
func (w *Window) Begin(on gpu.Stream) error {
	return w.launch(on, "peers_begin", w.at(roundAt), w.at(takenAt), w.stopAt(), uint64(w.size-1))
}

// Send queues the copy of memory of this GPU to the place of this rank on every other GPU, at an offset there.
func (w *Window) Send(on gpu.Stream, from gpu.Memory, offset, at, size int) error {
	for i, m := range w.others {
		if err := on.Copy(m, w.placeIn(i)*w.stride+at, from, offset, size); err != nil {
			return err
		}
	}
	return nil
}

// Tell queues the message to the others that all of the round is sent.
func (w *Window) Tell(on gpu.Stream) error {
	return w.launch(on, "peers_tell", w.at(roundAt), w.at(toSent), w.stopAt(), uint64(w.size-1))
}

// Wait queues the wait until all others have sent theirs.
func (w *Window) Wait(on gpu.Stream) error {
	return w.launch(on, "peers_wait", w.at(roundAt), w.at(sentAt), w.stopAt(), uint64(w.size-1))
}

// Took queues the message to the others that the sums of the round are computed.
func (w *Window) Took(on gpu.Stream) error {
	return w.launch(on, "peers_tell", w.at(roundAt), w.at(toTaken), w.stopAt(), uint64(w.size-1))
}

// Part is memory of this GPU that becomes the sum of that of all ranks. The others have sent theirs to offset At.
type Part struct {
	Address  uint64 // aligned to 16 bytes
	Elements int    // a multiple of 4, in bf16 of 8
	BF16     bool   // otherwise f32
	At       int    // aligned to 16 bytes
	// Weight, unless 0, is the address of an f32 by which this rank's values are multiplied. Those of the others are at
	// WeightAt.
	Weight   uint64
	WeightAt int
	// Squares, unless 0, is the address of SumThreads values in f32. Their sum becomes that of the squares of the part,
	// which is in bf16.
	Squares uint64
}

// sumBlocks times blockThreads is enough to keep any GPU busy.
const sumBlocks, blockThreads = 2048, 256

// SumThreads is the largest number of threads of a sum.
const SumThreads = sumBlocks * blockThreads

// Sum queues the sum of a part.
func (w *Window) Sum(on gpu.Stream, p Part) error {
	received := uint64(w.memory.Pointer())
	arguments := []uint64{
		p.Address, received + uint64(p.At), p.Weight, received + uint64(p.WeightAt), uint64(w.stride), uint64(w.rank),
		uint64(w.size), uint64(p.Elements),
	}
	name, width := "peers_sum", 4
	if p.BF16 {
		name, width, arguments = "peers_sum_bf16", 8, append(arguments, p.Squares)
	}
	blocks := sumBlocks
	if p.Squares == 0 {
		blocks = min(blocks, (p.Elements/width+blockThreads-1)/blockThreads)
	}
	return on.Launch(w.kernels[name], blocks, blockThreads, arguments...)
}

// launch queues a kernel of one block.
func (w *Window) launch(on gpu.Stream, name string, arguments ...uint64) error {
	return on.Launch(w.kernels[name], 1, maxRanks, arguments...)
}

func (w *Window) stopAt() uint64 { return uint64(uintptr(unsafe.Pointer(&w.stop.Bytes()[0]))) }

// Abort has all waits end, those that are queued and those to come. What is summed after it is wrong.
func (w *Window) Abort() {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.stop == nil {
		return
	}
	atomic.StoreUint32((*uint32)(unsafe.Pointer(&w.stop.Bytes()[0])), math.MaxUint32)
}

// Close frees the window. It is idempotent.
func (w *Window) Close() (err error) {
	err = w.leave()
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, c := range []interface{ Close() error }{w.memory, w.stop, w.module} {
		if c != nil {
			err = errors.Join(err, c.Close())
		}
	}
	w.memory, w.stop, w.module = nil, nil, nil
	return err
}
