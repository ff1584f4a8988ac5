package dataset

import (
	"cmp"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"math"
	"math/bits"
	"math/rand/v2"
	"slices"
	"sync"

	"github.com/xtts-host/xtts-host/shared/hint"
	"github.com/xtts-host/xtts-host/shared/manifest"
)

// windowBatches is the number of batches whose rows are sorted by length together: enough to fill the buckets, and few
// enough to keep the order random.
const windowBatches = 64

// symbolRef is the symbol for the samples of a reference clip.
const symbolRef = "T_ref"

// PlanConfig says how rows form batches. BatchSize and Buckets are required.
type PlanConfig struct {
	Seed      int64
	BatchSize int
	// Buckets are ascending. A row goes to the first bucket that can hold it. To get one shape only, pass only the last
	// bucket.
	Buckets []manifest.Bucket
	// Limits are the sizes for which a bucket would have been made; nil means those of the last bucket.
	Limits manifest.Bucket
	// MaxGrowth is the factor by which the pipeline's stages may lengthen a waveform; 0 means 1.
	MaxGrowth float64
	// Columns are those of the rows; nil without.
	Columns *Columns
}

// Excluded is a row that no bucket can hold: it has more of what Of names than Limit, the value of Symbol.
type Excluded struct {
	Row    int32
	Symbol string
	Of     string // "samples", "tokens", or the steps of a column
	Limit  int
	Reason string
}

// Batch lists BatchSize rows. The plan owns Rows, which are read-only.
type Batch struct {
	Epoch, Index int
	Bucket       int     // index into PlanConfig.Buckets
	Rows         []int32 // indices into Index.Rows; -1 is an empty row, and empty rows come last
}

// Plan says which rows form which batch of which epoch. It is a pure function of rows, PlanConfig and epoch
// (docs/data-plan.md). It is safe for concurrent use.
type Plan struct {
	cfg      PlanConfig
	buckets  []int32 // of each row, -1 for excluded ones
	samples  []int   // of each row
	excluded []Excluded
	batches  int
	fixed    *Epoch // of an evaluation plan

	mu     sync.Mutex
	recent [2]*Epoch // the epoch in use and the next one
}

// Epoch is the order of one epoch. It is immutable.
type Epoch struct {
	epoch, size int
	buckets     []int32
	rows        []int32 // of all batches
}

// NewPlan returns the plan of a training run. It fails with ErrNoRows if no row fits the largest bucket.
func NewPlan(rows []Row, cfg PlanConfig) (*Plan, error) {
	if cfg.BatchSize < 1 {
		return nil, fmt.Errorf("plan: batch size %d", cfg.BatchSize)
	}
	if len(cfg.Buckets) == 0 {
		return nil, errors.New("plan: no buckets")
	}
	if cfg.MaxGrowth == 0 {
		cfg.MaxGrowth = 1
	}
	if !(cfg.MaxGrowth >= 1) || math.IsInf(cfg.MaxGrowth, 1) {
		return nil, fmt.Errorf("plan: max growth %v is not a factor of 1 or more", cfg.MaxGrowth)
	}
	p := &Plan{cfg: cfg, buckets: make([]int32, len(rows)), samples: make([]int, len(rows))}
	counts := make([]int, len(cfg.Buckets))
	var needs []need
	for i := range rows {
		p.samples[i] = rows[i].Samples
		needs = needsOf(needs, &rows[i], cfg.MaxGrowth, cfg.Columns)
		b := slices.IndexFunc(cfg.Buckets, func(b manifest.Bucket) bool { return misfit(b, needs) == nil })
		p.buckets[i] = int32(b)
		if b < 0 {
			p.excluded = append(p.excluded, p.exclude(int32(i), needs))
			continue
		}
		counts[b]++
	}
	for _, n := range counts {
		p.batches += (n + cfg.BatchSize - 1) / cfg.BatchSize
	}
	if p.batches > 0 {
		return p, nil
	}
	if len(rows) == 0 {
		return nil, fmt.Errorf("plan: %w", ErrNoRows)
	}
	e := p.excluded[0]
	return nil, hint.Errorf("cut the recordings into shorter clips, or use a graph with larger buckets",
		"plan: %w: none of %d rows fits the largest bucket; %s is too long: %s", ErrNoRows, len(rows), rows[e.Row].ID,
		e.Reason)
}

