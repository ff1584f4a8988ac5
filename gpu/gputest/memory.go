package gputest

import (
	"encoding/binary"
	"fmt"
	"slices"
	"sync"
	"sync/atomic"
	"syscall"
	"unsafe"

	"github.com/xtts-host/xtts-host/gpu"
)

// Memory is what Allocate, AllocateHost and Register create. Card memory is host memory too.
type Memory struct {
	c      *Context
	kind   string // cardMemory, hostMemory or mappedMemory
	mem    []byte
	users  int  // number of queued or running operations that use it
	others bool // it is a block of another card's context
	closed atomic.Bool
}

const (
	cardMemory   = "GPU memory"
	hostMemory   = "pinned memory"
	mappedMemory = "registered memory"
)

func (c *Context) Allocate(size int) (gpu.Memory, error) {
	m, err := c.add(Allocate, cardMemory, size, nil)
	if err != nil {
		return nil, err
	}
	return m, nil
}

func (c *Context) AllocateHost(size int) (gpu.HostMemory, error) {
	m, err := c.add(AllocateHost, hostMemory, size, nil)
	if err != nil {
		return nil, err
	}
	return m, nil
}

func (c *Context) Register(mem []byte) (gpu.Registration, error) {
	m, err := c.add(Register, mappedMemory, len(mem), mem)
	if err != nil {
		return nil, err
	}
	return m, nil
}

// sharing has the blocks of all cards that are shared, by name.
var sharing struct {
	sync.Mutex
	blocks []*Memory
}

func (c *Context) Share(m gpu.Memory) (name gpu.Shared, err error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if err := c.enter("share GPU memory"); err != nil {
		return name, err
	}
	sharing.Lock()
	defer sharing.Unlock()
	sharing.blocks = append(sharing.blocks, m.(*Memory))
	binary.LittleEndian.PutUint64(name[:], uint64(len(sharing.blocks)))
	return name, nil
}

func (c *Context) OpenShared(name gpu.Shared, size int) (gpu.Memory, error) {
	const op = "open the GPU memory of another process"
	c.mu.Lock()
	defer c.mu.Unlock()
	if err := c.enter(op); err != nil {
		return nil, err
	}
	sharing.Lock()
	defer sharing.Unlock()
	i := binary.LittleEndian.Uint64(name[:])
	if i == 0 || i > uint64(len(sharing.blocks)) || sharing.blocks[i-1].Bytes() == nil {
		return nil, fmt.Errorf("%s: no such block", op)
	}
	b := &Memory{c: c, kind: cardMemory, mem: sharing.blocks[i-1].mem[:size], others: true}
	c.blocks = append(c.blocks, b)
	c.open[cardMemory]++
	return b, nil
}

// add creates a block of mem, or of new memory if mem is nil.
func (c *Context) add(op Op, kind string, size int, mem []byte) (*Memory, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if err := c.enter(op); err != nil {
		return nil, err
	}
	if err := c.injected(op); err != nil {
		return nil, err
	}
	if size <= 0 {
		return nil, fmt.Errorf("%s: memory has at least one byte", op)
	}
	if kind == mappedMemory && c.find(addressOf(mem), 1, mappedMemory) != nil {
		return nil, fmt.Errorf("%s: it is already pinned", op)
	}
	if kind == cardMemory && size > c.config.Memory-c.used {
		return nil, fmt.Errorf("%s: %d bytes of %d, of which %d are used: %w", op, size, c.config.Memory, c.used,
			gpu.ErrOutOfMemory)
	}
	if mem == nil {
		// Outside Go's heap, because C libraries keep its address, and a use after Close must crash.
		var err error
		if mem, err = syscall.Mmap(
			-1, 0, size, syscall.PROT_READ|syscall.PROT_WRITE, syscall.MAP_PRIVATE|syscall.MAP_ANON,
		); err != nil {
			return nil, fmt.Errorf("%s: %w", op, err)
		}
	}
	if kind == cardMemory {
		c.used += size
	}
	b := &Memory{c: c, kind: kind, mem: mem}
	c.blocks = append(c.blocks, b)
	c.open[kind]++
	return b, nil
}

// find returns the block of one of the kinds that has size bytes at an address, or nil. The caller holds mu.
func (c *Context) find(address uintptr, size int, kinds ...string) *Memory {
	for _, b := range c.blocks {
		start := addressOf(b.mem)
		if slices.Contains(kinds, b.kind) && address >= start && address <= start+uintptr(len(b.mem)) &&
			size <= len(b.mem)-int(address-start) {
			return b
		}
	}
	return nil
}

func addressOf(mem []byte) uintptr { return uintptr(unsafe.Pointer(unsafe.SliceData(mem))) }

// Pointer returns an address in host memory, which a library that computes on the CPU can use; 0 after Close.
func (m *Memory) Pointer() uintptr { return addressOf(m.Bytes()) }

// Bytes returns the content of the memory, also for card memory: for work that a test queues with Stream.Run, and for
// its assertions. It returns nil after Close.
func (m *Memory) Bytes() []byte {
	if m.closed.Load() {
		return nil
	}
	return m.mem
}

func (m *Memory) Size() int { return len(m.mem) }

// Close refuses to close memory that queued work uses.
func (m *Memory) Close() error {
	c := m.c
	c.mu.Lock()
	defer c.mu.Unlock()
	if m.closed.Load() {
		return nil
	}
	op := Op("close " + m.kind)
	if m.users > 0 {
		return c.misuse("%s: queued or running work uses it %d times", op, m.users)
	}
	err := c.enter(op)
	m.closed.Store(true)
	c.open[m.kind]--
	c.blocks = slices.DeleteFunc(c.blocks, func(x *Memory) bool { return x == m })
	if m.others {
		return err
	}
	if m.kind == cardMemory {
		c.used -= len(m.mem)
	}
	if m.kind != mappedMemory {
		if unmapped := syscall.Munmap(m.mem); err == nil {
			err = unmapped
		}
	}
	return err
}
