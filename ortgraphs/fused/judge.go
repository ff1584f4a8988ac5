package fused

import (
	"cmp"
	"encoding/binary"
	"fmt"
	"maps"
	"math"
	"slices"

	"github.com/xtts-host/xtts-host/ortgraphs/fuse"
	"github.com/xtts-host/xtts-host/ortgraphs/fuse/cudac"
	"github.com/xtts-host/xtts-host/ortgraphs/onnxpb"
)

// block has what one block has measured, by the fields of proof.cuh.
type block struct {
	squares, noiseSquares, norm, along, noiseAlong, noiseAlongSquares float64
	largest, noiseLargest, normLargest, broken                        float64
}

// Verdict is what a batch shows of a kernel.
type Verdict struct {
	// Fault is why the kernel is wrong, or nil.
	Fault error
	// Unproved are the results that show nothing, because they are zero, not finite, or mostly noise.
	Unproved []string
	// Difference is the largest norm of the difference between a result and that of the plain nodes, as a part of the
	// result's. Noise is that of the noise.
	Difference, Noise float64

	results []result
}

// result is what a batch shows of a result of a region: its parts, and the least noise of it and along it, as a part of
// its norm.
type result struct {
	*measured
	parts        []block
	noise, along float64
}

func (r result) all() *block {
	all := &block{}
	for _, b := range r.parts {
		all.add(b)
	}
	return all
}

// Judge compares each kernel with the plain nodes, by region. values is the content of the output.
//
// What roundings do is measured: the noise is the change of the result if the numbers that the region reads or computes
// move by one unit in their last place: all of them, or in bf16 where [fuse.Work.RoundsAsNodes] says so, one of
// [fuse.Seldom]. A rounding moves a number by half a unit at most. So the difference of two correct orders of the same
// arithmetic is a fraction of the noise, however much the region amplifies it. Sums in f32 round as many times as they
// have terms: they and their partial sums move by as many units as a random walk of those makes.
func (p *Proof) Judge(values []byte) map[int]*Verdict {
	verdicts := map[int]*Verdict{}
	for _, m := range p.judged {
		var blocks []block
		for range m.blocks {
			var f [cudac.MeasureFields]float64
			for i := range f {
				f[i] = math.Float64frombits(binary.LittleEndian.Uint64(values))
				values = values[8:]
			}
			blocks = append(blocks, block{f[0], f[1], f[2], f[3], f[4], f[5], f[6], f[7], f[8], f[9]})
		}
		v := verdicts[m.region]
		if v == nil {
			v = &Verdict{}
			verdicts[m.region] = v
		}
		v.add(result{measured: &m, parts: blocks})
	}
	return verdicts
}

// add adds what a result shows to the verdict on its kernel.
func (v *Verdict) add(r result) {
	r.judge(v)
	v.results = append(v.results, r)
}

// Trial decides on several batches which kernels are wrong. A comparison whose operands are almost equal may come out
// the other way after another rounding, and a result then differs by more than roundings explain: but seldom again.
//
// The noise is drawn once for each batch. Where few numbers decide a result, such as the mean of all, one draw may be
// next to nothing by chance. So in the end each batch is judged by the usual noise of all, if that is larger than its
// own.
type Trial struct {
	// Trusted says of which regions a suspicion costs nothing: they have no faults, and need no more batches; nil means
	// of none.
	Trusted func(region int) bool

	batches []map[int]*Verdict
	faults  map[int]error // by suspected region, as after the last batch
	count   map[int]int   // the batches on which a region is wrong
}

// A kernel is wrong if it is on convictions batches, of enough at least: fewer do not show what noise is usual. There
// are more than minRounds if one is suspected: what a fault exchanges may be almost equal on many batches.
const (
	convictions = 3
	minRounds   = 2
	enough      = 6
	maxRounds   = 16
)

// Add adds the verdicts of a batch, and reports whether another one is needed.
func (t *Trial) Add(verdicts map[int]*Verdict) (more bool) {
	t.batches = append(t.batches, verdicts)
	t.faults, t.count = map[int]error{}, map[int]int{}
	for region := range verdicts {
		if t.Trusted == nil || !t.Trusted(region) {
			t.judge(region)
		}
	}
	rounds := len(t.batches)
	more = rounds < minRounds
	for region := range t.faults {
		more = more || rounds < enough || rounds < maxRounds && t.count[region] < convictions
	}
	return more
}

