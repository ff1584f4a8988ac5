package samples

import (
	"crypto/sha256"
	"fmt"
	"slices"

	"github.com/xtts-host/xtts-host/host/data/dataset"
	"github.com/xtts-host/xtts-host/host/settings/texts"
	"github.com/xtts-host/xtts-host/host/speak/inference"
	"github.com/xtts-host/xtts-host/host/speak/synthesize"
	"github.com/xtts-host/xtts-host/ortgraphs"
	"github.com/xtts-host/xtts-host/shared/hint"
	"github.com/xtts-host/xtts-host/shared/manifest"
)

// Sample is a text with its voice.
type Sample struct {
	Place             string // in the file, as "samples.txt:3", or the id of a clip
	Content, Language string
	Text              synthesize.Text // of Content
	Voice             *dataset.Row    // nil for a model with one voice
	Clip              *dataset.Row    // the recording of the text; nil for a sentence
}

// List is what a run speaks.
type List struct {
	Clips, Sentences []Sample
	Bytes            int // of the weights that speaking copies on the device of the model
	// Optional says that the run goes on without clips that cannot be spoken: the user has not asked for them.
	Optional bool
}

// Hash is of what is spoken, in which order: ranks that share it out have the same.
func (l List) Hash() string {
	h := sha256.New()
	for _, s := range slices.Concat(l.Clips, l.Sentences) {
		voice := ""
		if s.Voice != nil {
			voice = s.Voice.ID
		}
		fmt.Fprintf(h, "%t %q %q %q %q\n", s.Clip != nil, s.Place, s.Content, s.Language, voice)
	}
	return fmt.Sprintf("%d clips and %d sentences, %x", len(l.Clips), len(l.Sentences), h.Sum(nil)[:6])
}

// most bounds the sentences of a file: training waits for them.
const most = 200

// Read reads a file of sentences for a bundle that speaks. A sentence without a voice gets that of the first row of the
// data set that is long enough, and its language. For a model with one voice, any row is. rules are those of the run's
// texts.
func Read(file string, bundle *ortgraphs.Bundle, data *dataset.Index, rules texts.Rules) (List, error) {
	list, err := dataset.ReadSentences(file)
	if err != nil {
		return List{}, err
	}
	if len(list) > most {
		return List{}, hint.Errorf("training waits for them at each evaluation: choose some",
			"%d sentences, at most %d are spoken", len(list), most)
	}
	tokenizer, err := synthesize.NewTokenizer(bundle, rules)
	if err != nil {
		return List{}, err
	}
	voiced, least := leastVoice(bundle)
	like := voice(data, least)
	samples := make([]Sample, len(list))
	for i, s := range list {
		if s.Voice == nil && like == nil {
			return List{}, hint.Errorf(`name voices in JSON Lines: {"audio_filepath": "me.wav", "text": "One."}`,
				"%s: no clip of %s is long enough for a voice", s.Place, data.List)
		}
		if s.Voice == nil {
			s.Voice, s.Language = like, data.Languages[like.LanguageID]
		}
		text, err := tokenizer.Text(s.Text, s.Language)
		if err != nil {
			return List{}, fmt.Errorf("%s: %w", s.Place, err)
		}
		samples[i] = Sample{Place: s.Place, Content: s.Text, Language: s.Language, Text: text}
		if voiced {
			samples[i].Voice = s.Voice
		}
	}
	bytes, err := inference.CopiedBytes(bundle, bundle.Manifest.Speaks)
	return List{Sentences: samples, Bytes: bytes}, err
}

// voice returns the first row that has so many seconds, or nil.
func voice(data *dataset.Index, least float64) *dataset.Row {
	for i := range data.Rows {
		if row := &data.Rows[i]; float64(row.Samples) >= least*float64(data.SampleRate) {
			return row
		}
	}
	return nil
}

// leastVoice reports whether a bundle speaks in voices, and the seconds that a clip of one has at least.
func leastVoice(bundle *ortgraphs.Bundle) (voiced bool, least float64) {
	if voiced = bundle.Manifest.Speaks(manifest.GraphConditioning); voiced {
		least = bundle.Manifest.Synthesis.Reference.Least
	}
	return voiced, least
}
