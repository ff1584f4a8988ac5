package dataset

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"testing"

	"golang.org/x/text/unicode/norm"

	"github.com/xtts-host/xtts-host/host/data/dataset/internal/layout"
)

// spoken is a clip that each layout has. Its recording has 100 samples more than the one before.
type spoken struct{ text, normal, speaker, language string }

// voiceNames are the speakers of the clips, and of those that are read again.
var voiceNames = []string{"anna", "bob", "carl", "dora", "erik", "fay", "gus", "hana", "ivo", "jane"}

var clips = []spoken{
	{"In 1492 he sailed, they say.", "In fourteen ninety-two he sailed, they say.", "anna", "en"},
	{"\"Yes\", said the old man slowly.", "\"Yes\", said the old man slowly.", "bob", "de"},
	{"It costs 3 coins to enter here.", "It costs three coins to enter here.", "anna", "en"},
	{"The ship came back in the spring.", "The ship came back in the spring.", "bob", "de"},
	{"Nobody knows what became of it.", "Nobody knows what became of it.", "anna", "en"},
	{"A long road, and a short night.", "A long road, and a short night.", "bob", "de"},
	{"Rain; then sun, and rain again.", "Rain; then sun, and rain again.", "anna", "en"},
	{"He asked for water and for bread.", "He asked for water and for bread.", "bob", "de"},
}

// made is a data set of the clips in one layout.
type made struct {
	t   *testing.T
	dir string
}

func (m *made) recording(i int, file string) {
	write(m.t, filepath.Join(m.dir, file), wavFile(8000, 1, ramp(1, 1000+100*i)))
}

// list writes a list with a line for each clip, and its recording.
func (m *made) list(name, head string, line func(i int, c spoken) string, file func(i int) string) {
	text := head
	for i, c := range clips {
		m.recording(i, file(i))
		text += line(i, c) + "\n"
	}
	write(m.t, filepath.Join(m.dir, name), []byte(text))
}

func wavs(i int) string { return fmt.Sprintf("wavs/c%d.wav", i) }

func jsonLine(keys ...string) func(i int, c spoken) string {
	return func(i int, c spoken) string {
		values := map[string]any{}
		for at, key := range keys {
			if key != "" {
				values[key] = []any{wavs(i), c.text, c.speaker, c.language, c.normal}[at]
			}
		}
		return string(must(json.Marshal(values)))
	}
}

func csvField(s string) string { return `"` + strings.ReplaceAll(s, `"`, `""`) + `"` }

