package summary

import (
	"fmt"
	"strings"
	"testing"

	"github.com/xtts-host/xtts-host/host/data/dataset"
	"github.com/xtts-host/xtts-host/host/settings/texts"
	"github.com/xtts-host/xtts-host/shared/manifest"
)

func TestUnseenWarnings(t *testing.T) {
	train := &dataset.Index{Speakers: []string{"anna"}, Languages: []string{"en"}, Rows: []dataset.Row{{}}}
	val := &dataset.Index{Speakers: []string{"anna", "ben", ""}, Languages: []string{"en", "fa"}}
	for i := range 6 {
		val.Rows = append(val.Rows, dataset.Row{SpeakerID: int32(i % 3), LanguageID: int32(i / 5)})
	}
	got := strings.Join(unseen(train, val), "\n")
	const want = `4 validation clips have a speaker that no training clip has (no name: 2 clips, ben: 2 clips): the validation loss is that of voices that the model does not learn
1 validation clip has a language that no training clip has (fa: 1 clip): the validation loss is that of languages that the model does not learn`
	if got != want {
		t.Error(got)
	}
	if lines := unseen(train, train); lines != nil {
		t.Error(lines)
	}
}

// TestLanguagesWithoutEffect: a language that the model does not take, and rules for letters without the language of
// the texts, are said.
func TestLanguagesWithoutEffect(t *testing.T) {
	letters, err := texts.Parse("letters")
	if err != nil {
		t.Fatal(err)
	}
	named, err := texts.Parse("letters:fa")
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		language, text, prefix string
		rules                  texts.Rules
		unused, unwritten      bool
	}{
		{"en", "plain", "", letters, false, false},
		{"fa", "علی", "", letters, true, false},
		{"fa", "علی", "[{language}]", letters, false, false},
		{"en", "علی", "", letters, false, true},
		{"en", "علی", "", named, false, false},
		{"en", "۱", "", letters, false, false},
		{"en", "علی", "", texts.Rules{}, false, false},
	} {
		ix := &dataset.Index{Languages: []string{c.language}, Rows: []dataset.Row{{Text: c.text}}}
		b := &manifest.Bundle{Name: "b", Tokenizer: &manifest.Tokenizer{Prefix: c.prefix}}
		got := fmt.Sprint(unused(ix, b) != nil, unwritten(ix, c.rules) != nil)
		if got != fmt.Sprint(c.unused, c.unwritten) {
			t.Errorf("%+v: %s", c, got)
		}
	}
}
