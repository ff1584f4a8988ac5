package dataset

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"unicode/utf8"
)

// embedded is the tokenizer of the embedded bundles.
const embedded = "../../../ortgraphs/builtin/myxtts-nano/tokenizer.json"

// testdata/make_tokenizers.py writes the tokenizers and the ids that the Hugging Face library returns.
func TestTokenizerParity(t *testing.T) {
	data, err := os.ReadFile("testdata/tokenizer_parity.json")
	if err != nil {
		t.Fatal(err)
	}
	var tables map[string][]struct {
		Text string  `json:"text"`
		IDs  []int32 `json:"ids"`
	}
	if err := json.Unmarshal(data, &tables); err != nil {
		t.Fatal(err)
	}
	for name, file := range map[string]string{
		"characters": "testdata/characters.json", "whitespace": "testdata/whitespace.json",
		"metaspace": "testdata/metaspace.json", "persian": "testdata/persian.json", "embedded": embedded,
	} {
		t.Run(name, func(t *testing.T) {
			tok, err := LoadTokenizer(file)
			if err != nil {
				t.Fatal(err)
			}
			if len(tables[name]) < 100 {
				t.Fatalf("only %d cases", len(tables[name]))
			}
			for _, c := range tables[name] {
				if got, _ := tok.Encode(c.Text); !slices.Equal(got, c.IDs) {
					t.Errorf("%q\n got  %v\n want %v", c.Text, got, c.IDs)
				}
			}
		})
	}
}

// The embedded tokenizer has the letters of common scripts, and loses none of any other.
func TestEmbeddedTokenizer(t *testing.T) {
	tok, err := LoadTokenizer(embedded)
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct{ text, unknown string }{
		{"می\u200cروم به کتاب\u200cخانه، ۱۲ بار!", ""},
		{"علي كتاب ١٢؟", ""},
		{"Съешь ещё Ґанок", ""},
		{"Ξεσκεπάζω", ""},
		{"Où ça? «Là»…", ""},
		{"日 ž", "日ž"},
	} {
		ids, unknown := tok.Encode(c.text)
		if string(unknown) != c.unknown {
			t.Errorf("%q: %q have no token of their own, want %q", c.text, string(unknown), c.unknown)
		}
		want := utf8.RuneCountInString(c.text) - utf8.RuneCountInString(c.unknown) + len(c.unknown)
		if len(ids) != want {
			t.Errorf("%q: %d tokens, want %d", c.text, len(ids), want)
		}
		if slices.Contains(ids, int32(tok.vocab["[UNK]"])) {
			t.Errorf("%q: %v has the unknown token", c.text, ids)
		}
	}
}

// TestLongestAddedToken: of the added tokens that begin at one place, the longest is read, in whatever order they are.
func TestLongestAddedToken(t *testing.T) {
	short, long := addedToken{ID: 1, Content: "[e"}, addedToken{ID: 2, Content: "[en]"}
	for _, added := range [][]addedToken{{short, long}, {long, short}} {
		tok := Tokenizer{added: added}
		if at, token := tok.nextAdded("a [en] b [e"); at != 2 || token == nil || token.ID != long.ID {
			t.Errorf("%v: %v at %d", added, token, at)
		}
	}
}

// TestTokenizerOfManyWorkers: workers share the tokenizer, which remembers words.
func TestTokenizerOfManyWorkers(t *testing.T) {
	tok, err := LoadTokenizer(embedded)
	if err != nil {
		t.Fatal(err)
	}
	var workers sync.WaitGroup
	for range 4 {
		workers.Go(func() {
			for i := range 200 {
				tok.Encode(fmt.Sprintf("word %c%c of all", 'a'+i%26, 'a'+i/26))
			}
		})
	}
	workers.Wait()
}