// known are the layouts that are recognised. text, speaker and language say what a layout has of a clip; normal means
// the normalized text.
var known = []struct {
	name, layout              string
	normal, speaker, language bool
	make                      func(m *made)
}{
	{"ljspeech", "ljspeech", true, false, false, func(m *made) {
		m.list("metadata.csv", "",
			func(i int, c spoken) string { return fmt.Sprintf("c%d|%s|%s", i, c.text, c.normal) }, wavs)
	}},
	{"ljspeech of two columns", "ljspeech", false, false, false, func(m *made) {
		m.list("metadata.csv", "", func(i int, c spoken) string { return fmt.Sprintf("c%d|%s", i, c.text) }, wavs)
	}},
	{"css10", "css10", true, false, false, func(m *made) {
		m.list("transcript.txt", "", func(i int, c spoken) string {
			return fmt.Sprintf("book/c%d.wav|%s|%s|%d.%d", i, c.text, c.normal, 3+i, i)
		},
			func(i int) string { return fmt.Sprintf("book/c%d.wav", i) })
	}},
	{"thorsten", "thorsten", false, false, false, func(m *made) {
		m.list("metadata.csv", "",
			func(i int, c spoken) string { return fmt.Sprintf("c%d|%s|%d.%d", i, c.text, 3+i, i) }, wavs)
	}},
	{"thorsten in characters", "thorsten", false, false, false, func(m *made) {
		m.list("metadata_train.csv", "",
			func(i int, c spoken) string { return fmt.Sprintf("c%d|%s|%d", i, c.text, len(c.text)) }, wavs)
	}},
	{"coqui", "coqui", false, true, false, func(m *made) {
		m.list("metadata_train.csv", "audio_file|text|speaker_name\n",
			func(i int, c spoken) string { return fmt.Sprintf("wavs/c%d.wav|%s|%s", i, c.text, c.speaker) }, wavs)
	}},
	{"coqui without names", "coqui", false, true, false, func(m *made) {
		m.list("metadata_train.csv", "",
			func(i int, c spoken) string { return fmt.Sprintf("wavs/c%d.wav|%s|%s", i, c.text, c.speaker) }, wavs)
	}},
	{"coqui with a language", "columns=clip,text,speaker,language", false, true, true, func(m *made) {
		m.list("metadata.csv", "",
			func(i int, c spoken) string { return fmt.Sprintf("c%d|%s|%s|%s", i, c.text, c.speaker, c.language) }, wavs)
	}},
	{"styletts2", "styletts2", false, true, false, func(m *made) {
		m.list("train_list.txt", "", func(i int, c spoken) string {
			return fmt.Sprintf("c%d.wav|%s|%d", i, c.text, slices.Index(voiceNames, c.speaker))
		}, wavs)
	}},
	{"piper", "piper", false, true, false, func(m *made) {
		m.list("metadata.csv", "",
			func(i int, c spoken) string { return fmt.Sprintf("c%d|%s|%s", i, c.speaker, c.text) },
			func(i int) string { return fmt.Sprintf("wav/c%d.wav", i) })
	}},
	{"gpt-sovits", "gpt-sovits", false, true, true, func(m *made) {
		m.list("train.list", "", func(i int, c spoken) string {
			return fmt.Sprintf("wavs/c%d.wav|%s|%s|%s", i, c.speaker, strings.ToUpper(c.language), c.text)
		}, wavs)
	}},
	{"common voice", "common-voice", false, true, true, func(m *made) {
		m.list("train.tsv", "client_id\tpath\tsentence\tup_votes\tdown_votes\tage\tgender\taccents\tlocale\n",
			func(i int, c spoken) string {
				return fmt.Sprintf("%s\tc%d.mp3\t%s\t2\t0\t\t\t\t%s", c.speaker, i, c.text, c.language)
			},
			func(i int) string { return fmt.Sprintf("clips/c%d.wav", i) })
	}},
	{"audiofolder", "audiofolder", false, true, false, func(m *made) {
		m.list("metadata.csv", "file_name,transcription,speaker_id\n",
			func(i int, c spoken) string { return fmt.Sprintf("wavs/c%d.wav,%s,%s", i, csvField(c.text), c.speaker) },
			wavs)
	}},
	{"audiofolder of objects", "", false, true, true, func(m *made) {
		m.list("metadata.jsonl", "", jsonLine("file_name", "sentence", "speaker_name", "locale"), wavs)
	}},
	{"audiofolder in split folders", "", false, false, false, func(m *made) {
		m.list("train/metadata.csv", "file_name,text\n",
			func(i int, c spoken) string { return fmt.Sprintf("c%d.wav,%s", i, csvField(c.text)) },
			func(i int) string { return fmt.Sprintf("train/c%d.wav", i) })
	}},
	{"nemo", "jsonl", false, true, false, func(m *made) {
		m.list("train_manifest.json", "", jsonLine("audio_filepath", "text", "speaker"), wavs)
	}},
	{"json lines", "jsonl", false, true, true, func(m *made) {
		m.list("train.jsonl", "", jsonLine("audio_filepath", "text", "speaker", "language"), wavs)
	}},
	{"written by csv.writer", "ljspeech;quotes=csv", false, false, false, func(m *made) {
		m.list("metadata.csv", "", func(i int, c spoken) string {
			if strings.Contains(c.text, `"`) {
				c.text = csvField(c.text)
			}
			return fmt.Sprintf("c%d|%s", i, c.text)
		}, wavs)
	}},
	{"all quoted", "ljspeech;quotes=csv", false, false, false, func(m *made) {
		m.list("metadata.csv", "", func(i int, c spoken) string { return fmt.Sprintf(`"c%d"|%s`, i, csvField(c.text)) },
			wavs)
	}},
	{"carriage returns", "ljspeech", false, false, false, func(m *made) {
		m.list("metadata.csv", "", func(i int, c spoken) string { return fmt.Sprintf("c%d|%s", i, c.text) }, wavs)
		file := filepath.Join(m.dir, "metadata.csv")
		write(m.t, file, []byte(strings.ReplaceAll(string(must(os.ReadFile(file))), "\n", "\r")))
	}},
	{"text before the path", "mozilla", false, false, false, func(m *made) {
		m.list("metadata.txt", "", func(i int, c spoken) string { return fmt.Sprintf("%s|c%d.wav", c.text, i) }, wavs)
	}},
	{"tabs", "ljspeech;separator=tab", false, false, false, func(m *made) {
		m.list("metadata.tsv", "", func(i int, c spoken) string { return fmt.Sprintf("c%d\t%s", i, c.text) }, wavs)
	}},
	{"vctk", "vctk", false, true, false, func(m *made) {
		for i, c := range clips {
			m.recording(i, fmt.Sprintf("wav48_silence_trimmed/%s/%s_%03d_mic1.wav", c.speaker, c.speaker, i))
			m.recording(9, fmt.Sprintf("wav48_silence_trimmed/%s/%s_%03d_mic2.wav", c.speaker, c.speaker, i))
			write(m.t, filepath.Join(m.dir, fmt.Sprintf("txt/%s/%s_%03d.txt", c.speaker, c.speaker, i)),
				[]byte(c.text+"\n"))
		}
	}},
	{"libritts", "libritts", true, true, false, func(m *made) {
		for i, c := range clips {
			stem := fmt.Sprintf("train-clean-100/%s/7/%s_7_%06d", c.speaker, c.speaker, i)
			m.recording(i, stem+".wav")
			write(m.t, filepath.Join(m.dir, stem+".original.txt"), []byte(c.text))
			write(m.t, filepath.Join(m.dir, stem+".normalized.txt"), []byte(c.normal))
		}
		write(m.t, filepath.Join(m.dir, "dev-clean/carl/1/carl_1_1.normalized.txt"), []byte("held out"))
	}},
	{"libritts by its tables", "libritts", true, true, false, func(m *made) {
		tables := map[string]string{}
		for i, c := range clips {
			m.recording(i, fmt.Sprintf("%s/7/%s_7_%06d.wav", c.speaker, c.speaker, i))
			tables[c.speaker] += fmt.Sprintf("%s_7_%06d\t%s\t%s\n", c.speaker, i, c.text, c.normal)
		}
		for speaker, lines := range tables {
			write(m.t, filepath.Join(m.dir, speaker, "7", speaker+"_7.trans.tsv"), []byte(lines))
		}
	}},
	{"m-ailabs", "mailabs", true, true, false, func(m *made) {
		tables := map[string]string{}
		for i, c := range clips {
			book := fmt.Sprintf("by_book/female/%s/a_book", c.speaker)
			m.recording(i, fmt.Sprintf("%s/wavs/a_%d.wav", book, i))
			tables[book] += fmt.Sprintf("a_%d|%s|%s\n", i, c.text, c.normal)
		}
		for book, lines := range tables {
			write(m.t, filepath.Join(m.dir, book, "metadata.csv"), []byte(lines))
		}
	}},
}

