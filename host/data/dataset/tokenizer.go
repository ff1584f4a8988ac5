package dataset

import (
	"iter"
	"strings"
	"sync"
	"unicode/utf8"

	"github.com/gomlx/go-huggingface/tokenizers/hftokenizer"
	"golang.org/x/text/unicode/norm"
)

// Tokenizer returns the token ids that the Hugging Face library returns for the same tokenizer.json. It is safe for
// concurrent use.
//
// It supports BPE models, with or without byte fallback, with a Whitespace, WhitespaceSplit or Metaspace pre-tokenizer
// and the normalizers Lowercase, NFC, NFD, NFKC and NFKD. LoadTokenizer refuses everything else by name, because wrong
// ids would train a wrong model without an error.
type Tokenizer struct {
	hash        string
	model       *hftokenizer.Tokenizer // only splits into words and applies the merges
	vocab       map[string]int
	bytes       []int32 // with byte fallback: the id of each byte; unk_token is never used then
	normalizers []string
	metaspace   bool
	added       []addedToken

	mu    sync.RWMutex
	words map[string]word // earlier words: texts repeat them
}

// word is what the tokenizer makes of a word.
type word struct {
	ids     []int32
	fields  string // the ids as Index.Hash takes them
	unknown []rune // its characters that are not in the vocabulary, with repetitions
}

func newWord(ids []int32) word {
	var fields []byte
	for _, id := range ids {
		fields = appendInt(fields, int64(id))
	}
	return word{ids: ids, fields: string(fields)}
}

// maxWords bounds Tokenizer.words, for texts that are not natural language.
const maxWords = 1 << 16

// metaspace is the visible space of Metaspace pre-tokenizers, U+2581.
const metaspace = "▁"

// Hash identifies the tokenizer: the hex SHA-256 of its file.
func (t *Tokenizer) Hash() string { return t.hash }

// ByteFallback reports whether a character outside the vocabulary is encoded as the bytes of its UTF-8 form instead of
// unk_token.
func (t *Tokenizer) ByteFallback() bool { return t.bytes != nil }

// Encode returns the token ids of a text, and the characters outside the vocabulary, after normalization and with
// repetitions. Each of them has become the id of unk_token, or the ids of its bytes.
func (t *Tokenizer) Encode(text string) (ids []int32, unknown []rune) {
	ids = make([]int32, 0, len(text)) // few texts have more
	for w := range t.encode(text) {
		ids, unknown = append(ids, w.ids...), append(unknown, w.unknown...)
	}
	return ids, unknown
}

// encode yields the words of a text, and its added tokens as words of one id.
func (t *Tokenizer) encode(text string) iter.Seq[word] {
	return func(yield func(word) bool) {
		for text != "" {
			at, token := t.nextAdded(text)
			for s := range t.split(t.normalize(text[:at])) {
				if !yield(t.encodeWord(s)) {
					return
				}
			}
			if token == nil || !yield(newWord([]int32{int32(token.ID)})) {
				return
			}
			text = text[at+len(token.Content):]
		}
	}
}

// nextAdded finds the leftmost added token, and the longest if several start there. It returns nil and the end of the
// text if there is none.
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

// symbol returns the string that the model looks up for a character: the character itself, except for the space of
// Metaspace.
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

// split yields the parts of a text that the pre-tokenizer separates at white space, so the ids of a part do not depend
// on its neighbours. Metaspace keeps the space at the start of its word.
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

func (t *Tokenizer) encodeWord(s string) word {
	t.mu.RLock()
	w, ok := t.words[s]
	t.mu.RUnlock()
	if ok {
		return w
	}
	w = newWord(t.merge(s))
	for _, r := range s {
		if !t.knows(t.symbol(r)) {
			w.unknown = append(w.unknown, r)
		}
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	if len(t.words) < maxWords {
		// A copy, because s is a part of its text, which would stay in memory. One with the fields is found faster.
		both := s + w.fields
		w.fields = both[len(s):]
		t.words[both[:len(s)]] = w
	}
	return w
}

// merge returns the ids of a word. The library does not support byte fallback, so it gets the parts between the
// characters that are encoded as bytes. No merge crosses those (checkBytes).
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
		_, n := utf8.DecodeRuneInString(word[i:]) // 1 for invalid UTF-8
		start = i + n
	}
	model(word[start:])
	return ids
}

func (t *Tokenizer) normalize(s string) string {
	for _, n := range t.normalizers {
		switch n {
		case "Lowercase":
			// The only character whose lower case is two characters (Unicode, SpecialCasing.txt); Go returns the first.
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
