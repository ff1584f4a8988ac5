package dataset

import (
	"iter"
	"slices"
	"strings"
	"sync"
	"unicode"
	"unicode/utf8"

	"github.com/gomlx/go-huggingface/tokenizers/hftokenizer"
	"golang.org/x/text/unicode/norm"
)

// Tokenizer gives the token ids that the Hugging Face library gives for the same tokenizer.json. It is safe for
// concurrent use.
//
// It reads BPE models, with or without byte fallback, behind a Whitespace, WhitespaceSplit or Metaspace pre-tokenizer and
// the normalizers Lowercase, NFC, NFD, NFKC and NFKD. LoadTokenizer refuses everything else by name: a tokenizer that is
// nearly right trains a model that is nearly right.
type Tokenizer struct {
	hash        string
	model       *hftokenizer.Tokenizer // splits into words and applies the merges, nothing else
	vocab       map[string]int
	unknown     int32   // id of unk_token
	bytes       []int32 // with byte fallback: the id of each byte; unknown is then never used
	normalizers []string
	metaspace   bool
	added       []addedToken

	mu    sync.RWMutex
	words map[string][]int32 // the ids of words met before: texts repeat them
}

// maxWords bounds Tokenizer.words, for texts that are no language.
const maxWords = 1 << 16

// metaspace is the visible space of Metaspace pre-tokenizers, U+2581.
const metaspace = "▁"

// Hash identifies the tokenizer: the hex SHA-256 of its file.
func (t *Tokenizer) Hash() string { return t.hash }

// ByteFallback reports whether a character that the vocabulary lacks is spelled in the bytes of its UTF-8 form, instead of
// as unk_token.
func (t *Tokenizer) ByteFallback() bool { return t.bytes != nil }

// Encode returns the token ids of a text, and the characters that the vocabulary lacks, as they are after
// normalization and as often as they occur; each of them has become the id of unk_token, or of its bytes.
func (t *Tokenizer) Encode(text string) (ids []int32, unknown []rune) {
	for text != "" {
		at, token := t.nextAdded(text)
		ids, unknown = t.encodePlain(ids, unknown, text[:at])
		if token == nil {
			break
		}
		ids = append(ids, int32(token.ID))
		text = text[at+len(token.Content):]
	}
	return ids, unknown
}

// nextAdded finds the leftmost added token, the longest where several start; nil and the text's end without one.
func (t *Tokenizer) nextAdded(text string) (at int, token *addedToken) {
	at = len(text)
	for i := range t.added {
		a := &t.added[i]
		p := strings.Index(text, a.Content)
		if p >= 0 && (token == nil || p < at || p == at && len(a.Content) > len(token.Content)) {
			at, token = p, a
		}
	}
	return at, token
}

func (t *Tokenizer) encodePlain(ids []int32, unknown []rune, text string) ([]int32, []rune) {
	text = t.normalize(text)
	start := len(ids)
	for word := range t.split(text) {
		ids = append(ids, t.encodeWord(word)...)
	}
	if t.bytes == nil && !slices.Contains(ids[start:], t.unknown) {
		return ids, unknown
	}
	for _, r := range text {
		if !t.metaspace && unicode.IsSpace(r) {
			continue // separates words
		}
		if !t.knows(t.symbol(r)) {
			unknown = append(unknown, r)
		}
	}
	return ids, unknown
}

// symbol returns what the model looks up for a character: itself, but for the space of Metaspace.
func (t *Tokenizer) symbol(r rune) string {
	if t.metaspace && r == ' ' {
		return metaspace
	}
	return string(r)
}

func (t *Tokenizer) knows(token string) bool {
	_, ok := t.vocab[token]
	return ok
}

// split yields the parts of a text that the pre-tokenizer keeps apart at white space, so that each has its ids whatever
// stands beside it. Metaspace leaves the space at the front of its word.
func (t *Tokenizer) split(text string) iter.Seq[string] {
	if !t.metaspace {
		return strings.FieldsSeq(text)
	}
	return func(yield func(string) bool) {
		for text != "" {
			end := len(text)
			if i := strings.IndexByte(text[1:], ' '); i >= 0 {
				end = 1 + i
			}
			if !yield(text[:end]) {
				return
			}
			text = text[end:]
		}
	}
}

func (t *Tokenizer) encodeWord(word string) []int32 {
	t.mu.RLock()
	ids, ok := t.words[word]
	t.mu.RUnlock()
	if ok {
		return ids
	}
	ids = t.merge(word)
	t.mu.Lock()
	defer t.mu.Unlock()
	if len(t.words) < maxWords {
		t.words[strings.Clone(word)] = ids // word is a part of its text, which would live on
	}
	return ids
}

// merge returns the ids of a word. The library does not know byte fallback, so it gets the stretches between the
// characters that are spelled in bytes: no merge reaches over those (checkBytes).
func (t *Tokenizer) merge(word string) (ids []int32) {
	model := func(s string) {
		for _, id := range t.model.Encode(s) {
			ids = append(ids, int32(id))
		}
	}
	if t.bytes == nil {
		model(word)
		return ids
	}
	start := 0
	for i, r := range word {
		symbol := t.symbol(r)
		if t.knows(symbol) {
			continue
		}
		model(word[start:i])
		for _, b := range []byte(symbol) {
			ids = append(ids, t.bytes[b])
		}
		_, n := utf8.DecodeRuneInString(word[i:]) // 1 for what is not UTF-8
		start = i + n
	}
	model(word[start:])
	return ids
}

func (t *Tokenizer) normalize(s string) string {
	for _, n := range t.normalizers {
		switch n {
		case "Lowercase":
			// The only character whose lower case is two characters (Unicode, SpecialCasing.txt); Go gives the first.
			s = strings.ToLower(strings.ReplaceAll(s, "\u0130", "i\u0307"))
		case "NFC":
			s = norm.NFC.String(s)
		case "NFD":
			s = norm.NFD.String(s)
		case "NFKC":
			s = norm.NFKC.String(s)
		case "NFKD":
			s = norm.NFKD.String(s)
		}
	}
	return s
}