// TestKnownLayouts: the same clips in each layout have the same texts, speakers and languages in the index, each with
// its recording; and the layout that is recorded reads the list alike.
func TestKnownLayouts(t *testing.T) {
	for _, k := range known {
		t.Run(k.name, func(t *testing.T) {
			m := made{t, t.TempDir()}
			k.make(&m)
			ix := open(t, Config{Dir: m.dir, SampleRate: 8000})
			if k.layout != "" && ix.Layout != k.layout {
				t.Errorf("layout %q, want %q", ix.Layout, k.layout)
			}
			check(t, ix, k.normal, k.speaker, k.language)
			again := open(t, Config{Dir: m.dir, SampleRate: 8000, Layout: ix.Layout})
			if again.Layout != ix.Layout || again.Hash() != ix.Hash() || !reflect.DeepEqual(again.Rows, ix.Rows) {
				t.Errorf("--list-layout %s reads %+v\nnot %+v", ix.Layout, again.Rows, ix.Rows)
			}
		})
	}
}

func check(t *testing.T, ix *Index, normal, speaker, language bool) {
	t.Helper()
	if len(ix.Rows) != len(clips) || len(ix.Rejected) > 0 {
		t.Fatalf("%d rows, rejected %+v", len(ix.Rows), ix.Rejected)
	}
	for _, r := range ix.Rows {
		i := (r.Frames - 1000) / 100
		c := clips[i]
		if !normal {
			c.normal = c.text
		}
		if !speaker {
			c.speaker = ""
		}
		if !language {
			c.language = "en"
		}
		got := spoken{c.text, r.Text, ix.Speakers[r.SpeakerID], strings.ToLower(ix.Languages[r.LanguageID])}
		if n, err := strconv.Atoi(got.speaker); err == nil && speaker { // numbered
			got.speaker = voiceNames[n]
		}
		if got != c {
			t.Errorf("clip %d is %+v, want %+v", i, got, c)
		}
	}
}

