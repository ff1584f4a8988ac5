package dataset

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"strings"
	"unicode"

	"github.com/gomlx/go-huggingface/tokenizers/hftokenizer"

	"github.com/xtts-host/xtts-host/host/base/files"
	"github.com/xtts-host/xtts-host/shared/hint"
	"github.com/xtts-host/xtts-host/shared/plain"
)

// maxTokenizer bounds the size of tokenizer.json, in bytes. The largest in use have about 256,000 tokens and 35 MB.
const maxTokenizer = 64 << 20

// LoadTokenizer reads tokenizer.json.
func LoadTokenizer(file string) (*Tokenizer, error) {
	data, err := files.Read(file, maxTokenizer)
	if err != nil {
		return nil, fmt.Errorf("tokenizer: %w", err)
	}
	t, err := parseTokenizer(data)
	if err != nil {
		return nil, fmt.Errorf("tokenizer %s: %w", file, err)
	}
	return t, nil
}

func parseTokenizer(data []byte) (*Tokenizer, error) {
	var f tokenizerFile
	sum := sha256.Sum256(data)
	data = plain.Trim(data)
	if err := json.Unmarshal(data, &f); err != nil {
		return nil, err
	}
	t := &Tokenizer{hash: hex.EncodeToString(sum[:]), added: f.AddedTokens, words: map[string]word{}}
	if err := t.check(&f); err != nil {
		return nil, err
	}
	if !t.knows(f.Model.UnkToken) && t.bytes == nil {
		return nil, fmt.Errorf("model.unk_token %q is not in the vocabulary: unknown characters would be dropped",
			f.Model.UnkToken)
	}

	// The library maps U+0130 to one character instead of two, and finds added tokens in normalized text, where they do
	// not count. So normalization and added tokens are handled here, and the library gets the rest.
	var rest map[string]json.RawMessage
	if err := json.Unmarshal(data, &rest); err != nil {
		return nil, err
	}
	delete(rest, "normalizer")
	delete(rest, "added_tokens")
	data, err := json.Marshal(rest)
	if err != nil {
		return nil, err
	}
	if t.model, err = hftokenizer.NewFromContent(nil, data); err != nil {
		return nil, err
	}
	return t, nil
}

// check refuses settings that would give other ids than the Hugging Face library.
func (t *Tokenizer) check(f *tokenizerFile) error {
	if f.Truncation != nil || f.Padding != nil {
		return errors.New("truncation and padding are not supported: the host pads to the bucket")
	}
	if f.PostProcessor != nil {
		return fmt.Errorf("post_processor %s is not supported", f.PostProcessor.Type)
	}
	if f.Normalizer != nil {
		if err := t.addNormalizer(*f.Normalizer); err != nil {
			return err
		}
	}
	for _, a := range f.AddedTokens {
		if a.Content == "" || a.SingleWord || a.LStrip || a.RStrip || a.Normalized {
			return fmt.Errorf("added token %q: single_word, lstrip, rstrip and normalized are not supported", a.Content)
		}
		if a.ID < 0 || a.ID > math.MaxInt32 {
			return fmt.Errorf("added token %q: id %d is not an i32", a.Content, a.ID)
		}
	}
	if err := f.Model.check(); err != nil {
		return err
	}
	if err := json.Unmarshal(f.Model.Vocab, &t.vocab); err != nil {
		return fmt.Errorf("model.vocab: %w", err)
	}
	for token, id := range t.vocab {
		if id < 0 || id > math.MaxInt32 {
			return fmt.Errorf("model.vocab: id %d of %q is not an i32", id, token)
		}
	}
	if err := t.checkMerges(f.Model.merges); err != nil {
		return err
	}
	if f.Model.ByteFallback {
		if err := t.checkBytes(f.Model.merges); err != nil {
			return err
		}
	}
	return t.checkPreTokenizer(f.PreTokenizer, f.Model.merges)
}

// checkMerges refuses merges of missing tokens or into a missing token, as the Hugging Face library does.
func (t *Tokenizer) checkMerges(merges [][2]string) error {
	for i, m := range merges {
		for _, token := range []string{m[0], m[1], m[0] + m[1]} {
			if !t.knows(token) {
				return fmt.Errorf("model.merges[%d]: %q is not in the vocabulary", i, token)
			}
		}
	}
	return nil
}

// checkBytes finds the tokens of the bytes, <0x00> to <0xFF>. It refuses a vocabulary without all of them, because some
// characters would stay unknown, and merges of bytes, which Tokenizer.merge does not apply.
func (t *Tokenizer) checkBytes(merges [][2]string) error {
	isByte := map[string]bool{}
	t.bytes = make([]int32, 256)
	for b := range t.bytes {
		token := fmt.Sprintf("<0x%02X>", b)
		id, ok := t.vocab[token]
		if !ok {
			return fmt.Errorf("model: byte_fallback is set, but %s is not in the vocabulary", token)
		}
		t.bytes[b] = int32(id)
		isByte[token] = true
	}
	for i, m := range merges {
		if isByte[m[0]] || isByte[m[1]] {
			return fmt.Errorf("model.merges[%d]: merges of bytes are not supported", i)
		}
	}
	return nil
}

