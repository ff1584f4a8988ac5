package samples

import (
	"fmt"

	"github.com/xtts-host/xtts-host/host/data/dataset"
	"github.com/xtts-host/xtts-host/host/settings/texts"
	"github.com/xtts-host/xtts-host/host/speak/inference"
	"github.com/xtts-host/xtts-host/host/speak/synthesize"
	"github.com/xtts-host/xtts-host/ortgraphs"
	"github.com/xtts-host/xtts-host/shared/hint"
	"github.com/xtts-host/xtts-host/shared/manifest"
)

// Sample is a sentence with its voice.
type Sample struct {
	Place string // in the file, as "samples.txt:3"
	Text  synthesize.Text
	Voice *dataset.Row // nil for a model with one voice
}

// List is what a file has.
type List struct {
	Sentences []Sample
	Bytes     int // of the weights that speaking copies on the device of the model
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
	voiced, least := bundle.Manifest.Speaks(manifest.GraphConditioning), 0.0
	if voiced {
		least = bundle.Manifest.Synthesis.Reference.Least
	}
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
		samples[i] = Sample{s.Place, text, nil}
		if voiced {
			samples[i].Voice = s.Voice
		}
	}
	bytes, err := inference.CopiedBytes(bundle, bundle.Manifest.Speaks)
	return List{samples, bytes}, err
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
