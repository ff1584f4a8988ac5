package synthesize

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/xtts-host/xtts-host/host/settings/texts"
	"github.com/xtts-host/xtts-host/ortgraphs"
)

// TestUnknownCharacters: characters that are encoded as bytes are none that the tokenizer does not know.
func TestUnknownCharacters(t *testing.T) {
	bundle, err := ortgraphs.Builtin("myxtts-nano", t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	unknown := func() string {
		tokenizer, err := NewTokenizer(bundle, texts.Rules{})
		if err != nil {
			t.Fatal(err)
		}
		text, err := tokenizer.Text("naïve 漢字", "")
		if err != nil {
			t.Fatal(err)
		}
		return string(text.Unknown)
	}
	if got := unknown(); got != "" {
		t.Errorf("%q of a tokenizer that encodes bytes", got)
	}
	file := bundle.Path(bundle.Manifest.Tokenizer.File)
	data, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	bundle = &ortgraphs.Bundle{Dir: t.TempDir(), Manifest: bundle.Manifest}
	data = []byte(strings.Replace(string(data), `"byte_fallback": true`, `"byte_fallback": false`, 1))
	if err := os.WriteFile(filepath.Join(bundle.Dir, filepath.Base(file)), data, 0o666); err != nil {
		t.Fatal(err)
	}
	if got := unknown(); !strings.Contains(got, "漢") {
		t.Errorf("%q of a tokenizer that does not", got)
	}
}
