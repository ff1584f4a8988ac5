package report

import (
	"math"

	"github.com/xtts-host/xtts-host/host/observe/event"
	"github.com/xtts-host/xtts-host/host/observe/measured"
)

// What --best-by may name apart from a metric: ByLoss, or BySpoken and a measure of speech.
const (
	ByLoss   = "loss"
	BySpoken = "spoken."
)

// Judge returns a number for the speech of an evaluation that is lower the better it is by a measure: the mean over the
// utterances, negated for the similarity, and for the ratio of lengths the mean of its distance from 1, as a magnitude
// of the natural logarithm. It is NaN, which is never better, if texts are missing, a clip has no such measure, or its
// speech is not whole: hum that is cut and silence are nearer to a recording, by some measures, than first words.
func Judge(e *event.Spoken, name string) float64 {
	if e == nil || e.Incomplete {
		return math.NaN()
	}
	m, sum, n := measured.Of(name), 0.0, 0
	for _, u := range e.Utterances {
		v, ok := event.Find(u.Measures, name)
		switch {
		case u.Clip && (!ok || name != measured.LengthRatio && !Whole(u)):
			return math.NaN()
		case !ok:
			continue
		}
		sum, n = sum+m.Judged(v), n+1
	}
	if n == 0 {
		return math.NaN()
	}
	return sum / float64(n)
}

// What counts as broken speech.
const (
	shortRatio, longRatio = 0.5, 2
)

// Whole reports whether the model has ended the text of a clip, with half to twice the length of the recording.
func Whole(u event.Utterance) bool {
	ratio, _ := event.Find(u.Measures, measured.LengthRatio)
	return u.Ended && Sound(ratio)
}

// Sound reports whether a ratio of lengths is that of speech which is not broken.
func Sound(ratio float64) bool { return ratio >= shortRatio && ratio <= longRatio }
