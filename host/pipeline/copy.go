package pipeline

import (
	"context"
	"errors"
	"fmt"
	"time"
)

// verdict is the copier's word on a finished batch.
type verdict int

const (
	copied  verdict = iota // its ring slot is free
	rebuild                // it must be built again
)

// copyAll moves finished batches to device slots, in the order of the plan.
func (p *Pipeline) copyAll(ctx context.Context) error {
	var began, ended time.Time // of the copy before
	for seq := uint64(0); ; seq++ {
		b := p.await(ctx, seq)
		if b == nil {
			p.closeWarm()
			return nil
		}
		var d *DeviceSlot
		select {
		case d = <-p.free:
		case <-ctx.Done():
			return nil
		}
		d.move(Free, Preparing)
		queue := max(0, ended.Sub(latest(b.built, began))) // behind the copy before; not for a free slot
		began = time.Now()
		err := p.cfg.Device.Copy(d.Index, b)
		for errors.Is(err, ErrRebuild) {
			p.stats.rebuilt.Add(1)
			p.reuse[b.Slot] <- rebuild
			if b = p.await(ctx, seq); b == nil {
				return nil
			}
			began = time.Now()
			err = p.cfg.Device.Copy(d.Index, b)
		}
		if err != nil {
			return fmt.Errorf("copy to device slot %d: %w", d.Index, err)
		}
		ended = time.Now()
		b.cost = append(b.cost, cost{queue, ended.Sub(began)})
		b.copyTo(&d.Batch)
		p.reuse[b.Slot] <- copied
		d.move(Preparing, Ready)
		p.ready <- d
	}
}

func latest(a, b time.Time) time.Time {
	if a.After(b) {
		return a
	}
	return b
}

// await returns the finished batch of that number, nil when there is none or the run ends.
func (p *Pipeline) await(ctx context.Context, seq uint64) *Batch {
	built := p.built[seq%uint64(len(p.built))]
	select {
	case b := <-built:
		return b
	case <-ctx.Done():
		return nil
	case <-p.ended:
	}
	if seq == p.end {
		return nil
	}
	select {
	case b := <-built:
		return b
	case <-ctx.Done():
		return nil
	}
}
