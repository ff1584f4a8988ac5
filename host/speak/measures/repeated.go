package measures

// What counts as a repetition.
const (
	window  = 40  // frames: 0.4 s that are alike
	nearest = 30  // frames from a passage to its repetition, at least: 0.3 s
	alike   = 4.0 // dB: the mean distance of the frames of both
)

// Repeated is the share of the speech that repeats what was said before, from 0 to 1: of the frames that are not
// silent, those in a passage of 0.4 s which is like an earlier one, 0.3 s or more before, on the mean of its frames
// that are not silent. A sound that goes on unchanged repeats itself, too.
//
// It looks along the diagonals of the matrix of distances of all frames.
func Repeated(v *Voice) float64 {
	frames := len(v.Cepstra)
	repeats, spoken := make([]bool, frames), 0
	for _, s := range v.Silent {
		if !s {
			spoken++
		}
	}
	distances := make([]float64, frames)
	for lag := nearest; lag+window <= frames; lag++ {
		sum, loud := 0.0, 0
		for t := lag; t < frames; t++ {
			distances[t] = distance(&v.Cepstra[t], &v.Cepstra[t-lag])
			if v.Silent[t] || v.Silent[t-lag] {
				distances[t] = -1
			} else {
				sum, loud = sum+distances[t], loud+1
			}
			first := t - window + 1
			if first < lag {
				continue
			}
			if loud >= window*3/4 && sum < alike*float64(loud) {
				for at := first; at <= t; at++ {
					repeats[at] = true
				}
			}
			if distances[first] >= 0 {
				sum, loud = sum-distances[first], loud-1
			}
		}
	}
	n := 0
	for t, r := range repeats {
		if r && !v.Silent[t] {
			n++
		}
	}
	return float64(n) / float64(max(1, spoken))
}
