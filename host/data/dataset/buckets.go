package dataset

import (
	"maps"
	"math"
	"slices"

	"github.com/xtts-host/xtts-host/shared/manifest"
)

// Limits of the buckets that are computed (docs/data-plan.md).
const (
	MostBuckets = 16   // when as many as needed are used
	goodPadding = 0.10 // share of padding at which no more buckets are used
	mostLengths = 2048 // different lengths that are distinguished
)

// BucketConfig says how buckets are computed from the lengths of rows. Bundle is one with Dynamic; Bundle and BatchSize
// are required.
type BucketConfig struct {
	Bundle    *manifest.Bundle
	BatchSize int     // of all ranks
	MaxGrowth float64 // as in PlanConfig
	Columns   *Columns
	// Count is the number of buckets, which have the least padding. 0 means as few as give 10 % of padding and empty
	// rows, at most MostBuckets: those for which an epoch computes the fewest frames.
	Count int
	// Samples are the lengths of the buckets, ascending; nil means those with the least padding.
	Samples []int
}

// Buckets returns the buckets for rows, ascending. It is a pure function of rows and configuration. Rows that the graph
// cannot take are ignored. Without any other row, it returns nil.
func Buckets(rows []Row, cfg BucketConfig) []manifest.Bucket {
	l := newHistogram(rows, cfg)
	if len(l.samples) == 0 {
		return nil
	}
	last := cfg.Samples
	if last == nil {
		batch := 1 // without empty rows
		if cfg.Count == 0 {
			batch = cfg.BatchSize
		}
		for _, i := range l.cut(batch, cfg.Count) {
			last = append(last, l.samples[i])
		}
	}
	var out []manifest.Bucket
	sizes, i := manifest.Bucket{}, 0
	for _, symbol := range cfg.Bundle.Limited() {
		sizes[symbol] = 0
	}
	for _, samples := range last {
		for ; i < len(l.samples) && l.samples[i] <= samples; i++ {
			raise(sizes, l.sizes[i])
		}
		sizes[manifest.SymbolWav] = samples
		out = append(out, cfg.Bundle.Fit(sizes))
	}
	return out
}

// Extend returns the buckets and, if rows of another list need it, one more that holds all of them. So the rows of an
// evaluation never change the buckets of training.
func Extend(buckets []manifest.Bucket, rows []Row, cfg BucketConfig) []manifest.Bucket {
	limit := cfg.Bundle.Dynamic[manifest.SymbolWav]
	if n := len(cfg.Samples); n > 0 {
		limit = cfg.Samples[n-1]
	}
	cfg.Count, cfg.Samples = 1, nil
	var rest []Row
	var needs []need
	for _, r := range rows {
		needs = needsOf(needs, &r, cfg.MaxGrowth, cfg.Columns)
		if grown(r.Samples, cfg.MaxGrowth) <= limit &&
			!slices.ContainsFunc(buckets, func(b manifest.Bucket) bool { return misfit(b, needs) == nil }) {
			rest = append(rest, r)
		}
	}
	more := Buckets(rest, cfg)
	if more == nil {
		return buckets
	}
	sizes := maps.Clone(buckets[len(buckets)-1])
	raise(sizes, more[0])
	return append(slices.Clone(buckets), cfg.Bundle.Fit(sizes))
}

// raise makes sizes at least as large as others.
func raise(sizes, others manifest.Bucket) {
	for symbol, n := range others {
		sizes[symbol] = max(sizes[symbol], n)
	}
}

// histogram counts rows by length. Its slices have one element for each length, ascending.
type histogram struct {
	samples []int             // of the longest of the rows with equally many whole hops
	frames  []int             // of a row of that length
	rows    []int             // of at most that length
	sizes   []manifest.Bucket // the largest of the symbols that Bundle.Limited returns
}

