package pitch

import "math"

// flat is the mean difference, as a share of the frame's energy, below which a frame counts as constant. Rounding
// leaves about 1e-13 of a constant frame; a tone 90 dB below a constant has 1e-9.
const flat = 1e-9

// period returns the period of s.frame in samples, or 0 if it has none. energy is the sum of the frame's squares.
func (e *Extractor) period(s *scratch, energy float64) float64 {
	s.fft.Power(s.spectrum, s.frame)
	s.even[0] = s.spectrum[0]
	for k, p := range s.spectrum[1:] {
		s.even[1+k], s.even[e.size-1-k] = p, p
	}
	correlation := s.spectrum // from here on, multiplied by e.size
	s.fft.Real(correlation, s.even)

	frame, diff := s.frame[:e.config.FrameLength], s.diff
	scale := 2 / float64(e.size)
	ends := 0.0                              // energy of the samples at both ends that have no partner at this lag
	sum := 0.0                               // of the differences
	before, last := math.Inf(1), math.Inf(1) // the normalised differences at the two lags before
	period, least := 0, e.config.VoicingThreshold
	for lag := 1; lag <= e.lags.longest+1; lag++ {
		head, tail := frame[lag-1], frame[len(frame)-lag]
		ends += float64(head*head) + float64(tail*tail)
		diff[lag] = math.Max(2*energy-ends-float64(scale*correlation[lag]), 0) * e.weight[lag]
		sum += diff[lag]
		normal := diff[lag] * float64(lag) / sum
		if last < least && last < before && last <= normal && lag > e.lags.shortest {
			period, least = lag-1, last
			if last < e.config.Threshold {
				break
			}
		}
		before, last = last, normal
	}
	if period == 0 || sum <= flat*energy*float64(period) {
		return 0
	}
	return float64(period) + vertex(diff[period-1], diff[period], diff[period+1])
}

// vertex returns the position, relative to the middle value, of the minimum of the parabola through three values at
// distance 1. It returns 0 if the minimum is beyond the outer values, or does not exist.
func vertex(left, middle, right float64) float64 {
	shift := (left - right) / (2 * (left - 2*middle + right))
	if !(math.Abs(shift) <= 1) {
		return 0
	}
	return shift
}
