package dataset

import (
	"fmt"
	"strings"
)

// ofLanguage stands for the language of a row in Config.Prefix.
const ofLanguage = "{language}"

// Tagged reports whether a prefix (Config.Prefix) depends on the language of the text.
func Tagged(prefix string) bool { return strings.Contains(prefix, ofLanguage) }

// Tokens returns the token ids of a text in a language, after those of the prefix (Config.Prefix), as a row of an Index
// has them, and the characters outside the vocabulary.
func (t *Tokenizer) Tokens(prefix, language, text string) (ids []int32, unknown []rune, err error) {
	if ids, err = t.prefix(prefix, language); err != nil {
		return nil, nil, err
	}
	of, unknown := t.Encode(normalize(text))
	return append(ids, of...), unknown, nil
}

// prefix returns the ids of what comes before a text in a language. It is an error if that does not consist of added
// tokens, because letters would be read as text.
func (t *Tokenizer) prefix(pattern, language string) (ids []int32, err error) {
	rest := strings.ReplaceAll(pattern, ofLanguage, language)
	for rest != "" {
		at, token := t.nextAdded(rest)
		if token == nil || at > 0 {
			if Tagged(pattern) {
				return nil, fmt.Errorf("language %q: the tokenizer has no token %s", language, rest)
			}
			return nil, fmt.Errorf("the tokenizer has no token %s, which the bundle puts before each text", rest)
		}
		ids = append(ids, int32(token.ID))
		rest = rest[len(token.Content):]
	}
	return ids, nil
}

// Languages returns the languages for which the tokenizer has a prefix; none if it is the same for all. Tokens in
// capitals, such as [STOP], are of no language.
func (t *Tokenizer) Languages(pattern string) (languages []string) {
	before, after, ok := strings.Cut(pattern, ofLanguage)
	if !ok {
		return nil
	}
	for _, a := range t.added {
		language, starts := strings.CutPrefix(a.Content, before)
		language, ends := strings.CutSuffix(language, after)
		if starts && ends && language != "" && language == strings.ToLower(language) {
			languages = append(languages, language)
		}
	}
	return languages
}
