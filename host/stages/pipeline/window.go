package pipeline

import "context"

// window is the rest of the batches of an optimizer step, which are finished but not copied yet.
type window []*Batch

// next returns the finished batch of that number, or nil if there is none or the run ends. With Config.Measure, it
// waits until all batches of an optimizer step are finished, and sums their numbers.
func (w *window) next(ctx context.Context, p *Pipeline, seq uint64) *Batch {
	if p.cfg.Measure == nil {
		return p.await(ctx, seq)
	}
	if len(*w) == 0 && !w.fill(ctx, p, seq) {
		return nil
	}
	b := (*w)[0]
	*w = (*w)[1:]
	return b
}

// fill waits for the batches of a step, from number seq on, or for those that there are.
func (w *window) fill(ctx context.Context, p *Pipeline, seq uint64) bool {
	*w = nil
	var totals []float64
	for {
		b := p.await(ctx, seq+uint64(len(*w)))
		if b == nil {
			break
		}
		*w = append(*w, b)
		for i, v := range p.cfg.Measure(b) {
			if i == len(totals) {
				totals = append(totals, 0)
			}
			totals[i] += v
		}
		if b.Last || b.Eval {
			break
		}
	}
	for _, b := range *w {
		b.Totals = append(b.Totals[:0], totals...)
	}
	return len(*w) > 0
}