func TestTokenizerUnknown(t *testing.T) {
	for _, c := range []struct{ file, text, want string }{
		{"characters", "plain text", ""},
		{"characters", "né 日 é", "é日é"},
		{"characters", "a\tb", "\t"},
		{"characters", "İ", "\u0307"}, // becomes i and a dot
		{"whitespace", "[en] a\tb ⅷ Я", "я"},
		{"whitespace", "[UNK] as an added token is not an unknown character", ""},
		{"metaspace", "é å", "\u030a"},      // decomposed; the acute accent is known
		{"persian", "سلام ي، ۱۲ é", "ي۱۲é"}, // encoded as bytes
	} {
		tok, err := LoadTokenizer("testdata/" + c.file + ".json")
		if err != nil {
			t.Fatal(err)
		}
		ids, unknown := tok.Encode(c.text)
		if string(unknown) != c.want {
			t.Errorf("%s: %q has the unknown characters %q, want %q", c.file, c.text, string(unknown), c.want)
		}
		n := 0
		for _, id := range ids {
			if id == int32(tok.vocab["[UNK]"]) {
				n++
			}
		}
		want := len(unknown)
		if tok.ByteFallback() {
			want = 0
		}
		if !strings.Contains(c.text, "[UNK]") && n != want {
			t.Errorf("%s: %q: %d unknown ids for %d characters", c.file, c.text, n, len(unknown))
		}
	}
}

func TestTokenizerRefuses(t *testing.T) {
	const good = `{"pre_tokenizer": {"type": "Whitespace"}, "model": {"type": "BPE", "unk_token": "?", "vocab": {"?": 0, "a": 1}, "merges": []}}`
	if _, err := parseTokenizer([]byte(good)); err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct{ name, old, new, err string }{
		{"not JSON", "{", "[", "invalid character"},
		{"byte level", "Whitespace", "ByteLevel", "ByteLevel is not supported"},
		{"unknown pre-tokenizer", "Whitespace", "Digits", "Digits is not supported"},
		{"no pre-tokenizer", `{"type": "Whitespace"}`, "null", "pre_tokenizer is missing"},
		{
			"Metaspace with a prefix", "Whitespace", `Metaspace", "replacement": "▁", "prepend_scheme": "always`,
			"Metaspace is supported with",
		},
		{"another model", "BPE", "Unigram", "model Unigram"},
		{
			"byte fallback without bytes", `"merges"`, `"byte_fallback": true, "merges"`,
			"byte_fallback is set, but <0x00> is not in the vocabulary",
		},
		{
			"merge of bytes", `"a": 1}, "merges": []`,
			`"a": 1, ` + byteTokens() + `, "<0x41><0x42>": 300}, "byte_fallback": true, "merges": ["<0x41> <0x42>"]`,
			"merges[0]: merges of bytes are not supported",
		},
		{"merge of what is not there", `[]`, `["a b"]`, `merges[0]: "b" is not in the vocabulary`},
		{"merge into what is not there", `[]`, `["a a"]`, `merges[0]: "aa" is not in the vocabulary`},
		{"no unknown token", `"unk_token": "?"`, `"unk_token": null`, "would be dropped"},
		{"large id", `"a": 1`, `"a": 3000000000`, "not an i32"},
		{"merge of three", `[]`, `["a b c"]`, "merges[0]"},
		{"merge across words", `"a": 1}, "merges": []`, `"a": 1, ",": 2, "a,": 3}, "merges": ["a ,"]`, `"a," crosses`},
		{
			"normalizer", `"model"`,
			`"normalizer": {"type": "Sequence", "normalizers": [{"type": "NFC"}, {"type": "Strip"}]}, "model"`,
			"normalizer Strip",
		},
		{
			"post-processor", `"model"`, `"post_processor": {"type": "TemplateProcessing"}, "model"`,
			"post_processor TemplateProcessing",
		},
		{"truncation", `"model"`, `"truncation": {"max_length": 5}, "model"`, "truncation"},
		{"added token", `"model"`, `"added_tokens": [{"content": "x", "lstrip": true}], "model"`, `added token "x"`},
		{"added token's id", `"model"`, `"added_tokens": [{"content": "x", "id": -1}], "model"`, "id -1 is not an i32"},
	} {
		t.Run(c.name, func(t *testing.T) {
			_, err := parseTokenizer([]byte(strings.Replace(good, c.old, c.new, 1)))
			contains(t, err, c.err)
		})
	}
	_, err := LoadTokenizer("testdata/none.json")
	contains(t, err, "testdata/none.json")
	large := filepath.Join(t.TempDir(), "tokenizer.json")
	write(t, large, nil)
	if err := os.Truncate(large, maxTokenizer+1); err != nil { // it must take no memory
		t.Fatal(err)
	}
	_, err = LoadTokenizer(large)
	contains(t, err, "tokenizer.json: too large: 67108865 bytes, more than the limit of 67108864")
	_, err = LoadTokenizer(t.TempDir())
	contains(t, err, "not a regular file")
}