func (t *Tokenizer) addNormalizer(n normalizer) error {
	switch n.Type {
	case "Lowercase", "NFC", "NFD", "NFKC", "NFKD":
		t.normalizers = append(t.normalizers, n.Type)
	case "Sequence":
		for _, child := range n.Normalizers {
			if err := t.addNormalizer(child); err != nil {
				return err
			}
		}
	default:
		return fmt.Errorf("normalizer %s is not supported; Lowercase, NFC, NFD, NFKC and NFKD are", n.Type)
	}
	return nil
}

func (m *bpeModel) check() error {
	switch {
	case m.Type != "BPE":
		return fmt.Errorf("model %s is not supported; BPE is", m.Type)
	case m.Dropout != 0, m.Prefix != "", m.Suffix != "", m.FuseUnk, m.IgnoreMerges:
		return errors.New("model: dropout, continuing_subword_prefix, end_of_word_suffix, fuse_unk and ignore_merges " +
			"are not supported")
	}
	for i, raw := range m.Merges {
		var pair []string // written as "a b", and since 2024 also as ["a", "b"]
		var s string
		if json.Unmarshal(raw, &s) == nil {
			pair = strings.Split(s, " ")
		} else if err := json.Unmarshal(raw, &pair); err != nil {
			return fmt.Errorf("model.merges[%d]: %w", i, err)
		}
		if len(pair) != 2 || strings.Contains(pair[0]+pair[1], " ") {
			return fmt.Errorf("model.merges[%d]: not two tokens without spaces", i)
		}
		m.merges = append(m.merges, [2]string(pair))
	}
	return nil
}

// checkPreTokenizer refuses pre-tokenizers that the library splits differently. It splits Whitespace like
// WhitespaceSplit, so punctuation stays with its word; the ids are the same if no merge joins the two. It does not
// split at a U+2581 in the text itself; again the ids are the same if no merge crosses one.
func (t *Tokenizer) checkPreTokenizer(p *preTokenizer, merges [][2]string) error {
	if p == nil {
		return errors.New("pre_tokenizer is missing; Whitespace, WhitespaceSplit and Metaspace are supported")
	}
	crosses := func(string) bool { return false }
	switch p.Type {
	case "ByteLevel":
		return hint.Errorf("train it with a Whitespace or Metaspace pre-tokenizer instead",
			"pre_tokenizer ByteLevel is not supported: its ids would differ from the Hugging Face library's")
	case "Whitespace":
		crosses = func(s string) bool {
			return strings.ContainsFunc(s, isWord) && strings.ContainsFunc(s, func(r rune) bool { return !isWord(r) })
		}
	case "WhitespaceSplit":
	case "Metaspace":
		if p.Replacement != metaspace || p.PrependScheme != "never" || p.Split != nil && !*p.Split {
			return fmt.Errorf(
				`pre_tokenizer Metaspace is supported with replacement %q, prepend_scheme "never" and split only`,
				metaspace)
		}
		t.metaspace = true
		crosses = func(s string) bool { return strings.LastIndex(s, metaspace) > 0 }
	default:
		return fmt.Errorf("pre_tokenizer %s is not supported; Whitespace, WhitespaceSplit and Metaspace are", p.Type)
	}
	for i, m := range merges {
		if s := m[0] + m[1]; crosses(s) {
			return fmt.Errorf("model.merges[%d]: %q crosses a boundary of the pre_tokenizer %s", i, s, p.Type)
		}
	}
	return nil
}

// isWord is the class \w of Unicode regular expressions (Unicode Technical Standard 18, annex C).
func isWord(r rune) bool {
	return unicode.IsLetter(r) ||
		unicode.In(r, unicode.M, unicode.Nd, unicode.Nl, unicode.Pc, unicode.Other_Alphabetic, unicode.Join_Control)
}

// tokenizerFile is the part of tokenizer.json that determines ids. Values that are only checked stay raw.
type tokenizerFile struct {
	Truncation    any           `json:"truncation"`
	Padding       any           `json:"padding"`
	AddedTokens   []addedToken  `json:"added_tokens"`
	Normalizer    *normalizer   `json:"normalizer"`
	PreTokenizer  *preTokenizer `json:"pre_tokenizer"`
	PostProcessor *component    `json:"post_processor"`
	Model         bpeModel      `json:"model"`
}

type component struct {
	Type string `json:"type"`
}

type addedToken struct {
	ID         int    `json:"id"`
	Content    string `json:"content"`
	SingleWord bool   `json:"single_word"`
	LStrip     bool   `json:"lstrip"`
	RStrip     bool   `json:"rstrip"`
	Normalized bool   `json:"normalized"`
}

type normalizer struct {
	Type        string       `json:"type"`
	Normalizers []normalizer `json:"normalizers"`
}

type preTokenizer struct {
	Type          string `json:"type"`
	Replacement   string `json:"replacement"`
	PrependScheme string `json:"prepend_scheme"`
	Split         *bool  `json:"split"`
}

type bpeModel struct {
	Type         string            `json:"type"`
	Vocab        json.RawMessage   `json:"vocab"` // a list in other models
	Merges       []json.RawMessage `json:"merges"`
	UnkToken     string            `json:"unk_token"`
	Dropout      float64           `json:"dropout"`
	Prefix       string            `json:"continuing_subword_prefix"`
	Suffix       string            `json:"end_of_word_suffix"`
	FuseUnk      bool              `json:"fuse_unk"`
	ByteFallback bool              `json:"byte_fallback"`
	IgnoreMerges bool              `json:"ignore_merges"`
	merges       [][2]string       // Merges, parsed
}