func newHistogram(rows []Row, cfg BucketConfig) *histogram {
	b := cfg.Bundle
	longest := b.Dynamic[manifest.SymbolWav]
	unit := b.Features.HopLength
	unit *= (longest/unit)/mostLengths + 1
	count, most, sizes := make([]int, longest/unit+1), make([]int, longest/unit+1),
		make([]manifest.Bucket, longest/unit+1)
	limited := b.Limited()
	var needs []need
	for i := range rows {
		needs = needsOf(needs, &rows[i], cfg.MaxGrowth, cfg.Columns)
		if misfit(b.Dynamic, needs) != nil {
			continue
		}
		samples := grown(rows[i].Samples, cfg.MaxGrowth)
		n := samples / unit
		count[n]++
		most[n] = max(most[n], samples)
		if sizes[n] == nil {
			sizes[n] = manifest.Bucket{}
		}
		for _, need := range needs {
			if slices.Contains(limited, need.symbol) {
				sizes[n][need.symbol] = max(sizes[n][need.symbol], need.size)
			}
		}
	}
	l, total := &histogram{}, 0
	for n, rows := range count {
		if rows == 0 {
			continue
		}
		total += rows
		l.samples = append(l.samples, most[n])
		l.frames = append(l.frames, b.Features.Frames(most[n]))
		l.rows = append(l.rows, total)
		l.sizes = append(l.sizes, sizes[n])
	}
	return l
}

// cut returns the lengths, as indices, that are the upper ends of buckets: the choice for which an epoch in batches of
// so many rows computes the fewest frames. It is exact, by dynamic programming: the cheapest n+1 buckets for the
// lengths up to j are the cheapest n for those up to some i < j, and one more for those from i+1 to j. (Bellman, "On
// the approximation of curves by line segments using dynamic programming", 1961, has the scheme.)
func (l *histogram) cut(batch, most int) []int {
	const never = math.MaxInt / 2 // is still a number when a cost is added
	auto := most == 0
	if auto {
		most = MostBuckets
	}
	n := len(l.samples)
	most = min(most, n)
	cost := make([]int, n+1) // of the lengths before j, in the buckets so far
	for j := 1; j <= n; j++ {
		cost[j] = never
	}
	var from [][]int // by number of buckets and j: where the last bucket begins
	best, buckets := never, 0
	for k := 1; k <= most; k++ {
		next, begin := slices.Repeat([]int{never}, n+1), make([]int, n+1)
		for j := k; j <= n; j++ {
			for i := k - 1; i < j; i++ {
				if c := cost[i] + l.computed(i, j, batch); c < next[j] {
					next[j], begin[j] = c, i
				}
			}
		}
		cost, from = next, append(from, begin)
		if cost[n] < best {
			best, buckets = cost[n], k
		}
		if auto && float64(l.valid()) >= (1-goodPadding)*float64(best) {
			break
		}
	}
	ends := make([]int, buckets)
	for k, j := buckets-1, n; k >= 0; k-- {
		ends[k] = j - 1
		j = from[k][j]
	}
	return ends
}

// computed counts the frames that an epoch computes in a bucket for the lengths i to j-1.
func (l *histogram) computed(i, j, batch int) int {
	rows := l.rows[j-1]
	if i > 0 {
		rows -= l.rows[i-1]
	}
	return (rows + batch - 1) / batch * batch * l.frames[j-1]
}

// valid counts the frames of all rows, without padding.
func (l *histogram) valid() int {
	frames, before := 0, 0
	for i, rows := range l.rows {
		frames += (rows - before) * l.frames[i]
		before = rows
	}
	return frames
}

// Work counts the frames of one epoch.
type Work struct {
	Clips    int // without padding
	Rows     int // of the rows with a clip, padding included
	Computed int // of all rows
}

// Padding is the share of the frames of rows with a clip that is padding.
func (w Work) Padding() float64 { return share(w.Rows-w.Clips, w.Rows) }

// Empty is the share of the computed frames that belongs to rows without a clip.
func (w Work) Empty() float64 { return share(w.Computed-w.Rows, w.Computed) }

func share(part, whole int) float64 {
	if whole == 0 {
		return 0
	}
	return float64(part) / float64(whole)
}

// Work returns the work of an epoch, without augmentation. It is zero if the buckets do not limit clips.
func (p *Plan) Work(f manifest.Features) Work {
	var w Work
	counts := make([]int, len(p.cfg.Buckets))
	for i, b := range p.buckets {
		if b >= 0 {
			counts[b]++
			w.Clips += f.Frames(p.samples[i])
		}
	}
	size := p.cfg.BatchSize
	for i, n := range counts {
		wav, ok := p.cfg.Buckets[i][manifest.SymbolWav]
		if !ok {
			return Work{}
		}
		w.Rows += n * f.Frames(wav)
		w.Computed += (n + size - 1) / size * size * f.Frames(wav)
	}
	return w
}