func FuzzTokenizer(f *testing.F) {
	tok, err := LoadTokenizer("testdata/whitespace.json")
	if err != nil {
		f.Fatal(err)
	}
	for _, s := range []string{"", "[en] hello", "[SPACE][STOP]", "a\xffb", "İ ½", " \t "} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		ids, _ := tok.Encode(s)
		for _, id := range ids {
			if id < 0 || int(id) >= len(tok.vocab)+len(tok.added) {
				t.Errorf("%q: id %d", s, id)
			}
		}
	})
}

// For any file, LoadTokenizer refuses it, or the tokenizer terminates and returns ids of its vocabulary.
func FuzzParseTokenizer(f *testing.F) {
	// Small ones: with complete files the fuzzer finds little within a minute.
	const model = `{"pre_tokenizer": {"type": "%s"}, "model": {"type": "BPE", "unk_token": "?", "vocab": {%s}, "merges": [%s]%s}%s}`
	for _, s := range []struct{ split, vocab, merges, flags, more, text string }{
		{"Whitespace", `"?": 0, "a": 1, "aa": 2`, `"a a"`, "", "", "aaa b"},
		{
			"WhitespaceSplit", `"?": 0, "a": 1, "b": 2, "ab": 3`, `["a", "b"]`, `, "byte_fallback": false`,
			`, "normalizer": {"type": "Lowercase"}`, "AB c",
		},
		{`Metaspace", "replacement": "▁", "prepend_scheme": "never`, `"?": 0, "▁": 1, "س": 2, "▁س": 3`, `"▁ س"`, "",
			`, "normalizer": {"type": "Sequence", "normalizers": [{"type": "NFC"}]}, "added_tokens": [{"id": 9, "content": "[en]"}]`,
			"س س[en]é"},
		{"Whitespace", byteTokens(), "", `, "byte_fallback": true`, "", "é"},
	} {
		f.Add(fmt.Appendf(nil, model, s.split, s.vocab, s.merges, s.flags, s.more), s.text)
	}
	f.Add([]byte(
		`{"normalizer": {"type": "Sequence", "normalizers": [{"type": "Sequence"}]}, "added_tokens": [{"content": "", "id": -1}]}`),
		"")
	f.Fuzz(func(t *testing.T, data []byte, text string) {
		tok, err := parseTokenizer(data)
		if err != nil {
			return
		}
		known := map[int32]bool{}
		for _, id := range tok.vocab {
			known[int32(id)] = true
		}
		for _, a := range tok.added {
			known[int32(a.ID)] = true
		}
		if len(text) > maxText {
			text = text[:maxText]
		}
		ids, _ := tok.Encode(text)
		for _, id := range ids {
			if !known[id] {
				t.Errorf("%q: id %d is of no token", text, id)
			}
		}
	})
}

// byteTokens returns a vocabulary of only the bytes.
func byteTokens() string {
	var tokens []string
	for b := range 256 {
		tokens = append(tokens, fmt.Sprintf(`"<0x%02X>": %d`, b, b))
	}
	return strings.Join(tokens, ", ")
}
