package report

import (
	"fmt"
	"slices"
	"strings"

	"github.com/xtts-host/xtts-host/host/observe/event"
	"github.com/xtts-host/xtts-host/host/observe/measured"
)

// worseDB is the rise of the distortion that counts as broken speech, in dB.
const worseDB = 1.0

// Broken says how the speech of an evaluation has become worse than that of the one before: a clip that the model does
// not end any more, or whose length has left half to twice that of the recording; or, where no clip was broken before,
// a distortion that has risen by more than 1 dB on the mean of the clips that both have. Silence may be nearer to a
// recording than the first words of a model that learns. It is "" if none of this has happened. Either may be nil.
func Broken(before, now *event.Spoken) string {
	if before == nil || now == nil {
		return ""
	}
	var list []string
	whole := true // before
	var was, is float64
	compared := 0
	for _, u := range now.Utterances {
		i := slices.IndexFunc(before.Utterances, func(b event.Utterance) bool {
			return b.Clip == u.Clip && b.Number == u.Number
		})
		if i < 0 {
			continue
		}
		b, name := before.Utterances[i], fmt.Sprintf("clip %d", u.Number)
		if !u.Clip {
			name = fmt.Sprintf("sentence %d", u.Number)
		}
		ratioBefore, _ := event.Find(b.Measures, measured.LengthRatio)
		whole = whole && (!u.Clip || Whole(b))
		ratio, has := event.Find(u.Measures, measured.LengthRatio)
		switch {
		case !u.Ended && b.Ended:
			list = append(list, fmt.Sprintf("%s was cut after %.1f s%s", name, u.Seconds, of(u)))
		case has && Sound(ratioBefore) && !Sound(ratio):
			list = append(list, fmt.Sprintf("%s has %.1f s%s", name, u.Seconds, of(u)))
		}
		distance, ok := event.Find(u.Measures, measured.MCD)
		if distanceBefore, had := event.Find(b.Measures, measured.MCD); ok && had {
			was, is, compared = was+distanceBefore, is+distance, compared+1
		}
	}
	was, is = was/float64(compared), is/float64(compared)
	if whole && is > was+worseDB { // not without a comparison
		list = append(list, fmt.Sprintf("the distortion rose from %.1f to %.1f dB", was, is))
	}
	if more := len(list) - 3; more > 0 {
		list = append(list[:3], fmt.Sprintf("and %d more", more))
	}
	return strings.Join(list, ", ")
}

// of is the length of the recording: " of 2.1".
func of(u event.Utterance) string {
	if ratio, ok := event.Find(u.Measures, measured.LengthRatio); ok && ratio > 0 {
		return fmt.Sprintf(" of %.1f", u.Seconds/ratio)
	}
	return ""
}
