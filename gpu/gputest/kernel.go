package gputest

import (
	"fmt"
	"slices"
	"strings"

	"github.com/xtts-host/xtts-host/gpu"
)

// Kernel is the fake card's kernel: a function of Config.Kernels.
type Kernel struct {
	c      *Context
	run    func(arguments []uint64)
	closed bool
}

func (c *Context) NewKernel(ptx, name string) (gpu.Kernel, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if err := c.enter("make a kernel"); err != nil {
		return nil, err
	}
	run, ok := c.config.Kernels[name]
	switch {
	case ptx == nothingPTX && name == "nothing":
		run = func([]uint64) {}
	case !strings.Contains(ptx, ".visible .entry "):
		return nil, fmt.Errorf("kernel %s: %w", name, gpu.ErrNoKernel)
	case !strings.Contains(ptx, ".visible .entry "+name+"("):
		return nil, fmt.Errorf("kernel %s: not found", name)
	case !ok:
		return nil, fmt.Errorf("kernel %s: %w", name, gpu.ErrNoKernel)
	}
	c.open["kernel"]++
	return &Kernel{c: c, run: run}, nil
}

func (k *Kernel) Close() error {
	k.c.mu.Lock()
	defer k.c.mu.Unlock()
	if k.closed {
		return nil
	}
	k.closed = true
	k.c.open["kernel"]--
	return k.c.enter("close a kernel")
}

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
	if own.closed {
		return s.c.misuse("%s: kernel: %w", Launch, gpu.ErrClosed)
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
