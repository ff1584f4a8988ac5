package gputest

import (
	"fmt"
	"slices"

	"github.com/xtts-host/xtts-host/gpu"
)

// Kernel is what the fake card has for a kernel: a function of Config.Kernels.
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
	if !ok {
		return nil, fmt.Errorf("kernel %s: the fake card has none", name)
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

// Launch calls the kernel's function once, whatever the number of threads.
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
	s.queue(Launch, 0, nothing, func() error { own.run(arguments); return nil })
	return nil
}
