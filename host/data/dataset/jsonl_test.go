package dataset

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"
)

func TestParseObject(t *testing.T) {
	const dir = "/data/set"
	for _, c := range []struct {
		name, line string
		want       entry
	}{
		{"least", `{"audio_filepath": "a/1.wav", "text": "One."}`, entry{
			id: "a/1.wav", audio: "a/1.wav", text: "One.",
		}},
		{
			"all",
			`{"audio_filepath": "a.wav", "offset": 1.50, "duration": 2, "text": " e\u0301\n", "speaker": "x", "language": "fa", "id": "n1", "pitch": [1]}`,
			entry{
				id: "n1", audio: "a.wav", text: "\u00e9", speaker: "x", language: "fa",
				part: part{1.5, 2, true, true, 0.5}, ignored: &ignored{keys: []string{"pitch"}},
			},
		},
		{
			"null is nothing",
			`{"audio_filepath": "a.wav", "offset": null, "duration": null, "text": "x", "speaker": null, "id": null}`,
			entry{id: "a.wav", audio: "a.wav", text: "x"},
		},
		{"id of a part", `{"audio_filepath": "a.wav", "offset": 1.50, "duration": 0.250, "text": "x"}`,
			entry{id: "a.wav@1.5+0.25", audio: "a.wav", text: "x", part: part{1.5, 0.25, true, true, 0.011}}},
		{"id of a part to the end", `{"audio_filepath": "a.wav", "offset": 0, "text": "x"}`,
			entry{id: "a.wav@0", audio: "a.wav", text: "x", part: part{given: true}}},
		{"numbered speaker", `{"audio_filepath": "a.wav", "text": "x", "speaker": 92}`, entry{
			id: "a.wav", audio: "a.wav", text: "x", speaker: "92",
		}},
		{"upwards", `{"audio_filepath": "../b/./a.wav", "text": "x"}`, entry{
			id: "../b/a.wav", audio: "../b/a.wav", text: "x",
		}},
		{"absolute", `{"audio_filepath": "/else/a.wav", "text": "x"}`, entry{
			id: "/else/a.wav", audio: "/else/a.wav", text: "x",
		}},
		{"absolute inside", `{"audio_filepath": "/data/set/b/a.wav", "text": "x"}`, entry{
			id: "b/a.wav", audio: "b/a.wav", text: "x",
		}},

		{"not JSON", `{"text": }`, entry{
			reason: "not JSON: byte 10: invalid character '}' looking for beginning of value",
		}},
		{"NaN", `{"audio_filepath": "a.wav", "duration": NaN}`, entry{
			reason: "not JSON: byte 41: NaN is not a JSON number",
		}},
		{"Infinity", `{"offset": -Infinity}`, entry{reason: "not JSON: byte 13: Infinity is not a JSON number"}},
		{"two objects", `{} {}`, entry{reason: "not JSON: byte 4: invalid character '{' after top-level value"}},
		{"list", `[1]`, entry{reason: "not a JSON object, but an array: a list has one object on each line"}},
		{"null", `null`, entry{reason: "not a JSON object"}},
		{"no audio", `{"text": "x"}`, entry{text: "x", reason: "audio_filepath is missing"}},
		{"misspelt audio", `{"Audio-Filepath": "a.wav", "text": "x"}`, entry{
			text: "x", reason: `audio_filepath is missing; the line has "Audio-Filepath", which is ignored`,
		}},
		{
			"audio of another name",
			`{"audio_rate": 8000, "audio_path": "a.wav", "audio_bits_per_second": 8, "text": "x"}`,
			entry{text: "x", reason: `audio_filepath is missing; the line has "audio_path", which is ignored`},
		},
		{"misspelt text", `{"audio_filepath": "a.wav", "words": 1, "txt": "x"}`, entry{
			id: "a.wav", audio: "a.wav", reason: `text is missing; the line has "txt", which is ignored`,
		}},
		{"empty audio", `{"audio_filepath": " ", "text": "x"}`, entry{text: "x", reason: "audio_filepath is empty"}},
		{"audio of another type", `{"audio_filepath": {}, "text": "x"}`, entry{
			text: "x", reason: "audio_filepath is an object, not a string",
		}},
		{"no text", `{"audio_filepath": "a.wav"}`, entry{id: "a.wav", audio: "a.wav", reason: "text is missing"}},
		{"empty text", `{"audio_filepath": "a.wav", "text": "\u0001"}`, entry{
			id: "a.wav", audio: "a.wav", reason: "the text is empty",
		}},
		{"number for text", `{"audio_filepath": "a.wav", "text": 7}`, entry{
			id: "a.wav", audio: "a.wav", reason: "text is a number, not a string",
		}},
		{
			"speaker of another type", `{"audio_filepath": "a.wav", "text": "x", "speaker": 1.5}`,
			entry{id: "a.wav", audio: "a.wav", text: "x", reason: "speaker is a number, not a string"},
		},
		{
			"language of another type", `{"audio_filepath": "a.wav", "text": "x", "language": true}`,
			entry{id: "a.wav", audio: "a.wav", text: "x", reason: "language is true or false, not a string"},
		},
		{"id of another type", `{"audio_filepath": "a.wav", "text": "x", "id": [1]}`, entry{
			audio: "a.wav", text: "x", reason: "id is a list, not a string",
		}},
		{
			"control character in the id", `{"audio_filepath": "a.wav", "text": "x", "id": "a\nb"}`,
			entry{id: "a\nb", audio: "a.wav", text: "x", reason: `id "a\nb" has a control character`},
		},
		{
			"control character in the path", `{"audio_filepath": "a\n\u001b[1merror: b.wav", "text": "x", "id": "a"}`,
			entry{
				id: "a", audio: "a\n\x1b[1merror: b.wav", text: "x",
				reason: `audio_filepath "a\n\x1b[1merror: b.wav" has a control character`,
			},
		},
		{"control character in the language", `{"audio_filepath": "a.wav", "text": "x", "language": "e\u001bn"}`, entry{
			audio: "a.wav", id: "a.wav", text: "x", language: "e\x1bn",
			reason: `language "e\x1bn" has a control character`,
		}},
		{
			"long id", `{"audio_filepath": "a.wav", "text": "x", "id": "` + strings.Repeat("i", 501) + `"}`,
			entry{audio: "a.wav", text: "x", reason: "the id has 501 bytes, more than 500"},
		},
		{
			"long offset", `{"audio_filepath": "a.wav", "text": "x", "offset": 9` + strings.Repeat("0", 900_000) + `}`,
			entry{audio: "a.wav", text: "x", reason: "offset 9" + strings.Repeat("0", 79) + "... is out of range"},
		},
		{"negative offset", `{"audio_filepath": "a.wav", "text": "x", "offset": -1}`, entry{
			audio: "a.wav", text: "x", reason: "offset -1 is negative",
		}},
		{"offset of another type", `{"audio_filepath": "a.wav", "text": "x", "offset": "1"}`, entry{
			audio: "a.wav", text: "x", reason: "offset is a string, not a number of seconds",
		}},
		{"huge duration", `{"audio_filepath": "a.wav", "text": "x", "duration": 1e999}`, entry{
			audio: "a.wav", text: "x", reason: "duration 1e999 is out of range",
		}},
	} {
		t.Run(c.name, func(t *testing.T) {
			got, err := objects(dir, nil)([]byte(c.line))
			if err != nil {
				t.Fatal(err)
			}
			if got.reason != c.want.reason || c.want.reason == "" && !reflect.DeepEqual(got, c.want) ||
				got.id != c.want.id {
				t.Errorf("got  %+v\nwant %+v", got, c.want)
			}
		})
	}
}