// judge counts on how many batches a region is wrong.
func (t *Trial) judge(region int) {
	wrong := func(b map[int]*Verdict) bool { return b[region].Fault != nil }
	if !slices.ContainsFunc(t.batches, wrong) {
		return
	}
	verdicts := make([]Verdict, len(t.batches))
	for i := range t.batches[0][region].results {
		var all []result
		for _, b := range t.batches {
			all = append(all, b[region].results[i])
		}
		for j, r := range usual(all) {
			r.judge(&verdicts[j])
		}
	}
	for _, v := range verdicts {
		if v.Fault != nil {
			t.faults[region] = cmp.Or(t.faults[region], v.Fault)
			t.count[region]++
		}
	}
}

// usual returns a result by batch, with noise that is at least the upper quartile of that of all batches.
func usual(batches []result) (raised []result) {
	of := func(noise func(r result) float64) float64 {
		var list []float64
		for _, r := range batches {
			if x := noise(r); x > 0 && !math.IsInf(x, 0) {
				list = append(list, x)
			}
		}
		if len(list) == 0 {
			return 0
		}
		slices.Sort(list)
		return list[len(list)*3/4]
	}
	noise := of(func(r result) float64 {
		_, noise := r.all().parts()
		return noise
	})
	along := of(func(r result) float64 { return r.all().noiseScale() })
	for _, r := range batches {
		raised = append(raised, result{r.measured, slices.Clone(r.parts), noise, along})
	}
	for i := range batches[0].parts {
		largest := of(func(r result) float64 { return r.parts[i].noiseLargest / r.parts[i].normLargest })
		for _, r := range raised {
			r.parts[i].noiseLargest = max(r.parts[i].noiseLargest, largest*r.parts[i].normLargest)
		}
	}
	return raised
}

// Faults are the kernels that are wrong, by region, after the last batch.
func (t *Trial) Faults() map[int]error {
	faults := maps.Clone(t.faults)
	maps.DeleteFunc(faults, func(region int, _ error) bool { return t.count[region] < convictions })
	return faults
}

// Limits of a result, as factors of the noise. Where a kernel of bf16 rounds less often than the nodes, the roundings
// of the nodes may all go the same way, for instance those of the weights of an even attention. Noise, of which half
// goes the other way, does not measure the sum of those, so the limits are wider.
const (
	perElement, perElementUnlike = 6, 16  // of the largest of a block
	perNorm, perNormUnlike       = 2, 8   // of the root of the sum of squares
	perNormSeldom                = 4      // where only the roundings of few numbers differ
	perNormMostly                = 4      // of a result that is mostly noise: roundings, some of which are alike
	perScale, perScaleUnlike     = 4, 8   // of the whole, for its scale
	perAlong, perAlongSeldom     = 3, 1.5 // of the noise along the result, for its scale
	// convolvedTimes is how much wider all limits are for convolutions of a library in f32 and TF32. On an H200,
	// cuDNN's gradients of weights differ by 7.4e-4 to 8.2e-4 of their norm in TF32, where 5.1e-4 to 7.8e-4 are allowed
	// for operands that are rounded: cut off, they are twice as wrong. In f32 they differ by up to 2.8e-5, where 1.9e-5
	// are allowed.
	convolvedTimes = 2
	// maxScale is how far a result as a whole may be too large or too small, apart from the noise along it. There is
	// no such limit where the kernel rounds less often.
	maxScale = 1.0 / 256
	// least is what a kernel may add to zeros: a sigmoid of a large negative number is 0 in the nodes.
	least, leastPrecise = 1e-9, 1e-16
	// maxNoise is the noise, as a part of a result, from which a fault may be no larger than the noise.
	maxNoise = 0.25
)

// add adds what another block has measured.
func (b *block) add(c block) {
	b.squares += c.squares
	b.noiseSquares += c.noiseSquares
	b.norm += c.norm
	b.along += c.along
	b.noiseAlong += c.noiseAlong
	b.noiseAlongSquares += c.noiseAlongSquares
}

// parts returns the difference and the noise as parts of the norm; both are 0 if that is.
func (b *block) parts() (difference, noise float64) {
	if !(b.norm > 0) || math.IsInf(b.norm, 0) {
		return 0, 0
	}
	return math.Sqrt(b.squares / b.norm), math.Sqrt(b.noiseSquares / b.norm)
}

// noiseScale is the noise along the result, as a part of it: as far as it was drawn, and at least as far as it goes
// where each element has noise of its own. Then one draw may be next to nothing, since most of it cancels.
func (b *block) noiseScale() float64 {
	return max(math.Abs(b.noiseAlong), math.Sqrt(b.noiseAlongSquares)) / b.norm
}

