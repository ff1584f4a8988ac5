package dataset

import (
	"fmt"
	"path/filepath"
	"reflect"
	"strings"
	"testing"
)

// TestIgnoredKeys: each line that has a key counts once, also a line that cannot be used. Advice is given only about
// keys that the line lacks.
func TestIgnoredKeys(t *testing.T) {
	dir := t.TempDir()
	write(t, filepath.Join(dir, "a.wav"), wavFile(8000, 1, ramp(0, 100)))
	list := filepath.Join(dir, "train.jsonl")
	write(t, list, []byte(strings.Join([]string{
		`{"audio_filepath": "a.wav", "text": "one", "id": "1", "lang": "fa", "pitch": [1], "pitch": [2]}`,
		`{"audio_filepath": "a.wav", "text": "two", "id": "2", "lang": null, "orig_text": "2", "speaker_id": 7, "lang_id": 1, "is_valid": true, "duration_ms": 9, "\u0069d2": 1}`,
		`{"audio_filepath": "a.wav", "id": "3", "lang": "fa"}`,
	}, "\n")))
	ix := open(t, Config{Dir: list, SampleRate: 8000})
	want := []IgnoredKey{
		{"lang", 3, "train.jsonl:1", "did you mean language?"}, {"pitch", 1, "train.jsonl:1", ""},
		{"orig_text", 1, "train.jsonl:2", ""}, {"speaker_id", 1, "train.jsonl:2", "did you mean speaker?"},
		{"lang_id", 1, "train.jsonl:2", "did you mean language?"}, {"is_valid", 1, "train.jsonl:2", ""},
		{"duration_ms", 1, "train.jsonl:2", ""}, {"id2", 1, "train.jsonl:2", ""},
	}
	if !reflect.DeepEqual(ix.Ignored, want) {
		t.Errorf("got  %+v\nwant %+v", ix.Ignored, want)
	}

	var lines []string
	for i := range MaxIgnored + 5 {
		lines = append(lines,
			fmt.Sprintf(`{"audio_filepath": "a.wav", "text": "x", "id": "%d", "key %d": 0, "last": 0}`, i, i))
	}
	write(t, list, []byte(strings.Join(lines, "\n")))
	if ix := open(t, Config{
		Dir: list, SampleRate: 8000,
	}); len(ix.Ignored) != MaxIgnored || ix.Ignored[1].Lines != len(lines) {
		t.Errorf("%d keys, the last in %+v", len(ix.Ignored), ix.Ignored[1])
	}
}
