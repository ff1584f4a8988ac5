package dataset

import (
	"fmt"
	"strings"
)

// ofLanguage stands for the language of a row in Config.Prefix.
const ofLanguage = "{language}"

// prefix returns the ids of what comes before a text in a language. It is an error if that does not consist of added
// tokens, because letters would be read as text.
func (t *Tokenizer) prefix(pattern, language string) (ids []int32, err error) {
	rest := strings.ReplaceAll(pattern, ofLanguage, language)
	for rest != "" {
		at, token := t.nextAdded(rest)
		if token == nil || at > 0 {
			if strings.Contains(pattern, ofLanguage) {
				return nil, fmt.Errorf("language %q: the tokenizer has no token %s", language, rest)
			}
			return nil, fmt.Errorf("the tokenizer has no token %s, which the bundle puts before each text", rest)
		}
		ids = append(ids, int32(token.ID))
		rest = rest[len(token.Content):]
	}
	return ids, nil
}
