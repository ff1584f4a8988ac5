package dataset

import (
	"path/filepath"
	"strings"
	"testing"

	"github.com/xtts-host/xtts-host/shared/hint"
)

func TestReadSentences(t *testing.T) {
	dir := t.TempDir()
	write(t, filepath.Join(dir, "clips", "me.wav"), wavFile(8000, 1, ramp(0, 16000)))
	file := func(name, text string) string {
		path := filepath.Join(dir, name)
		write(t, path, []byte(text))
		return path
	}
	list, err := ReadSentences(file("a.txt", "\ufeffOne.\r\n\n  سلام. \n"))
	if err != nil || len(list) != 2 || list[0] != (Sentence{Place: "a.txt:1", Text: "One."}) ||
		list[1] != (Sentence{Place: "a.txt:3", Text: "سلام."}) {
		t.Errorf("%+v, %v", list, err)
	}
	// One clip may be the voice of several texts.
	list, err = ReadSentences(file("a.jsonl", `{"audio_filepath": "clips/me.wav", "text": "One."}`+"\n"+
		`{"audio_filepath": "clips/me.wav", "offset": 0.5, "duration": 1, "text": "دو.", "language": "fa", "speaker": 3}`))
	if err != nil || len(list) != 2 {
		t.Fatalf("%+v, %v", list, err)
	}
	for i, want := range []struct {
		text, language  string
		offset, samples int
	}{{"One.", "en", 0, 32000}, {"دو.", "fa", 4000, 16000}} {
		got := list[i]
		at, err := got.Voice.At(16000)
		if err != nil {
			t.Fatal(err)
		}
		if got.Text != want.text || got.Language != want.language || at.Offset != want.offset ||
			at.Samples != want.samples || got.Voice.Samples != 0 {
			t.Errorf("%+v with %+v, want %+v", got, at, want)
		}
	}
	for want, path := range map[string]string{
		"no such file":                           filepath.Join(dir, "none.txt"),
		"b.txt has no sentence":                  file("b.txt", " \n\n"),
		"c.txt:2: the line is not UTF-8":         file("c.txt", "a\ncaf\xe9\n"),
		"d.txt: it is in UTF-16LE, not in UTF-8": file("d.txt", "a\x00b\x00c\x00d\x00"),
		"e.jsonl:1: audio_filepath is missing":   file("e.jsonl", `{"text": "One."}`),
		"f.jsonl:1: not JSON: byte ":             file("f.jsonl", `One.`),
		"g.jsonl:1: no.wav: open: no such file":  file("g.jsonl", `{"audio_filepath": "no.wav", "text": "One."}`),
		"h.jsonl:1: offset 3 s is not inside the": file(
			"h.jsonl", `{"audio_filepath": "clips/me.wav", "offset": 3, "text": "One."}`,
		),
	} {
		_, err := ReadSentences(path)
		if err == nil || !strings.Contains(err.Error(), want) || want != "no such file" && hint.Of(err) == "" {
			t.Errorf("%v (%s), want %s", err, hint.Of(err), want)
		}
	}
}
