package inspect

import (
	"fmt"
	"strings"

	"github.com/xtts-host/xtts-host/host/base/units"
	"github.com/xtts-host/xtts-host/ortgraphs"
	"github.com/xtts-host/xtts-host/ortgraphs/fuse"
	"github.com/xtts-host/xtts-host/ortgraphs/fuse/cost"
	"github.com/xtts-host/xtts-host/ortgraphs/fused"
	"github.com/xtts-host/xtts-host/ortgraphs/shapes"
	"github.com/xtts-host/xtts-host/shared/hint"
	"github.com/xtts-host/xtts-host/shared/manifest"
)

// Fused is what fusion would save in a training graph, for a batch of the largest bucket. Bucket is its index.
type Fused struct {
	File      string      `json:"file"`
	Precision string      `json:"precision"`
	Bucket    int         `json:"bucket"`
	BatchSize int         `json:"batch_size"`
	Ledger    fuse.Ledger `json:"ledger"`
	Memory    Memory      `json:"memory"`
	// Predicted is what a step is expected to take, in TF32 if the graph is in f32.
	Predicted *cost.Prediction `json:"predicted"`
}

// ledgers partitions the training graphs of a bundle, and predicts their steps on a card.
func ledgers(b *ortgraphs.Bundle, rows int, card cost.Card) ([]Fused, error) {
	var list []Fused
	last := len(b.Manifest.Buckets) - 1
	for _, g := range b.Manifest.Graphs {
		if g.Kind != "train" {
			continue
		}
		sizes := shapes.Sizes(b.Manifest.Buckets[last].Values(rows))
		l, err := fuse.NewLedger(b.Model(g.File), sizes, fused.Kernels)
		var p *fused.Plan
		if err == nil {
			p, err = fused.PlanOf(b.Model(g.File), sizes, fused.Form{})
		}
		var m *Memory
		if err == nil {
			m, err = memoryOf(p)
		}
		settings := costsOf(b, g, card)
		if err == nil {
			settings.Uncaptured, err = launchedSingly(p)
		}
		if err != nil {
			return nil, hint.Errorf(hint.Command("graph lint finds what depends on the example of an export"),
				"%s: regions: %w", b.Path(g.File), err)
		}
		list = append(list, Fused{g.File, g.Precision, last, rows, *l, *m, p.Predict(settings, nil)})
	}
	return list, nil
}

// shownRegions is the number of kinds of regions that are printed; --json has all.
const shownRegions = 12

func (t *table) fused(m *manifest.Bundle, list []Fused) {
	for _, f := range list {
		l := f.Ledger
		size := sizesLike(l.Exported.Bytes)
		t.line("fusion", "%s, %s rows of bucket %d (%s); the %d products of %s are not counted:", f.File,
			units.Thousands(f.BatchSize), f.Bucket, Symbols(m.Buckets[f.Bucket], m.Inputs), l.Products.Kernels,
			size(l.Products.Bytes))
		if l.Batched.Launches > 0 {
			t.line("", "%d of the products, gradients of weights, run in %s", l.Batched.Products,
				units.Count(l.Batched.Launches, "launch"))
		}
		if l.Planned > 0 {
			t.line("", "the start chooses an algorithm for %d of the products; %d of these add a bias, %d a residual",
				l.Planned, l.Biased, l.Residuals)
		}
		if l.Convolutions > 0 {
			t.line("", "%d of the products are convolutions, computed without windows in memory", l.Convolutions)
		}
		t.line("", "as exported: %s kernels, %s; one kernel for each region: %s kernels, %s",
			units.Thousands(l.Exported.Kernels), size(l.Exported.Bytes), units.Thousands(l.Fused.Kernels),
			size(l.Fused.Bytes))
		shown := l.Regions[:min(shownRegions, len(l.Regions))]
		for _, r := range shown {
			t.line("", "  %s in %s over %v: %s", size(r.Bytes), units.Count(r.Count, "region"), r.Domain, r.Ops)
			t.line("", "    %s", kernels(r))
		}
		regions, bytes := 0, 0
		for _, r := range l.Regions[len(shown):] {
			regions, bytes = regions+r.Count, bytes+r.Bytes
		}
		if regions > 0 {
			t.line("", "  %s in %s that --json lists", size(bytes), units.Count(regions, "other region"))
		}
		for _, n := range l.Left {
			t.line("", "  %s in %s of %s, as exported: %s", size(n.Bytes), units.Count(n.Count, "node"), n.Op, n.Reason)
		}
		t.tensorMemory(&f.Memory)
		t.predicted(f.Precision, f.Predicted)
	}
}

// shownKernels is the number of kernels of a kind of region that are printed.
const shownKernels = 4

// kernels names the kernels of a kind of region, and says why there is none.
func kernels(r fuse.RegionKind) string {
	names := strings.Join(r.Kernels[:min(shownKernels, len(r.Kernels))], ", ")
	if n := len(r.Kernels) - shownKernels; n > 0 {
		names += fmt.Sprintf(", %d more", n)
	}
	if len(r.Plain) > 0 {
		return strings.TrimPrefix(names+"; no kernel: "+strings.Join(r.Plain, "; "), "; ")
	}
	return names
}

// sizesLike returns a function that writes numbers of bytes in one unit, that of the largest: GB or MB.
func sizesLike(largest int) func(bytes int) string {
	unit, name := 1e6, "MB"
	if largest >= 1e9 {
		unit, name = 1e9, "GB"
	}
	return func(bytes int) string { return fmt.Sprintf("%.2f %s", float64(bytes)/unit, name) }
}
