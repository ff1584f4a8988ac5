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

// report tells the host which masks were drawn for a row.
func report(b *stage.Batch, row int, freqMasks, timeMasks []span) {
	b.Report(row, "freq_masks", freqMasks)
	b.Report(row, "time_masks", timeMasks)
}

// draw draws the masks of one row of frames by bands.
//
// It takes from r one uniform number, which decides whether the row is masked, then the 16 bytes that seed a separate
// generator for the time masks, then two uniform numbers per frequency mask: width and first band. Time masks take
// their numbers in the same way. So neither the probability nor the configuration of one kind changes the masks of the
// other kind.
func (c config) draw(frames, bands int, r *rand.Rand) (freqMasks, timeMasks []span) {
	if r.Float64() >= c.Probability {
		return nil, nil
	}
	times := rand.New(rand.NewPCG(r.Uint64(), r.Uint64()))
	for range c.FreqMasks {
		freqMasks = append(freqMasks, drawSpan(r, c.FreqMaskWidth, bands))
	}
	widest := min(c.TimeMaskWidth, int(c.TimeMaskShare*float64(frames)))
	for range c.TimeMasks {
		timeMasks = append(timeMasks, drawSpan(times, widest, frames))
	}
	return freqMasks, timeMasks
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
