package synthesize

import (
	"fmt"
	"strings"

	"github.com/xtts-host/xtts-host/host/data/dataset"
	"github.com/xtts-host/xtts-host/host/settings/texts"
	"github.com/xtts-host/xtts-host/ortgraphs"
	"github.com/xtts-host/xtts-host/shared/hint"
	"github.com/xtts-host/xtts-host/shared/manifest"
)

// Text is a text as the model takes it.
type Text struct {
	parts   [][]int32
	limit   float64 // seconds; 0: none but the bundle's
	Unknown []rune  // that the tokenizer can encode neither as tokens nor as bytes
}

// Within returns the text, cut after so many seconds of speech if the model has not ended it by then.
func (t Text) Within(seconds float64) Text {
	t.limit = seconds
	return t
}

// Tokenizer makes what a model takes of texts.
type Tokenizer struct {
	tokenizer *dataset.Tokenizer
	prefix    string
	known     string // the languages that it has tags of
	most      int    // tokens of a part
	rules     texts.Rules
}

// NewTokenizer reads the tokenizer of a bundle. rules are those of the texts that the model was trained on.
func NewTokenizer(bundle *ortgraphs.Bundle, rules texts.Rules) (*Tokenizer, error) {
	m := bundle.Manifest
	if m.Tokenizer == nil {
		return nil, fmt.Errorf("the bundle %s has no tokenizer", m.Name)
	}
	tokenizer, err := dataset.LoadTokenizer(bundle.Path(m.Tokenizer.File))
	if err != nil {
		return nil, err
	}
	return &Tokenizer{
		tokenizer: tokenizer, prefix: m.Tokenizer.Prefix,
		known: strings.Join(tokenizer.Languages(m.Tokenizer.Prefix), ", "),
		most:  m.Buckets[len(m.Buckets)-1][manifest.SymbolText], rules: rules,
	}, nil
}

// Tagged reports whether the language of a text matters.
func (t *Tokenizer) Tagged() bool { return t.known != "" }

// Text divides a text into parts that the model takes, at most as long as those of its training.
func (t *Tokenizer) Text(text, language string) (Text, error) {
	if t.Tagged() && language == "" {
		return Text{}, hint.Errorf("the bundle has "+t.known, "--language is missing")
	}
	text = t.rules.Lines(text, language)
	_, unknown, err := t.tokenizer.Tokens(t.prefix, language, text)
	if err != nil {
		return Text{}, hint.Errorf("the bundle has "+t.known, "%w", err)
	}
	if t.tokenizer.ByteFallback() {
		unknown = nil
	}
	tokens := func(part string) []int32 {
		ids, _, _ := t.tokenizer.Tokens(t.prefix, language, part) // no error, as of the whole text
		return ids
	}
	list, long := pieces(text, func(part string) bool { return len(tokens(part)) <= t.most })
	switch {
	case long != "":
		return Text{}, hint.Errorf("remove it, or its combining marks",
			"one character of %d code points has more than %d tokens: %.40q", len([]rune(long)), t.most, long)
	case len(list) == 0:
		return Text{}, hint.Errorf(`for example: --text "Good morning."`, "there is no text to speak")
	}
	out := Text{Unknown: unknown}
	for _, part := range list {
		out.parts = append(out.parts, tokens(part))
	}
	return out, nil
}
