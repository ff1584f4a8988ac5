package train

import (
	"runtime"

	"github.com/xtts-host/xtts-host/ortgraphs/ort"
	"github.com/xtts-host/xtts-host/ortgraphs/steady"
	"github.com/xtts-host/xtts-host/shared/ring"
)

// steadied prepares a session of the CPU, so that the bits of its results do not depend on the number of threads, for
// batches of these layouts. It is the one place that decides this for training, evaluation and optimizers. Products and
// sums are rewritten. With Device.Deterministic, a graph that may have other bits all the same gets one thread, and
// alone names the node. The others get at most as many as they have the same bits with.
func steadied(m *memory, c *ort.SessionConfig, layouts []ring.Layout) (alone string, err error) {
	if m.device.onGPU() { // a fake one, too
		return "", nil // GPUs have kernels of their own
	}
	r, err := steady.Rewrite(c.Model, buckets(layouts))
	if err != nil {
		return "", err
	}
	c.Model = r.Model
	if !m.device.Deterministic {
		return "", nil
	}
	if c.Threads == 0 {
		c.Threads = runtime.GOMAXPROCS(0)
	}
	if c.Threads = min(c.Threads, steady.Threads); r.Unproven != "" {
		c.Threads = 1
		m.alone = append(m.alone, c.Name+" has "+r.Unproven)
	}
	return r.Unproven, nil
}

// OneThread lists the graphs of an optimizer that one thread computes, with Device.Deterministic on the CPU, each with
// the reason.
func OneThread(o *Optimizer) []string { return o.alone }

// buckets are the shapes of the batches that a graph gets.
func buckets(layouts []ring.Layout) (list []steady.Bucket) {
	for _, l := range layouts {
		b := steady.Bucket{}
		for _, t := range l.Tensors {
			b[t.Name] = t.Shape
		}
		list = append(list, b)
	}
	return list
}