// NewEvalPlan returns the plan of an evaluation: rows in file order, grouped by bucket, the same in every epoch. Its
// batches have Epoch 0, so their references are the same too.
func NewEvalPlan(rows []Row, cfg PlanConfig) (*Plan, error) {
	p, err := NewPlan(rows, cfg)
	if err != nil {
		return nil, err
	}
	p.fix()
	return p, nil
}

// fix makes every epoch that of an evaluation.
func (p *Plan) fix() {
	perBucket := make([][]int32, len(p.cfg.Buckets))
	for i, b := range p.buckets {
		if b >= 0 {
			perBucket[b] = append(perBucket[b], int32(i))
		}
	}
	e := p.newEpoch(0)
	for b, rows := range perBucket {
		for len(rows) > 0 {
			n := min(p.cfg.BatchSize, len(rows))
			e.add(int32(b), rows[:n])
			rows = rows[n:]
		}
	}
	p.fixed = e
}

// grown returns how many samples a clip may have after the pipeline's stages.
func grown(samples int, growth float64) int {
	return int(math.Ceil(float64(samples) * max(1, growth)))
}

// need is a size that a bucket must have for a row.
type need struct {
	symbol string
	size   int
	of     string // what is counted
}

// needsOf returns the needs of a row whose clip stages may lengthen. It uses the memory of buffer.
func needsOf(buffer []need, r *Row, growth float64, columns *Columns) []need {
	needs := append(buffer[:0], need{manifest.SymbolText, r.Tokens, "tokens"},
		need{manifest.SymbolWav, grown(r.Samples, growth), "samples"})
	return columns.needs(needs, r)
}

// misfit returns the first need that the bucket is too small for, or nil. A symbol that the bucket does not have sets
// no limit.
func misfit(b manifest.Bucket, needs []need) *need {
	for i, n := range needs {
		if size, limited := b[n.symbol]; limited && n.size > size {
			return &needs[i]
		}
	}
	return nil
}

// exclude says why no bucket can hold a row.
func (p *Plan) exclude(row int32, needs []need) Excluded {
	last := p.cfg.Buckets[len(p.cfg.Buckets)-1]
	if p.cfg.Limits != nil && misfit(p.cfg.Limits, needs) != nil {
		last = p.cfg.Limits
	}
	n := misfit(last, needs)
	e := Excluded{Row: row, Symbol: n.symbol, Of: n.of, Limit: last[n.symbol]}
	e.Reason = fmt.Sprintf("%d %s, but the bucket holds %d", n.size, n.of, e.Limit)
	if n.symbol == manifest.SymbolWav {
		e.Limit = int(float64(e.Limit) / p.cfg.MaxGrowth)
	}
	return e
}

// Excluded returns the rows that no bucket can hold, in file order.
func (p *Plan) Excluded() []Excluded { return p.excluded }

// Order identifies the order of the batches, of all epochs: the hex SHA-256 of what it follows from. Whose rows they
// are and what the rows hold is left to Index.Hash.
func (p *Plan) Order() string {
	h := sha256.New()
	b := appendInt(nil, p.cfg.Seed)
	b = appendInt(b, int64(p.cfg.BatchSize))
	b = appendInt(b, int64(len(p.cfg.Buckets)))
	for i, bucket := range p.buckets {
		b = appendInt(b, int64(bucket))
		b = appendInt(b, int64(p.samples[i]))
		h.Write(b)
		b = b[:0]
	}
	h.Write(b)
	return hex.EncodeToString(h.Sum(nil))
}

// Batches returns the number of batches of an epoch. It is the same in every epoch, because each bucket always has the
// same rows and has at most one batch with empty rows.
func (p *Plan) Batches() int { return p.batches }

// Bucket returns the bucket of a row, or -1 for an excluded one.
func (p *Plan) Bucket(row int32) int { return int(p.buckets[row]) }

