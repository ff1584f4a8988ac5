package dataset

import (
	"encoding/json"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// voice is a text in testdata/voicebpe: what coqui's code makes of it, and its class's ids (xtts_export/coqui_text.py).
type voice struct {
	Language, Text, Cleaned string
	IDs                     []int32
}

func voices(t *testing.T) (*Tokenizer, []voice) {
	t.Helper()
	tokenizer, err := LoadTokenizer("testdata/voicebpe/tokenizer.json")
	if err != nil {
		t.Fatal(err)
	}
	data, err := os.ReadFile("testdata/voicebpe/texts.json")
	if err != nil {
		t.Fatal(err)
	}
	var list []voice
	if err := json.Unmarshal(data, &list); err != nil || len(list) == 0 {
		t.Fatal(len(list), err)
	}
	return tokenizer, list
}

// TestVoiceBPE: the ids of XTTS' texts are those of coqui's class, in every language.
func TestVoiceBPE(t *testing.T) {
	tokenizer, list := voices(t)
	for _, v := range list {
		ids, err := tokenizer.prefix("[{language}]", v.Language)
		if err != nil || len(ids) != 1 {
			t.Errorf("%s: %v, %v", v.Language, ids, err)
		}
		text, _ := tokenizer.Encode(normalize(v.Cleaned))
		if ids = append(ids, text...); !slices.Equal(ids, v.IDs) {
			t.Errorf("%s %q:\n%v, want\n%v", v.Language, v.Cleaned, ids, v.IDs)
		}
	}
}

func TestPrefix(t *testing.T) {
	tokenizer, _ := voices(t)
	for _, c := range []struct{ pattern, language, want string }{
		{"", "xx", ""},
		{"[{language}]", "fa", `language "fa": the tokenizer has no token [fa]`},
		{"[en]", "fa", ""},
		{"[{language}][STOP]", "de", ""},
		{"[{language}]a", "de", `language "de": the tokenizer has no token a`},
		{"<s>", "de", "the tokenizer has no token <s>, which the bundle puts before each text"},
	} {
		ids, err := tokenizer.prefix(c.pattern, c.language)
		if c.want == "" && (err != nil || len(ids) != strings.Count(c.pattern, "[")) ||
			c.want != "" && (err == nil || err.Error() != c.want) {
			t.Errorf("%q of %s: %v, %v, want %q", c.pattern, c.language, ids, err, c.want)
		}
	}
}

func TestLanguages(t *testing.T) {
	tokenizer, _ := voices(t)
	got := tokenizer.Languages("[{language}]")
	if slices.Sort(got); len(got) != 17 || !slices.Contains(got, "zh-cn") || slices.Contains(got, "STOP") {
		t.Error(got)
	}
	if got := tokenizer.Languages("[en]"); got != nil {
		t.Error(got)
	}
}

// TestTokens: a text alone has the tokens of a row.
func TestTokens(t *testing.T) {
	tokenizer, list := voices(t)
	for _, v := range list {
		ids, _, err := tokenizer.Tokens("[{language}]", v.Language, v.Cleaned)
		if err != nil || !slices.Equal(ids, v.IDs) {
			t.Errorf("%s %q: %v, %v, want %v", v.Language, v.Cleaned, ids, err, v.IDs)
		}
	}
	_, unknown, err := tokenizer.Tokens("", "", "a\u2603b")
	if err != nil || string(unknown) != "\u2603" {
		t.Errorf("%q, %v", unknown, err)
	}
	if _, _, err := tokenizer.Tokens("[{language}]", "fa", "a"); err == nil {
		t.Error("a language without a tag was taken")
	}
}

// TestOpenWithPrefix: each row gets the tag of its language, and a row of a language without one is left out.
func TestOpenWithPrefix(t *testing.T) {
	tokenizer, list := voices(t)
	dir := t.TempDir()
	var lines []string
	for i, v := range append(list[:3:3], voice{Language: "fa", Cleaned: "abc"}) {
		line, err := json.Marshal(map[string]string{
			"audio_filepath": "a.wav", "id": string(rune('a' + i)), "text": v.Cleaned, "language": v.Language,
		})
		if err != nil {
			t.Fatal(err)
		}
		lines = append(lines, string(line))
	}
	write(t, filepath.Join(dir, "a.wav"), wavFile(22050, 1, ramp(1, 2000)))
	write(t, filepath.Join(dir, "train.jsonl"), []byte(strings.Join(lines, "\n")))
	ix := open(t, Config{Dir: dir, SampleRate: 22050, Tokenizer: tokenizer, Prefix: "[{language}]"})
	if len(ix.Rows) != 3 || len(ix.Rejected) != 1 ||
		ix.Rejected[0].Reason != `language "fa": the tokenizer has no token [fa]` {
		t.Fatalf("%d rows, rejected %+v", len(ix.Rows), ix.Rejected)
	}
	for i := range ix.Rows {
		if ids := ix.Tokens(&ix.Rows[i]); !slices.Equal(ids, list[i].IDs) || ix.Rows[i].Tokens != len(ids) {
			t.Errorf("row %d: %d tokens, %v, want %v", i, ix.Rows[i].Tokens, ids, list[i].IDs)
		}
	}
	if other := open(t, Config{Dir: dir, SampleRate: 22050, Tokenizer: tokenizer}); other.Hash() == ix.Hash() {
		t.Error("the prefix is not part of the hash")
	}
}
