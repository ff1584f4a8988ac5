package engine

import (
	"errors"
	"fmt"

	"github.com/xtts-host/xtts-host/plugins/internal/gpustage"
)

// call implements gpustage.Call.
type call struct {
	program *program
	lane    *lane // nil after End
	bucket  int
	done    chan error
}

// Host implements gpustage.Call.
func (c *call) Host(name string) []byte {
	b := &c.lane.buckets[c.bucket]
	for _, list := range [][]gpustage.Tensor{b.Inputs, b.Outputs} {
		for _, t := range list {
			if t.Name == name && t.Own {
				at, size := b.own[name], b.Rows*t.RowBytes()
				return c.lane.host.Bytes()[at : at+size : at+size]
			}
		}
	}
	panic(fmt.Sprintf("graph %s: bucket %d has no tensor %q of its own", c.program.spec.Name, c.bucket, name))
}

// End implements gpustage.Call.
func (c *call) End() {
	if c.lane != nil {
		c.program.lanes <- c.lane
		c.lane = nil
	}
}

// Run implements gpustage.Call. It waits for the GPU even if the caller's connection ends, because the GPU uses the
// caller's memory until then.
func (c *call) Run(in, out gpustage.Bytes) error {
	b := &c.lane.buckets[c.bucket]
	from, err := c.find(b.Inputs, in, true)
	if err != nil {
		return err
	}
	to, err := c.find(b.Outputs, out, false)
	if err != nil {
		return err
	}
	d := c.program.device
	err = d.do(func() error {
		if err := c.queue(from, to); err != nil {
			// Work that was queued before the failure still uses the memory.
			waited := errors.Join(d.transfer.Synchronize(), d.compute.Synchronize())
			d.check(waited)
			return errors.Join(err, waited)
		}
		d.waits <- c
		return nil
	})
	if err == nil {
		err = <-c.done
	}
	if err != nil {
		return fmt.Errorf("graph %s on the GPU: %w", c.program.spec.Name, err)
	}
	return nil
}

// find returns the memory of each tensor, or nil for an output that is not requested.
func (c *call) find(list []gpustage.Tensor, given gpustage.Bytes, all bool) ([][]byte, error) {
	found := make([][]byte, len(list))
	for i, t := range list {
		mem, ok := given[t.Name]
		if !ok && t.Own {
			mem, ok = c.Host(t.Name), true
		}
		if want := c.lane.buckets[c.bucket].Rows * t.RowBytes(); ok && len(mem) != want || !ok && all {
			return nil, fmt.Errorf("graph %s: %s has %d bytes, want %d", c.program.spec.Name, t.Name, len(mem), want)
		}
		found[i] = mem
	}
	return found, nil
}

// queue queues the batch, on the GPU's thread.
func (c *call) queue(from, to [][]byte) error {
	d, l, b := c.program.device, c.lane, &c.lane.buckets[c.bucket]
	for _, k := range b.chunks {
		for i, t := range b.Inputs {
			n := t.RowBytes()
			if err := d.transfer.Upload(l.memory, k.at[t.Name], from[i][k.from*n:k.to*n]); err != nil {
				return err
			}
		}
	}
	if err := errors.Join(d.transfer.Record(l.crossed), d.compute.Wait(l.crossed)); err != nil {
		return err
	}
	if d.cuda == nil { // the CPU provider has no streams
		if err := d.compute.Synchronize(); err != nil {
			return err
		}
	}
	for _, k := range b.chunks {
		if err := k.binding.Run(c.program.options()); err != nil {
			return err
		}
		for i, t := range b.Outputs {
			if n := t.RowBytes(); to[i] != nil {
				if err := d.compute.Download(to[i][k.from*n:k.to*n], l.memory, k.at[t.Name]); err != nil {
					return err
				}
			}
		}
	}
	return d.compute.Record(l.computed)
}
