package summary

import (
	"slices"
	"testing"

	"github.com/xtts-host/xtts-host/host/data/batch"
	"github.com/xtts-host/xtts-host/host/data/dataset"
	"github.com/xtts-host/xtts-host/host/run/plan"
	"github.com/xtts-host/xtts-host/host/settings/config"
	"github.com/xtts-host/xtts-host/host/stages/catalog"
	"github.com/xtts-host/xtts-host/shared/manifest"
)

// TestLanguageThatNoLineNames: the language of the texts is shown if the model takes it and the list cannot name it.
func TestLanguageThatNoLineNames(t *testing.T) {
	const line = "en is the default, no line of metadata.csv names a language: a column does " +
		"(--list-layout columns=id,text,language), or the key \"language\" of JSON Lines"
	for _, c := range []struct {
		list, tensor string
		want         bool
	}{
		{"metadata.csv", "language_ids", true}, {"metadata.csv", "speaker_ids", false},
		{"train.jsonl", "language_ids", false},
	} {
		ix := &dataset.Index{
			List: c.list, NamesLanguages: c.list == "train.jsonl", Rows: []dataset.Row{{LanguageID: 1}},
			Languages: []string{"fa", "en"}, Speakers: []string{""},
		}
		p := &plan.Plan{
			Config: &config.Config{}, Data: batch.Data{Train: &batch.Split{Index: ix}},
			Stages: plan.Stages{Resolved: &catalog.Resolved{Dataset: []manifest.TensorSpec{{Name: c.tensor}}}},
		}
		if got := dataLines(p); slices.Contains(got, line) != c.want {
			t.Errorf("%s, %s: %q", c.list, c.tensor, got)
		}
	}
}

func TestWay(t *testing.T) {
	long := "one of (telephone, gramophone, loudspeaker, megaphone) 12.5 to 100 %"
	for _, c := range []struct{ stages, want []string }{
		{[]string{"target"}, []string{"decode -> target -> transfer -> train"}},
		{
			[]string{"clip 30 %", "one of (telephone, room) 80 %", "target"},
			[]string{"decode -> clip 30 % -> one of (telephone, room) 80 % -> target", "-> transfer -> train"},
		},
		{[]string{long, "target"}, []string{"decode", "-> " + long, "-> target -> transfer -> train"}},
	} {
		if got := way(c.stages); !slices.Equal(got, c.want) {
			t.Errorf("%q, want %q", got, c.want)
		}
	}
}