// TestTwoReadings: a list that can be read in two ways is refused with both, and each of the two decides.
func TestTwoReadings(t *testing.T) {
	for _, c := range []struct {
		name   string
		line   func(i int, c spoken) string
		a, b   string
		ta, tb string // the text of the first clip
	}{
		{"a translation", func(i int, c spoken) string { return fmt.Sprintf("c%d|%s|%s", i, c.text, reversed(c.text)) },
			"columns=id,text,-", "last-column", clips[0].text, reversed(clips[0].text)},
		{"another script", func(i int, c spoken) string { return fmt.Sprintf("c%d|%s|%s", i, c.text, greek(c.text)) },
			"columns=id,text,-", "last-column", clips[0].text, greek(clips[0].text)},
		{"a speaker for each clip", func(i int, c spoken) string { return fmt.Sprintf("c%d|%s|voice%d", i, c.text, i) },
			"coqui", "columns=id,text,-", clips[0].text, clips[0].text},
		{
			"two names",
			func(i int, c spoken) string { return fmt.Sprintf("c%d|%s|%s|mood%d", i, c.text, c.speaker, i%2) },
			"columns=id,text,speaker,-", "columns=id,text,-,speaker", clips[0].text, clips[0].text,
		},
		{"a mood", func(i int, c spoken) string {
			return fmt.Sprintf("c%d|%s|%s", i, c.text, []string{"happy", "sad"}[i%2])
		},
			"columns=id,text,-", "coqui", clips[0].text, clips[0].text},
		{"numbers", func(i int, c spoken) string { return fmt.Sprintf("c%d|%s|%d", i, c.text, 7000+13*i) },
			"coqui", "columns=id,text,-", clips[0].text, clips[0].text},
		{"a separator in a text", func(i int, c spoken) string {
			return fmt.Sprintf("c%d|%s", i, strings.Replace(c.text, "he sailed", "he | sailed", 1))
		}, "columns=id,text+", "last-column", "In 1492 he | sailed, they say.", "sailed, they say."},
		{
			"quotes around each text",
			func(i int, c spoken) string { return fmt.Sprintf(`c%d|"%s"`, i, strings.ReplaceAll(c.text, `"`, "")) },
			"ljspeech;quotes=csv", "ljspeech", clips[0].text, `"` + clips[0].text + `"`,
		},
	} {
		t.Run(c.name, func(t *testing.T) {
			m := made{t, t.TempDir()}
			m.list("metadata.csv", "", c.line, wavs)
			_, err := Open(context.Background(), Config{Dir: m.dir, SampleRate: 8000})
			q, ok := errors.AsType[*layout.Question](err)
			if !ok {
				t.Fatalf("%v is no question", err)
			}
			for i, want := range []struct{ layout, text string }{{c.a, c.ta}, {c.b, c.tb}} {
				name := q.Readings[i].String()
				if name != want.layout || !strings.Contains(q.Hint(), "--list-layout "+name) &&
					!strings.Contains(q.Hint(), "--list-layout '"+name+"'") {
					t.Errorf("%s; hint %s; reading %d is not %s", q, q.Hint(), i, want.layout)
				}
				ix := open(t, Config{Dir: m.dir, SampleRate: 8000, Layout: name})
				if got := ix.Rows[0].Text; got != want.text || len(ix.Rows) != len(clips) {
					t.Errorf("%s: %d rows, the first has the text %q, not %q", name, len(ix.Rows), got, want.text)
				}
			}
		})
	}
}

