package dataset

import (
	"slices"
	"strings"

	"github.com/xtts-host/xtts-host/shared/hint"
)

// IgnoredKey is a key of JSON Lines that neither docs/data.md nor the bundle names.
type IgnoredKey struct {
	Key   string `json:"key"`   // shortened if it is very long
	Lines int    `json:"lines"` // that have it
	Place string `json:"first"` // first occurrence, as "train.jsonl:12"
	// "did you mean language?", if the line at Place lacks a key of a similar name; or ""
	Advice string `json:"advice,omitempty"`
}

// MaxIgnored is the maximum number of ignored keys that an index has: the first ones. Most lists have a few; one whose
// keys are values has any number.
const MaxIgnored = 100

// ignored are the keys of a line that are ignored, and which of speaker and language it lacks. A line without a
// required key has a reason of its own, and one without offset or id is seldom meant to have it.
type ignored struct{ keys, absent []string }

// meant returns a question about which of the keys that a line lacks another one is likely to be, such as language for
// lang or lang_id. Without such a key it returns "".
func meant(key string, absent []string) string {
	for _, ending := range []string{"_id", "_name", "_path", "_file"} {
		key = strings.TrimSuffix(key, ending)
	}
	return hint.DidYouMean(key, absent)
}

// ignore counts the keys of a line that are ignored.
func (b *builder) ignore(e *entry) {
	if e.ignored == nil {
		return
	}
	ix := b.ix
	for i, key := range e.ignored.keys {
		if slices.Contains(e.ignored.keys[:i], key) {
			continue // JSON allows a key twice
		}
		at, ok := b.ignored[key]
		if !ok {
			if at = len(ix.Ignored); at == MaxIgnored {
				continue
			}
			b.ignored[key] = at
			ix.Ignored = append(ix.Ignored,
				IgnoredKey{Key: brief(key), Place: ix.Place(e.line), Advice: meant(key, e.ignored.absent)})
		}
		ix.Ignored[at].Lines++
	}
}
