package pipeline

import (
	"context"
	"errors"
	"fmt"
	"time"
)

// verdict is the copier's decision about a finished batch.
type verdict int

const (
	copied  verdict = iota // its ring slot is free
	rebuild                // the batch must be rebuilt
)

// copyAll copies finished batches to device slots, in the order of the plan.
func (p *Pipeline) copyAll(ctx context.Context) error {
	var began, ended time.Time // of the previous copy
	var window window
	for seq := uint64(0); ; seq++ {
		b := window.next(ctx, p, seq)
		if b == nil {
			return nil
		}
		p.meter.measure(b)
		d := p.freeSlot(ctx)
		if d == nil {
			return nil
		}
		p.move(d, Free, Preparing)
		queue := max(0, ended.Sub(latest(b.built, began))) // since the previous copy, without the wait for a free slot
		var err error
		began, ended, err = p.copy(d, b)
		for errors.Is(err, ErrRebuild) {
			p.stats.rebuilt.Add(1)
			p.ring(b.Slot, Ready, Preparing)
			p.reuse[b.Slot] <- rebuild
			if b = p.await(ctx, seq); b == nil {
				return nil
			}
			began, ended, err = p.copy(d, b)
		}
		if err != nil {
			return fmt.Errorf("copy to device slot %d: %w", d.Index, err)
		}
		b.cost = append(b.cost, cost{queue, ended.Sub(began)})
		b.copyTo(&d.Batch)
		p.glances[b.Slot].set(Free, 0, 0)
		p.ring(b.Slot, Ready, Free)
		p.reuse[b.Slot] <- copied
		p.move(d, Preparing, Ready)
		p.ready <- d
		p.progress.Lock()
		p.onDevice++
		p.warmed()
		p.progress.Unlock()
	}
}

// copy makes one attempt.
func (p *Pipeline) copy(d *DeviceSlot, b *Batch) (began, ended time.Time, err error) {
	began = time.Now()
	err = p.cfg.Device.Copy(d.Index, b)
	ended = time.Now()
	p.worked(len(p.cfg.Stages)+1, d.Index, b, began, ended, ended.Sub(began))
	return began, ended, err
}

func latest(a, b time.Time) time.Time {
	if a.After(b) {
		return a
	}
	return b
}

// await returns the finished batch of that number, or nil if there is none or the run ends.
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