func reversed(s string) string {
	words := strings.Fields(s)
	var other []string
	for i := range words {
		r := []rune(words[len(words)-1-i])
		for a, b := 0, len(r)-1; a < b; a, b = a+1, b-1 {
			r[a], r[b] = r[b], r[a]
		}
		other = append(other, string(r))
	}
	return strings.Join(other, " ")
}

func greek(s string) string {
	return strings.Map(func(r rune) rune {
		if r >= 'a' && r <= 'x' {
			return 'α' + r - 'a'
		}
		return r
	}, s)
}

// TestRefusedLists: what no layout explains is refused with what it is, and a hint.
func TestRefusedLists(t *testing.T) {
	for _, c := range []struct {
		name, file, head, err, hint string
		line                        func(i int, c spoken) string
	}{
		{
			"only lengths", "metadata.csv", "", "numbers with decimals, which are no texts", "--list-layout ljspeech",
			func(i int, c spoken) string { return fmt.Sprintf("c%d|%d.25", i, i) },
		},
		{
			"unknown names", "metadata.csv", "clip_name|what_is_said|comment\n",
			"the first line seems to have names of columns, which are not known", "columns=id,text,-",
			func(i int, c spoken) string { return fmt.Sprintf("c%d|%s|%s", i, c.text, c.speaker) },
		},
		{
			"no text by name", "list.csv", "file_name,duration,gender\n", "of which none is known as that of the text",
			"columns=path,text,-", func(i int, c spoken) string { return fmt.Sprintf("wavs/c%d.wav,1,f", i) },
		},
		{
			"mixed line ends", "metadata.csv", "c0|a\rb\nc1|x\rc2|y\n",
			"carriage returns end lines (in line 2) and are within texts (in line 1)",
			"within a text by a space, as in line 1",
			func(i int, c spoken) string { return fmt.Sprintf("c%d|%s", i+3, c.text) },
		},
	} {
		m := made{t, t.TempDir()}
		m.list(c.file, c.head, c.line, wavs)
		_, err := Open(context.Background(), Config{Dir: filepath.Join(m.dir, c.file), SampleRate: 8000})
		contains(t, err, c.err)
		h, _ := errors.AsType[interface {
			error
			Hint() string
		}](err)
		if h == nil || !strings.Contains(h.Hint(), c.hint) {
			t.Errorf("%s: the hint of %v has no %q", c.name, err, c.hint)
		}
	}
}

// TestListsBefore: a run that is older than the recognition of layouts goes on as it was, or is refused.
func TestListsBefore(t *testing.T) {
	for _, k := range known {
		if k.layout == "" || strings.HasPrefix(k.name, "libri") {
			continue
		}
		m := made{t, t.TempDir()}
		k.make(&m)
		_, err := Open(context.Background(), Config{Dir: m.dir, SampleRate: 8000, Before: true})
		if same := strings.HasPrefix(k.name, "ljspeech") || k.name == "json lines"; same != (err == nil) {
			t.Errorf("%s: %v", k.name, err)
		}
	}
}