func TestPartFrames(t *testing.T) {
	for _, c := range []struct {
		name     string
		part     part
		first, n int
		err      string
	}{
		{"all", part{}, 0, 1000, ""},
		{"from", part{offset: 0.25, given: true}, 250, 750, ""},
		{"to the nearest frame, halves up", part{0.0025, 0.0020, true, true, 0}, 3, 2, ""}, // 2.5 and 4.5
		{"a few milliseconds too many", part{0.5, 0.505, true, true, 0}, 500, 500, ""},
		{"a duration of one decimal, rounded up", part{0.5, 0.6, true, true, 0.1}, 500, 500, ""},
		{"after the end", part{0.5, 0.6, true, true, 0}, 0, 0, "offset 0.5 s and duration 0.6 s end after the " +
			"recording of 1.000 s; leave duration out to take it to its end"},
		{"far after", part{0, 1e300, true, true, 0}, 0, 0, "end after the recording"},
		{"offset at the end", part{offset: 1, given: true}, 0, 0, "offset 1 s is not inside the recording of 1.000 s"},
		{"offset far after", part{offset: 1e300, given: true}, 0, 0, "is not inside the recording"},
		{"nothing", part{0.5, 0.0001, true, true, 0}, 0, 0, "a duration of 0.0001 s contains no sample at 1000 Hz"},
	} {
		first, n, err := c.part.frames(1000, 1000)
		contains(t, err, c.err)
		if first != c.first || n != c.n {
			t.Errorf("%s: %d frames from %d, want %d from %d", c.name, n, first, c.n, c.first)
		}
	}
}

