package samples

import (
	"github.com/xtts-host/xtts-host/host/data/dataset"
	"github.com/xtts-host/xtts-host/host/settings/texts"
	"github.com/xtts-host/xtts-host/host/speak/inference"
	"github.com/xtts-host/xtts-host/host/speak/synthesize"
	"github.com/xtts-host/xtts-host/ortgraphs"
	"github.com/xtts-host/xtts-host/shared/hint"
)

// The clips that are chosen have so many seconds: enough for a voice, and few enough that training does not wait long.
const (
	shortestClip = 0.5
	longestClip  = 30
)

// A clip is spoken in at most so many times its length, or so many seconds if that is more. A model that does not end
// is cut there, and not at the end of what the bundle allows: training waits for it.
const (
	atMost     = 3
	leastLimit = 2
)

// Clips chooses clips of a data set, spread evenly over its list, whose texts are spoken in their own voices. rules are
// those of the run's texts. It finds fewer if fewer are of a length that serves, and fails without any.
func Clips(n int, bundle *ortgraphs.Bundle, data *dataset.Index, rules texts.Rules) (List, error) {
	tokenizer, err := synthesize.NewTokenizer(bundle, rules)
	if err != nil {
		return List{}, err
	}
	voiced, least := leastVoice(bundle)
	least = max(least, shortestClip)
	var clips []Sample
	next := 0
	for i := range n {
		for next = max(next, i*len(data.Rows)/n); next < len(data.Rows); next++ {
			row := &data.Rows[next]
			seconds := float64(row.Samples) / float64(data.SampleRate)
			if seconds < least || seconds > longestClip {
				continue
			}
			language := data.Languages[row.LanguageID]
			text, err := tokenizer.Text(row.Text, language)
			if err != nil {
				continue // training has its own rules for such a text
			}
			s := Sample{
				Place: row.ID, Content: row.Text, Language: language, Clip: row,
				Text: text.Within(max(atMost*seconds, leastLimit)),
			}
			if voiced {
				s.Voice = row
			}
			clips = append(clips, s)
			next++
			break
		}
	}
	if len(clips) == 0 {
		return List{}, hint.Errorf("name other validation data, or speak none: --spoken-clips 0",
			"no clip of %s has a length of %g to %d s and a text that can be spoken", data.List, least, longestClip)
	}
	bytes, err := inference.CopiedBytes(bundle, bundle.Manifest.Speaks)
	return List{Clips: clips, Bytes: bytes}, err
}