// Epoch returns the order of an epoch, counted from 0. It caches the last two.
func (p *Plan) Epoch(epoch int) *Epoch {
	if p.fixed != nil {
		return p.fixed
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, e := range p.recent {
		if e != nil && e.epoch == epoch {
			return e
		}
	}
	p.recent[1], p.recent[0] = p.recent[0], p.order(epoch)
	return p.recent[0]
}

// Len returns the number of batches.
func (e *Epoch) Len() int { return len(e.buckets) }

// Batch returns batch i, 0 <= i < Len, in constant time.
func (e *Epoch) Batch(i int) Batch {
	return Batch{
		Epoch: e.epoch, Index: i, Bucket: int(e.buckets[i]), Rows: e.rows[i*e.size : (i+1)*e.size : (i+1)*e.size],
	}
}

func (p *Plan) newEpoch(epoch int) *Epoch {
	return &Epoch{epoch: epoch, size: p.cfg.BatchSize,
		buckets: make([]int32, 0, p.batches), rows: make([]int32, 0, p.batches*p.cfg.BatchSize)}
}

// add appends a batch, with empty rows after the given ones.
func (e *Epoch) add(bucket int32, rows []int32) {
	e.buckets = append(e.buckets, bucket)
	e.rows = append(e.rows, rows...)
	for range e.size - len(rows) {
		e.rows = append(e.rows, -1)
	}
}

// order implements the algorithm of docs/data-plan.md.
func (p *Plan) order(epoch int) *Epoch {
	rng := orderGenerator(p.cfg.Seed, epoch)
	order := make([]int32, 0, len(p.buckets))
	for i, b := range p.buckets {
		if b >= 0 {
			order = append(order, int32(i))
		}
	}
	shuffle(rng, order)

	type cut struct {
		bucket int32
		rows   []int32
	}
	var cuts []cut
	left := make([][]int32, len(p.cfg.Buckets)) // remaining rows that wait for the next window
	e, size := p.newEpoch(epoch), p.cfg.BatchSize
	for len(order) > 0 {
		n := min(windowBatches*size, len(order))
		window := slices.Concat(slices.Concat(left...), order[:n])
		order = order[n:]
		slices.SortFunc(window, func(a, b int32) int {
			return cmp.Or(cmp.Compare(p.samples[a], p.samples[b]), cmp.Compare(a, b))
		})
		clear(left)
		for _, row := range window {
			left[p.buckets[row]] = append(left[p.buckets[row]], row)
		}
		cuts = cuts[:0]
		for b := range left {
			for len(left[b]) >= size {
				cuts = append(cuts, cut{int32(b), left[b][:size]})
				left[b] = left[b][size:]
			}
		}
		shuffle(rng, cuts)
		for _, c := range cuts {
			e.add(c.bucket, c.rows)
		}
	}
	for b, rows := range left {
		if len(rows) > 0 {
			e.add(int32(b), rows)
		}
	}
	return e
}

// orderGenerator is ChaCha8 (c2sp.org/chacha8rand) seeded with SHA-256("order", seed, epoch).
func orderGenerator(seed int64, epoch int) *rand.ChaCha8 {
	b := appendField(nil, "order")
	b = appendInt(b, seed)
	b = appendInt(b, int64(epoch))
	return rand.NewChaCha8(sha256.Sum256(b))
}

// shuffle is the Fisher-Yates algorithm, from the end.
func shuffle[T any](rng *rand.ChaCha8, s []T) {
	for i := len(s) - 1; i > 0; i-- {
		j := bounded(rng, uint64(i)+1)
		s[i], s[j] = s[j], s[i]
	}
}

// bounded returns a number in 0..n-1 without bias, by multiplication and rejection: Lemire, "Fast random integer
// generation in an interval", 2019. It is implemented here because math/rand/v2 does not specify how it bounds
// integers.
func bounded(rng *rand.ChaCha8, n uint64) uint64 {
	reject := -n % n // 2^64 mod n
	for {
		hi, lo := bits.Mul64(rng.Uint64(), n)
		if lo >= reject {
			return hi
		}
	}
}
