package specaugment

import (
	"math/rand/v2"
	"sync"
)

// warp moves the frame from to the place to, and the others between it and the ends in proportion. Without a warp, both
// are 0.
type warp struct{ from, to int }

// drawWarp draws the warp of a row of frames: how far, at most width frames to either side, and which frame, so that it
// stays within the row. Both are uniform. Short rows have smaller warps.
func drawWarp(r *rand.Rand, width, frames int) warp {
	width = min(width, (frames-2)/2)
	if width <= 0 {
		return warp{}
	}
	from := width + below(r, frames-2*width)
	return warp{from, min(max(from+below(r, 2*width+1)-width, 1), frames-2)}
}

// warped holds *[]float32: a row is read while it is written.
var warped sync.Pool

// apply warps one row, f32[frames, bands], in place. Each frame is interpolated linearly between the two about where it
// was. The first and the last frame stay.
func (w warp) apply(mel []float32, bands int) {
	if w.from == w.to {
		return
	}
	buffer, _ := warped.Get().(*[]float32)
	if buffer == nil {
		buffer = new([]float32)
	}
	defer warped.Put(buffer)
	*buffer = append((*buffer)[:0], mel...)
	was, last := *buffer, len(mel)/bands-1
	for t := range last + 1 {
		place, share := t*w.from, w.to // before the frame that moves, and at it
		if t > w.to {
			place, share = (t-w.to)*(last-w.from), last-w.to
		}
		frame, rest := place/share, float64(place%share)/float64(share)
		if t > w.to {
			frame += w.from
		}
		a, b := was[frame*bands:][:bands], was[min(frame+1, last)*bands:][:bands]
		out := mel[t*bands:][:bands]
		for i, x := range a {
			out[i] = float32(float64(x) + float64(rest*(float64(b[i])-float64(x))))
		}
	}
}

// report is the warp as the host shows it: the frame, and its new place.
func (w warp) report() []int { return []int{w.from, w.to} }
