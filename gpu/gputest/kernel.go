package gputest

import (
	"fmt"
	"reflect"
	"slices"
	"strings"

	"github.com/xtts-host/xtts-host/gpu"
)

// Module is PTX on the fake card, whose functions are those of Config.Kernels.
type Module struct {
	c      *Context
	ptx    string
	closed bool
}

// Kernel is a function of Config.Kernels.
type Kernel struct {
	module *Module
	run    func(arguments []uint64)
}

func (c *Context) NewModule(image []byte) (gpu.Module, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if err := c.enter("load kernels"); err != nil {
		return nil, err
	}
	if !strings.Contains(string(image), ".visible .entry ") {
		return nil, fmt.Errorf("load kernels: %w", gpu.ErrNoKernel)
	}
	c.open["module"]++
	return &Module{c: c, ptx: string(image)}, nil
}

// LaunchAddress returns 0: nothing but Stream.Launch runs a function of Config.Kernels.
func (c *Context) LaunchAddress() uintptr { return 0 }

func (c *Context) CooperativeLaunchAddress() uintptr { return 0 }

func (m *Module) Kernel(name string) (gpu.Kernel, error) {
	m.c.mu.Lock()
	defer m.c.mu.Unlock()
	if err := m.c.enter("find a kernel"); err != nil {
		return nil, err
	}
	if m.closed {
		return nil, m.c.misuse("kernel %s: %w", name, gpu.ErrClosed)
	}
	run, ok := m.c.config.Kernels[name]
	switch {
	case m.ptx == nothingPTX && name == "nothing":
		run = func([]uint64) {}
	case !strings.Contains(m.ptx, ".visible .entry "+name+"("):
		return nil, fmt.Errorf("kernel %s: not found", name)
	case !ok:
		return nil, fmt.Errorf("kernel %s: %w", name, gpu.ErrNoKernel)
	}
	return &Kernel{m, run}, nil
}

func (m *Module) Close() error {
	m.c.mu.Lock()
	defer m.c.mu.Unlock()
	if m.closed {
		return nil
	}
	m.closed = true
	m.c.open["module"]--
	return m.c.enter("unload kernels")
}

// Pointer returns a number that only tells kernels apart.
func (k *Kernel) Pointer() uintptr { return reflect.ValueOf(k).Pointer() }

// SetShared does nothing but refuse what no card has.
func (k *Kernel) SetShared(bytes int) error {
	k.module.c.mu.Lock()
	defer k.module.c.mu.Unlock()
	if k.module.closed {
		return k.module.c.misuse("set the shared memory of a kernel: kernels: %w", gpu.ErrClosed)
	}
	if bytes < 0 || bytes > mostShared {
		return fmt.Errorf("kernel: %d bytes of shared memory", bytes)
	}
	return k.module.c.enter("set the shared memory of a kernel")
}

// mostShared is the shared memory that the cards of compute capability 9.0 have for a block.
const mostShared = 227 << 10

// nothingPTX is a kernel that does nothing.
const nothingPTX = ".version 7.0\n.target sm_75\n.address_size 64\n.visible .entry nothing()\n{\n\tret;\n}\n"

// Launch calls the kernel's function once, for any number of threads. Blocks of the card that an argument points into
// are in use until then.
func (s *Stream) Launch(k gpu.Kernel, blocks, threads int, arguments ...uint64) error {
	s.c.mu.Lock()
	defer s.c.mu.Unlock()
	if err := s.enter(Launch); err != nil {
		return err
	}
	own := k.(*Kernel)
	if own.module.closed {
		return s.c.misuse("%s: kernels: %w", Launch, gpu.ErrClosed)
	}
	if blocks < 1 || threads < 1 || threads > 1024 {
		return s.c.misuse("%s: %d blocks of %d threads", Launch, blocks, threads)
	}
	arguments = slices.Clone(arguments)
	var named []*Memory
	for _, a := range arguments {
		if b := s.c.find(uintptr(a), 1, cardMemory); b != nil {
			named = append(named, b)
		}
	}
	s.queue(Launch, 0, nothing, func() error { own.run(arguments); return nil }, named...)
	return nil
}
