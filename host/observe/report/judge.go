package report

import (
	"math"
	"slices"

	"github.com/xtts-host/xtts-host/host/observe/event"
)

// What --best-by may name apart from a metric: ByLoss, or BySpoken and a measure of speech.
const (
	ByLoss   = "loss"
	BySpoken = "spoken."
)

// The measures of speech of which a lower one is not a better one.
const (
	LengthRatio       = "length_ratio"
	SpeakerSimilarity = "speaker_similarity"
)

// Judge returns a number for the speech of an evaluation that is lower the better it is by a measure: the mean over the
// utterances, negated for the similarity, and for the ratio of lengths the mean of its distance from 1, as a magnitude
// of the natural logarithm. It is NaN, which is never better, if texts are missing, or a clip has no such measure.
func Judge(e *event.Spoken, name string) float64 {
	if e == nil || e.Incomplete {
		return math.NaN()
	}
	sum, n := 0.0, 0
	for _, u := range e.Utterances {
		i := slices.IndexFunc(u.Measures, func(v event.Value) bool { return v.Name == name })
		if i < 0 && u.Clip {
			return math.NaN()
		}
		if i < 0 {
			continue
		}
		v := u.Measures[i].Value
		switch name {
		case LengthRatio:
			v = math.Abs(math.Log(v))
		case SpeakerSimilarity:
			v = -v
		}
		sum, n = sum+v, n+1
	}
	if n == 0 {
		return math.NaN()
	}
	return sum / float64(n)
}
