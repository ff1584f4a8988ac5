package specaugment

import "math/rand/v2"

// apply masks one row, f32[frames, bands], with value.
//
// From r it takes a uniform number, which decides whether the row is masked, then the 16 bytes that seed the time masks' own
// generator, then two uniform numbers for each frequency mask: width and first band. Time masks draw alike. So
// neither the probability nor the configuration of one kind moves the masks of the other.
func (c config) apply(mel []float32, bands int, value float32, r *rand.Rand) {
	if r.Float64() >= c.Probability {
		return
	}
	times := rand.New(rand.NewPCG(r.Uint64(), r.Uint64()))
	frames := len(mel) / bands
	for range c.FreqMasks {
		first, end := span(r, c.FreqMaskWidth, bands)
		for t := range frames {
			fill(mel[t*bands+first:t*bands+end], value)
		}
	}
	widest := min(c.TimeMaskWidth, int(c.TimeMaskShare*float64(frames)))
	for range c.TimeMasks {
		first, end := span(times, widest, frames)
		fill(mel[first*bands:end*bands], value)
	}
}

// span draws a mask of 0 to widest of size elements; widest is at most size.
func span(r *rand.Rand, widest, size int) (first, end int) {
	width := below(r, widest+1)
	first = below(r, size-width+1)
	return first, first + width
}

// below returns a uniform number in [0,n). Unlike r.IntN, which repeats a draw that would favour small numbers, it takes
// exactly one number from r; the bias that this leaves is n/2^53.
func below(r *rand.Rand, n int) int {
	return int(r.Float64() * float64(n))
}

func fill(elements []float32, value float32) {
	for i := range elements {
		elements[i] = value
	}
}