// Two parts of one recording are two clips, and an unusable line is named.
func TestOpenJSONLines(t *testing.T) {
	dir, other := t.TempDir(), t.TempDir()
	write(t, filepath.Join(dir, "long.wav"), wavFile(1000*8, 1, ramp(0, 8000)))
	write(t, filepath.Join(other, "b.wav"), wavFile(22050, 1, ramp(0, 50)))
	if err := os.Symlink(filepath.Join(other, "b.wav"), filepath.Join(dir, "link.wav")); err != nil {
		t.Fatal(err)
	}
	list := filepath.Join(dir, "clips.json")
	write(t, list, []byte("\uFEFF"+strings.Join([]string{
		`{"audio_filepath": "long.wav", "offset": 0, "duration": 0.5, "text": "one", "speaker": "x"}`,
		`{"audio_filepath": "long.wav", "offset": 0.5, "text": "two", "speaker": "x", "language": "fa"}`,
		``,
		`{"audio_filepath": "` + filepath.Join(other, "b.wav") + `", "text": "three"}`,
		`{"audio_filepath": "link.wav", "text": "four"}`,
		`{"audio_filepath": "long.wav", "offset": 0.5, "duration": 0.75, "text": "five"}`,
		"{\"audio_filepath\": \"caf\xe9.wav\"}",
		`{"audio_filepath": "none.wav", "text": "seven"}`,
		`{"audio_filepath": "long.wav", "text": "` + strings.Repeat("x", 5000) + `"}`,
		`{"audio_filepath": "file:///data/a.wav", "text": "nine"}`,
		`{"audio_filepath": "~/a.wav", "text": "ten"}`,
		`{"audio_filepath": "C:\\clips\\a.wav", "text": "eleven"}`,
	}, "\r\n")))
	ix := open(t, Config{Dir: list, SampleRate: 8000, Tokenizer: testTokenizer(t)})
	var got []string
	for _, r := range ix.Rows {
		got = append(got, fmt.Sprintf("%d %s %d+%d/%d %s %q %s", r.Line, strings.ReplaceAll(r.ID, other, "OTHER"),
			r.Offset, r.Frames, r.FileRate, r.Text, ix.Speakers[r.SpeakerID], ix.Languages[r.LanguageID]))
	}
	want := []string{
		`1 long.wav@0+0.5 0+4000/8000 one "x" en`,
		`2 long.wav@0.5 4000+4000/8000 two "x" fa`,
		`4 OTHER/b.wav 0+50/22050 three "" en`,
		`5 link.wav 0+50/22050 four "" en`,
	}
	if !reflect.DeepEqual(got, want) {
		t.Errorf("got:\n%s\nwant:\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"))
	}
	got = nil
	for _, r := range ix.Rejected {
		got = append(got, ix.Place(r.Line)+" "+r.ID+" "+strings.TrimPrefix(r.Path, dir)+": "+r.Reason)
	}
	want = []string{
		"clips.json:6 long.wav@0.5+0.75 /long.wav: offset 0.5 s and duration 0.75 s end after the recording of 1.000 " +
			"s; leave duration out to take it to its end",
		"clips.json:7  : the line is not UTF-8",
		"clips.json:8 none.wav /none.wav: there is no none.wav",
		"clips.json:9 long.wav /long.wav: the text has 5000 characters, more than 4096",
		"clips.json:10 file:/data/a.wav /file:/data/a.wav: there is no file:/data/a.wav (a path is needed, not a URL)",
		"clips.json:11 ~/a.wav /~/a.wav: there is no ~/a.wav (only a shell replaces ~ by the home folder: write it " +
			"in " +
			"full)",
		`clips.json:12 C:\clips\a.wav /C:\clips\a.wav: there is no C:\clips\a.wav (a path of this system is needed, with / between folders)`,
	}
	if !reflect.DeepEqual(got, want) {
		t.Errorf("got:\n%s\nwant:\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"))
	}

	wave := make([]float32, 4000)
	err := NewDecoder(8000).Decode(wave, &ix.Rows[1], 0)
	if err != nil || wave[0] != 4000./32768 || wave[3999] != 7999./32768 {
		t.Errorf("the second part is %v ... %v, %v", wave[0], wave[3999], err)
	}
}

