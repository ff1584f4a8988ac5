package specaugment

import (
	"encoding/json"
	"math/rand/v2"

	"github.com/xtts-host/xtts-host/shared/stage"
)

// span is a run of bands or frames.
type span struct{ first, end int }

// MarshalJSON gives the first band or frame of a mask, and the one after the last.
func (s span) MarshalJSON() ([]byte, error) { return json.Marshal([]int{s.first, s.end}) }

// draws are what was drawn for a row.
type draws struct {
	freqMasks, timeMasks []span
	warp                 warp
}

// report tells the host what was drawn for a row.
func (c config) report(b *stage.Batch, row int, d draws) {
	b.Report(row, "freq_masks", d.freqMasks)
	b.Report(row, "time_masks", d.timeMasks)
	if c.TimeWarp > 0 {
		b.Report(row, "time_warp", d.warp.report())
	}
}

// draw draws the masks and the warp of one row of frames by bands.
//
// It takes from r one uniform number, which decides whether the row is masked, then the 16 bytes that seed separate
// generators for the time masks and for the warp, then two uniform numbers per frequency mask: width and first band.
// Time masks take their numbers in the same way, and the warp two. So neither the probability nor the configuration of
// one kind changes what is drawn for the others.
func (c config) draw(frames, bands int, r *rand.Rand) (d draws) {
	if r.Float64() >= c.Probability {
		return d
	}
	high, low := r.Uint64(), r.Uint64()
	times := rand.New(rand.NewPCG(high, low))
	for range c.FreqMasks {
		d.freqMasks = append(d.freqMasks, drawSpan(r, c.FreqMaskWidth, bands))
	}
	widest := min(c.TimeMaskWidth, int(c.TimeMaskShare*float64(frames)))
	for range c.TimeMasks {
		d.timeMasks = append(d.timeMasks, drawSpan(times, widest, frames))
	}
	if c.TimeWarp > 0 {
		d.warp = drawWarp(rand.New(rand.NewPCG(^high, low)), c.TimeWarp, frames)
	}
	return d
}

// apply masks one row, f32[frames, bands], with value.
func apply(mel []float32, bands int, value float32, freqMasks, timeMasks []span) {
	frames := len(mel) / bands
	for _, m := range freqMasks {
		for t := range frames {
			fill(mel[t*bands+m.first:t*bands+m.end], value)
		}
	}
	for _, m := range timeMasks {
		fill(mel[m.first*bands:m.end*bands], value)
	}
}

// drawSpan draws a mask of at most widest elements in [0, size). widest is at most size.
func drawSpan(r *rand.Rand, widest, size int) span {
	width := below(r, widest+1)
	first := below(r, size-width+1)
	return span{first, first + width}
}

// below returns a uniform number in [0,n). Unlike r.IntN, which repeats biased draws, it takes exactly one number from
// r. The remaining bias is n/2^53.
func below(r *rand.Rand, n int) int {
	return int(r.Float64() * float64(n))
}

func fill[T float32 | bool](elements []T, value T) {
	for i := range elements {
		elements[i] = value
	}
}
