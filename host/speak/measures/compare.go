package measures

import "math"

// perFrame is what makes the distortion of two cepstra a distance in dB: of two smooth spectra, the root mean square of
// the differences of their levels.
var perFrame = 10 / math.Ln10 * math.Sqrt2

// Comparison says how far speech is from the recording of the same text.
type Comparison struct {
	// MCD is the mel cepstral distortion in dB.
	MCD float64
	// F0Cents is the root mean square of the differences of pitch, in cents. Voiced is false if no pair of frames is
	// voiced in both.
	F0Cents float64
	Voiced  bool
	// VoicingError is the share of pairs of frames of which one is voiced.
	VoicingError float64
}

// Compare compares speech with a recording, along the path of least distortion.
func Compare(truth, speech *Voice) (c Comparison) {
	path := align(truth.Cepstra, speech.Cepstra)
	squares, voiced := 0.0, 0
	for _, p := range path {
		c.MCD += distance(&truth.Cepstra[p.truth], &speech.Cepstra[p.speech])
		f, g := truth.F0[p.truth], speech.F0[p.speech]
		switch {
		case f > 0 && g > 0:
			cents := 1200 * math.Log2(g/f)
			squares += cents * cents
			voiced++
		case f > 0 || g > 0:
			c.VoicingError++
		}
	}
	c.MCD /= float64(len(path))
	c.VoicingError /= float64(len(path))
	if c.Voiced = voiced > 0; c.Voiced {
		c.F0Cents = math.Sqrt(squares / float64(voiced))
	}
	return c
}

// distance is the distortion between two frames, in dB.
func distance(a, b *[Coefficients]float64) float64 {
	sum := 0.0
	for k := range a {
		d := a[k] - b[k]
		sum += d * d
	}
	return perFrame * math.Sqrt(sum)
}

// pair are two frames that are compared.
type pair struct{ truth, speech int }

// The steps of a path, in the order in which one of equal cost is taken.
const (
	both = iota
	truthOnly
	speechOnly
)

// align returns the path from the first frames of both to their last ones whose sum of distances is the least, with the
// steps (1, 1), (1, 0) and (0, 1) (dynamic time warping: Sakoe and Chiba 1978, without weights of steps). Both have a
// frame or more.
func align(truth, speech [][Coefficients]float64) []pair {
	rows, columns := len(truth), len(speech)
	steps := make([]uint8, rows*columns)
	before, now := make([]float64, columns), make([]float64, columns)
	for i := range rows {
		for j := range columns {
			best, step := math.Inf(1), uint8(both)
			switch {
			case i == 0 && j == 0:
				best = 0
			case i > 0 && j > 0:
				best = before[j-1]
			}
			if i > 0 && before[j] < best {
				best, step = before[j], truthOnly
			}
			if j > 0 && now[j-1] < best {
				best, step = now[j-1], speechOnly
			}
			now[j] = best + distance(&truth[i], &speech[j])
			steps[i*columns+j] = step
		}
		before, now = now, before
	}
	var path []pair
	for i, j := rows-1, columns-1; ; {
		path = append(path, pair{i, j})
		if i == 0 && j == 0 {
			return path // from the end: the order does not matter to a mean
		}
		step := steps[i*columns+j]
		if step != speechOnly {
			i--
		}
		if step != truthOnly {
			j--
		}
	}
}

// Cosine is the similarity of two vectors of one length, from -1 to 1: the cosine of the angle between them. It is NaN
// for a vector of zeros.
func Cosine(a, b []float32) float64 {
	var ab, aa, bb float64
	for i, x := range a {
		y := float64(b[i])
		ab += float64(x) * y
		aa += float64(x) * float64(x)
		bb += y * y
	}
	return ab / math.Sqrt(aa*bb)
}