func TestOpenJSONLinesFails(t *testing.T) {
	const line = `{"audio_filepath": "a.wav", "offset": 1, "text": "x"}` + "\n"
	for _, c := range []struct{ name, file, data, err string }{
		{
			"the same part twice", "manifest.jsonl", line + "\n" + line,
			`manifest.jsonl:3: id "a.wav@1" is already in line 1`,
		},
		{"no line", "manifest.jsonl", "\n", "manifest.jsonl: no usable row"},
		{
			"a list over lines", "manifest.jsonl", "[\n{},\n]\n",
			"manifest.jsonl is one JSON array of objects, and a list has one object on each line",
		},
		{"no list", "other.jsonl", line, "neither metadata_train.csv nor metadata.csv exists"},
		{"evaluation alone", "eval.jsonl", line, "neither train.jsonl nor manifest.jsonl exists"},
	} {
		dir := t.TempDir()
		write(t, filepath.Join(dir, c.file), []byte(c.data))
		_, err := Open(context.Background(), Config{Dir: dir, SampleRate: 8000})
		contains(t, err, c.err)
	}
	file := filepath.Join(t.TempDir(), "clips.xlsx")
	write(t, file, []byte("1|x\n"))
	_, err := Open(context.Background(), Config{Dir: file, SampleRate: 8000})
	contains(t, err, "neither .csv, .tsv, .txt, .list, .jsonl nor .json")
	_, err = Open(context.Background(), Config{Dir: "/dev/null", SampleRate: 8000})
	contains(t, err, "neither .csv, .tsv, .txt, .list, .jsonl nor .json")
	if err := os.Mkdir(filepath.Join(filepath.Dir(file), "metadata.csv"), 0o755); err != nil {
		t.Fatal(err)
	}
	_, err = Open(context.Background(), Config{Dir: filepath.Dir(file), SampleRate: 8000})
	contains(t, err, "metadata.csv: a folder, not a regular file")
}

// The layout of a folder is that of the first list that is found.
func TestLayouts(t *testing.T) {
	dir := t.TempDir()
	has := func(want bool) {
		t.Helper()
		if got, err := HasEval(dir, false); got != want || err != nil {
			t.Errorf("HasEval = %v, %v", got, err)
		}
	}
	lists := func(want string) {
		t.Helper()
		train, err := locate(dir, Train, false)
		eval, err2 := locate(dir, Eval, false)
		if got := train.list + " " + eval.list; got != want || err != nil || err2 != nil {
			t.Errorf("lists %s, %v, %v; want %s", got, err, err2, want)
		}
	}
	touch := func(name string) { write(t, filepath.Join(dir, name), nil) }
	has(false)
	touch("manifest.jsonl")
	lists("manifest.jsonl manifest.jsonl")
	has(false)
	touch("train.jsonl")
	touch("eval.jsonl")
	lists("train.jsonl eval.jsonl")
	has(true)
	touch("metadata.csv")
	lists("metadata.csv metadata.csv")
	has(false)
	file := filepath.Join(dir, "train.jsonl")
	if got, err := HasEval(file, false); got || err != nil {
		t.Errorf("HasEval of a file = %v, %v", got, err)
	}
}

// endless is a line without an end that counts how much of it is read.
type endless struct{ read int }

func (e *endless) Read(b []byte) (int, error) {
	for i := range b {
		b[i] = ' '
	}
	e.read += len(b)
	return len(b), nil
}

func TestLongLineIsNotRead(t *testing.T) {
	var r endless
	_, err := parseList("list", &r, lastColumn)
	contains(t, err, "list:1: the line is longer than 1024 KiB")
	if r.read > 2*maxLine {
		t.Errorf("%d bytes were read", r.read)
	}
}

// For any bytes, an accepted list has unique ids, and lines with a text, a path and a valid part.
func FuzzParseObjects(f *testing.F) {
	for _, s := range []string{
		`{"audio_filepath": "a/1.wav", "text": "One.", "offset": 1.5, "duration": 2}` + "\n" +
			`{"audio_filepath": "b.wav", "text": "x", "speaker": 92, "id": "b"}`,
		"\uFEFF{\"audio_filepath\": \"../a.wav\", \"text\": \"\\u0633\\u0644\\u0627\\u0645\", \"language\": " +
			"\"fa\"}\r\n\r\nnull\n",
		`{"audio_filepath": "a.wav", "text": 7, "offset": -1, "duration": NaN}`, `[{`, "{\"text\": \"\xff\"}",
		`{"offset":1e308,"duration":1e308,"audio_filepath":"/a","text":"x"}`, strings.Repeat(`{"a":`, 100),
	} {
		f.Add([]byte(s))
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		entries, err := parseList("list", bytes.NewReader(data), objects("/data", nil))
		if err != nil {
			return
		}
		seen := map[string]bool{}
		for _, e := range entries {
			if e.id != "" && seen[e.id] {
				t.Errorf("id %q twice", e.id)
			}
			seen[e.id] = true
			if e.reason != "" {
				continue
			}
			if e.id == "" || e.text == "" || e.audio == "" || normalize(e.text) != e.text {
				t.Errorf("%+v has no reason", e)
			}
			first, n, err := e.part.frames(1000, 8000)
			if err == nil && (first < 0 || n < 1 || first+n > 1000) {
				t.Errorf("%+v is %d frames from %d", e.part, n, first)
			}
		}
	})
}
