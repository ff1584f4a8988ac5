package report

import (
	"testing"

	"github.com/xtts-host/xtts-host/host/observe/event"
	"github.com/xtts-host/xtts-host/host/observe/measured"
)

// utterance is a clip with its length, that of its recording, and its distortion.
func utterance(number int, seconds, truth, mcd float64, ended bool) event.Utterance {
	return event.Utterance{
		Clip: true, Number: number, Seconds: seconds, Ended: ended,
		Measures: []event.Value{{Name: measured.LengthRatio, Value: seconds / truth}, {Name: measured.MCD, Value: mcd}},
	}
}

func evaluation(all ...event.Utterance) *event.Spoken { return &event.Spoken{Utterances: all} }

// TestBroken: speech is broken where a clip is cut, short or long that was not, or the distortion of whole clips rises.
func TestBroken(t *testing.T) {
	good := evaluation(utterance(1, 2, 2, 6, true), utterance(2, 1.5, 2, 6, true))
	cut := evaluation(utterance(1, 2, 2, 6, true), utterance(2, 6, 2, 6, false))
	for _, c := range []struct {
		before, now *event.Spoken
		want        string
	}{
		{nil, cut, ""},
		{good, nil, ""},
		{good, good, ""},
		{cut, cut, ""}, // it was before
		{cut, good, ""},
		{good, cut, "clip 2 was cut after 6.0 s of 2.0"},
		{good, evaluation(utterance(1, 0.9, 2, 6, true), utterance(2, 4.5, 2, 6, true)),
			"clip 1 has 0.9 s of 2.0, clip 2 has 4.5 s of 2.0"},
		{good, evaluation(utterance(1, 0, 2, 6, true), utterance(2, 2, 2, 6, true)), "clip 1 has 0.0 s"},
		{good, evaluation(utterance(1, 2, 2, 6, true), utterance(2, 2, 2, 8.1, true)),
			"the distortion rose from 6.0 to 7.0 dB"},
		{good, evaluation(utterance(1, 2, 2, 6, true), utterance(2, 2, 2, 7.9, true)), ""},
		{cut, evaluation(utterance(1, 2, 2, 9, true), utterance(2, 2, 2, 9, true)), ""}, // words are new
		// of one text, and of two
		{evaluation(utterance(1, 2, 2, 5, true)),
			evaluation(utterance(1, 2, 2, 5, true), utterance(2, 2, 2, 9, true)), ""},
		{evaluation(utterance(1, 2, 2, 5, true), utterance(2, 2, 2, 9, true)),
			evaluation(utterance(1, 2, 2, 6.5, true)), "the distortion rose from 5.0 to 6.5 dB"},
		{evaluation(utterance(1, 2, 2, 5, true)), evaluation(utterance(2, 2, 2, 9, true)), ""},
	} {
		if got := Broken(c.before, c.now); got != c.want {
			t.Errorf("%q, want %q", got, c.want)
		}
	}
}