// TestSplitsOfLayouts: where a layout has clips for evaluation, they are not those of training.
func TestSplitsOfLayouts(t *testing.T) {
	for name, lists := range map[string][2]string{
		"styletts2": {"train_list.txt", "val_list.txt"}, "common voice": {"train.tsv", "dev.tsv"},
		"nemo":                         {"train_manifest.json", "val_manifest.json"},
		"audiofolder in split folders": {"train/metadata.csv", "validation/metadata.csv"},
		"coqui":                        {"metadata_train.csv", "metadata_eval.csv"},
	} {
		m := made{t, t.TempDir()}
		for _, k := range known {
			if k.name == name {
				k.make(&m)
			}
		}
		text := strings.SplitAfter(string(must(os.ReadFile(filepath.Join(m.dir, lists[0])))), "\n")
		write(t, filepath.Join(m.dir, lists[1]), []byte(cmp.Or(strings.Join(text[:3], ""))))
		for i := range clips {
			m.recording(i, fmt.Sprintf("validation/c%d.wav", i))
		}
		train := open(t, Config{Dir: m.dir, SampleRate: 8000})
		if has, err := HasEval(m.dir, false); !has || err != nil {
			t.Errorf("%s: HasEval = %v, %v", name, has, err)
		}
		eval := open(t, Config{Dir: m.dir, SampleRate: 8000, Split: Eval, Layout: train.Layout})
		if n := len(eval.Rows); n != 2 && n != 3 || len(train.Rows) != len(clips) || len(eval.Rejected) > 0 {
			t.Errorf("%s: %d rows for evaluation, %d for training", name, n, len(train.Rows))
		}
	}
}

// TestFolderOfSplits: of one list of several splits each clip is in its own, and those for testing in none.
func TestFolderOfSplits(t *testing.T) {
	for _, name := range []string{"metadata.csv", "metadata.jsonl"} {
		dir, list := t.TempDir(), ""
		if name == "metadata.csv" {
			list = "file_name,text\n"
		}
		for i, folder := range []string{"train", "train", "test", "train", "validation"} {
			file := fmt.Sprintf("%s/c%d.wav", folder, i)
			write(t, filepath.Join(dir, file), wavFile(8000, 1, ramp(1, 1000)))
			if name == "metadata.csv" {
				list += file + ",text\n"
			} else {
				list += fmt.Sprintf(`{"file_name": "%s", "text": "text"}`+"\n", file)
			}
		}
		write(t, filepath.Join(dir, name), []byte(list))
		train, eval := open(t, Config{Dir: dir, SampleRate: 8000}),
			open(t, Config{Dir: dir, SampleRate: 8000, Split: Eval})
		has, err := HasEval(dir, false)
		if !has || err != nil || len(train.Rows) != 3 || len(eval.Rows) != 1 || eval.Rows[0].ID != "validation/c4.wav" {
			t.Errorf("%s: %v, %v, %d and %d rows", name, has, err, len(train.Rows), len(eval.Rows))
		}
	}
}

// TestAbsolutePaths: absolute paths are those of the recordings, whatever folder the list has.
func TestAbsolutePaths(t *testing.T) {
	m := made{t, t.TempDir()}
	m.list("train_list.txt", "",
		func(i int, c spoken) string { return fmt.Sprintf("%s/wavs/c%d.wav|%s|%d", m.dir, i, c.text, i%2) }, wavs)
	check(t, open(t, Config{Dir: m.dir, SampleRate: 8000}), false, true, false)
}

// TestKorean: KSS has the text in four forms. The one as it is spoken counts.
func TestKorean(t *testing.T) {
	m := made{t, t.TempDir()}
	hangul := []string{"그는 3월에 왔다", "나는 집에 간다", "비가 오고 있다", "물을 좀 주세요", "아무도 모른다", "길이 아주 길다", "밤이 짧았다", "배가 돌아왔다"}
	m.list("transcript.v.1.4.txt", "", func(i int, c spoken) string {
		spoken := strings.ReplaceAll(hangul[i], "3", "삼")
		return fmt.Sprintf("1/c%d.wav|%s|%s|%s|%d.%d|%s", i, hangul[i], spoken, norm.NFD.String(spoken), 2+i, i, c.text)
	}, func(i int) string { return fmt.Sprintf("1/c%d.wav", i) })
	ix := open(t, Config{Dir: m.dir, SampleRate: 8000})
	r := ix.Rows[0]
	if ix.Layout != "kss" || r.Text != "그는 삼월에 왔다" || ix.Languages[r.LanguageID] != "ko" || len(ix.Rows) != len(clips) {
		t.Errorf("%s: %+v", ix.Layout, r)
	}
}