// judge adds what a result shows to the verdict on its kernel. Of parts that are mostly noise, such as an empty row,
// whose scores are all masked, nothing is known of the scale. A result without any other, such as the gradient of a
// bias that a norm takes away, proves nothing.
func (m result) judge(v *Verdict) {
	var quiet, noisy block
	for _, b := range m.parts {
		if b.noiseSquares <= maxNoise*maxNoise*b.norm {
			quiet.add(b)
		} else {
			noisy.add(b)
		}
	}
	fault := m.inParts(m.parts)
	for _, b := range []block{quiet, noisy} {
		difference, noise := b.parts()
		v.Difference, v.Noise = max(v.Difference, difference), max(v.Noise, noise)
		noise = max(noise, m.noise)
		if fault == nil {
			fault = m.whole(b, difference, noise)
		}
	}
	if m.noisy && !(quiet.norm > 0) {
		v.Unproved = append(v.Unproved, m.tensor.Name)
	}
	v.Fault = cmp.Or(v.Fault, fault)
}

// inParts says why one of the parts of a result is wrong.
func (m *measured) inParts(blocks []block) error {
	factor, largest, zero := float64(perElement), 0.0, least
	if m.precise {
		zero = leastPrecise
	}
	if m.unlike {
		factor = perElementUnlike
	}
	for _, b := range blocks {
		largest = max(largest, b.normLargest)
	}
	for i, b := range blocks {
		part := fmt.Sprintf("part %d of %d", i+1, len(blocks))
		if b.broken > 0 {
			return fmt.Errorf("%s: %.0f elements of %s are not written, not finite, or other integers or masks "+
				"than the plain nodes'", m.tensor.Name, b.broken, part)
		}
		// Not the largest of the part: 1 - 1/(1+exp(x)) is as wrong for the sigmoid of a large negative number as for
		// others.
		limit := m.allowed(factor, b.noiseLargest, largest, 1) + zero
		if !(b.largest <= limit) {
			return m.differs("an element of "+part, b.largest, limit)
		}
	}
	return nil
}

// whole says why the sum of parts is wrong. The difference and the noise are parts of its norm.
func (m result) whole(all block, difference, noise float64) error {
	norm, unit := float64(perNorm), 1.0
	scale := min(m.allowed(perScale, noise, 1, 1), maxScale)
	switch {
	case m.unlike:
		norm, scale = perNormUnlike, m.allowed(perScaleUnlike, noise, 1, 1)
	case m.seldom:
		norm, unit = perNormSeldom, 1/math.Sqrt(fuse.Seldom)
	case noise > maxNoise:
		norm = perNormMostly
	}
	if limit := m.allowed(norm, noise, 1, unit); !(difference <= limit) {
		return m.differs("the norm, as a part of the result's,", difference, limit)
	}
	if all.norm == 0 || noise > maxNoise {
		return nil
	}
	along := float64(perAlong)
	if m.seldom { // far fewer numbers differ than the noise moves
		along = perAlongSeldom
	}
	limit := scale + along*max(m.along, all.noiseScale())
	if d := math.Abs(all.along / all.norm); !(d <= limit) {
		return m.differs("the scale", d, limit)
	}
	return nil
}

// allowed is how far a result of some size may be from the plain one: a multiple of the noise, units roundings, and for
// sums in f32 as many as a random walk of so many steps makes.
func (m *measured) allowed(factor, noise, size, units float64) float64 {
	unit, sum, walk := 0x1p-23, 0x1p-23, math.Sqrt(float64(max(m.terms, m.products)))
	switch {
	case m.tensor.Type == onnxpb.TensorProto_BFLOAT16:
		unit = 0x1p-7
	case m.precise: // sums of terms that are all alike have the same rounding each time
		unit, sum, walk = 0x1p-52, 0x1p-52, float64(m.terms)
	}
	if noise < 0x1p-12*size { // that of f32 alone
		factor += math.Sqrt(float64(m.products))
	}
	limit := factor*noise + (units*unit+sum*walk)*size
	if m.convolved {
		limit *= convolvedTimes
	}
	return limit
}

func (m *measured) differs(what string, by, limit float64) error {
	return fmt.Errorf("%s: %s differs by %.2g from the plain nodes' result, where roundings explain %.2g",
		m.tensor.Name, what, by, limit)
}
