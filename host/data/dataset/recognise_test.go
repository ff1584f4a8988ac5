package dataset

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/xtts-host/xtts-host/host/data/dataset/internal/layout"
)

// BenchmarkRecognise is the pass over a list of 200,000 lines that finds its layout, whose CPU time is part of that of
// BenchmarkIndex.
func BenchmarkRecognise(b *testing.B) {
	text := strings.Repeat("proceeded to the printing house, ", 3)
	for name, line := range map[string]func(i int) string{
		"two.csv":   func(i int) string { return fmt.Sprintf("LJ%07d|%s%d", i, text, i) },
		"three.csv": func(i int) string { return fmt.Sprintf("LJ%07d|%s%d|%s%d", i, text, i, text, i) },
		"objects.jsonl": func(i int) string {
			return fmt.Sprintf(`{"audio_filepath": "LJ%07d.wav", "text": "%s%d"}`, i, text, i)
		},
	} {
		b.Run(name, func(b *testing.B) {
			var list strings.Builder
			for i := range 200_000 {
				list.WriteString(line(i) + "\n")
			}
			dir := b.TempDir()
			write(b, filepath.Join(dir, name), []byte(list.String()))
			before := cpuTime(b)
			for b.Loop() {
				if _, err := layout.Recognise(source(dir, name, ""), nil); err != nil {
					b.Fatal(err)
				}
			}
			b.ReportMetric((cpuTime(b)-before)/float64(b.N), "cpu-s/op")
		})
	}
}

// FuzzRecognise: any bytes are recognised or refused; nothing panics. What is recognised in a list of three columns or
// more never has a text that is a number, one value for all lines, or of another script than a column before it.
func FuzzRecognise(f *testing.F) {
	for _, s := range []string{
		"c0|one two|3.10\nc1|three four|2.5\nc2|five six|7.25\n", "c0|one two|anna\nc1|three four|anna\n",
		"c0|one two|0\nc1|three four|1\n", "audio_file|text|speaker_name\nwavs/c0.wav|one|a\n",
		"file_name,transcription\nc0.wav,\"one, \"\"two\"\"\"\n", "{\"file_name\": \"c0.wav\", \"text\": \"x\"}\n",
		"c0|뭘|뭘|뭘|3.5|What\nc1|그|그|그|3.5|He\n", "c0|a\rc1|b\r",
		"client_id\tpath\tsentence\tlocale\nx\tc0.mp3\tone\ten\n", "c0|\"a\"\"b\"|\"\nc1|\"", "|||\n||\n|\n",
		"a;b;c\n\"", "\ufeffid|text\nc0|x\n", "c0|привет как дела|hello there\nc1|до свидания друг|good bye\n",
		"c0|x|one two|en\nc1|y|three four|de\n",
	} {
		f.Add([]byte(s), false)
		f.Add([]byte(s), true)
	}
	dir := f.TempDir()
	for i := range 3 {
		write(f, filepath.Join(dir, wavs(i)), wavFile(8000, 1, ramp(1, 1000)))
	}
	f.Fuzz(func(t *testing.T, data []byte, json bool) {
		name := "list.csv"
		if json {
			name = "list.jsonl"
		}
		file := filepath.Join(dir, name)
		if err := os.WriteFile(file, data, 0o600); err != nil {
			t.Fatal(err)
		}
		d, err := layout.Recognise(source(dir, name, ""), nil)
		if q, ok := errors.AsType[*layout.Question](err); ok {
			for _, r := range q.Readings {
				if _, err := layout.Parse(r.String()); err != nil {
					t.Errorf("%s: %v", r.String(), err)
				}
			}
			return
		}
		if err != nil {
			return
		}
		if again, err := layout.Parse(d.String()); err != nil || again == nil || again.String() != d.String() {
			t.Errorf("%q is read as %+v, %v", d.String(), again, err)
		}
		ix, err := Open(context.Background(), Config{Dir: file, SampleRate: 8000, Empty: true})
		if err != nil {
			return
		}
		if d.Kind == layout.Table && d.Header != layout.Yes && len(d.Columns) > 2 {
			suspicious(t, ix, data)
		}
	})
}

// suspicious fails for rows whose text none should have.
func suspicious(t *testing.T, ix *Index, data []byte) {
	numbers, same := 0, 0
	for _, r := range ix.Rows {
		if strings.Trim(r.Text, "0123456789.") == "" {
			numbers++
		}
		if r.Text == ix.Rows[0].Text {
			same++
		}
	}
	if n := len(ix.Rows); n > 2 && numbers == n {
		t.Errorf("%s: all texts of %q are numbers", ix.Layout, data)
	} else if n > 2 && same == n && !strings.Contains(ix.Layout, "ljspeech") {
		t.Errorf("%s: all texts of %q are one", ix.Layout, data)
	}
}

// TestNeverTheLastColumn: whatever a text is followed by that is a number, one value, few values or of another script,
// the text is not that column, or the list is refused.
func TestNeverTheLastColumn(t *testing.T) {
	last := map[string]func(i int) string{
		"seconds":       func(i int) string { return fmt.Sprintf("%d.%02d", 2+i%9, i) },
		"whole seconds": func(i int) string { return fmt.Sprint(1 + i%3) },
		"samples":       func(i int) string { return fmt.Sprint(22050 + 17*i) },
		"zero":          func(int) string { return "0" },
		"one name":      func(int) string { return "anna" },
		"a long name":   func(int) string { return "Speaker of the House" },
		"names":         func(i int) string { return []string{"anna", "bob", "carl"}[i%3] },
		"a language":    func(int) string { return "de" },
		"languages":     func(i int) string { return []string{"de", "en"}[i%2] },
		"a mood":        func(int) string { return "neutral" },
		"genders":       func(i int) string { return []string{"male", "female"}[i%2] },
		"greek":         func(i int) string { return greek(sentence(i)) },
		"a date":        func(i int) string { return fmt.Sprintf("2024-01-%02d", 1+i%28) },
		"times":         func(i int) string { return fmt.Sprintf("00:00:%02d", i) },
		"negative":      func(i int) string { return fmt.Sprintf("-%d.5", i) },
	}
	for name, value := range last {
		for _, middle := range []bool{false, true} {
			for _, paths := range []bool{false, true} {
				list := ""
				dir := t.TempDir()
				for i := range 24 {
					write(t, filepath.Join(dir, wavs(i)), wavFile(8000, 1, ramp(1, 8000*(1+i%3))))
					key, text := fmt.Sprintf("c%d", i), sentence(i)
					if paths {
						key = wavs(i)
					}
					if middle {
						text += "|" + sentence(i)
					}
					list += key + "|" + text + "|" + value(i) + "\n"
				}
				write(t, filepath.Join(dir, "metadata.csv"), []byte(list))
				ix, err := Open(context.Background(), Config{Dir: dir, SampleRate: 8000})
				if err != nil {
					continue
				}
				for i, r := range ix.Rows {
					if r.Text != sentence(i) {
						t.Errorf("%s: %s: the text of line %d is %q", name, ix.Layout, i, r.Text)
						break
					}
				}
				if len(ix.Rows) != 24 {
					t.Errorf("%s: %d rows: %+v", name, len(ix.Rows), ix.Rejected[0])
				}
			}
		}
	}
}

// TestNoVoices: a column whose few values measure, date or locate a recording, or say how somebody speaks, is not the
// speaker in silence. Names that look alike are.
func TestNoVoices(t *testing.T) {
	for value, voices := range map[string]bool{
		"%d words": false, "%dkHz": false, "2024-01-0%d": false, "03:0%d": false, "https://example.org/book%d": false,
		"v%d": true, "speaker %d": true, "%d_anna": true, "book-%d": true,
	} {
		dir, list := t.TempDir(), ""
		for i := range 24 {
			write(t, filepath.Join(dir, wavs(i)), wavFile(8000, 1, ramp(1, 8000)))
			list += fmt.Sprintf("c%d|%s|%s\n", i, sentence(i), fmt.Sprintf(value, 1+i%3))
		}
		write(t, filepath.Join(dir, "metadata.csv"), []byte(list))
		ix, err := Open(context.Background(), Config{Dir: dir, SampleRate: 8000})
		if voices && (err != nil || len(ix.Speakers) != 3) {
			t.Errorf("%q: %v", value, err)
		}
		if !voices && err == nil && len(ix.Speakers) > 1 {
			t.Errorf("%q: speakers %q", value, ix.Speakers)
		}
	}
}

// TestSeparatorOfIDs: ids of recordings that exist show the separator of a list without names. A comma in a text is no
// other column in silence.
func TestSeparatorOfIDs(t *testing.T) {
	for _, c := range []struct {
		separator, more string
		layout, err     string
	}{
		{";", "", "ljspeech;separator=semicolon;quotes=csv", ""},
		{"; ", "", "ljspeech;separator=semicolon;quotes=csv", ""},
		{",", "", "ljspeech;separator=comma;quotes=csv", ""},
		{",", ", or so", "", "no '|' between id and text"}, {" ", "", "", "no '|' between id and text"},
	} {
		dir, list := t.TempDir(), ""
		for i := range 24 {
			write(t, filepath.Join(dir, wavs(i)), wavFile(8000, 1, ramp(1, 8000)))
			list += fmt.Sprintf("c%d%s%s%s\n", i, c.separator, sentence(i), c.more)
		}
		write(t, filepath.Join(dir, "metadata.csv"), []byte(list))
		ix, err := Open(context.Background(), Config{Dir: dir, SampleRate: 8000})
		if c.err != "" {
			contains(t, err, c.err)
		} else if err != nil || ix.Layout != c.layout || ix.Rows[3].Text != sentence(3) {
			t.Errorf("%q: %v, %v", c.separator, ix.Layout, err)
		}
	}
}

func sentence(i int) string {
	return fmt.Sprintf("%s and %s went to the %s.", []string{"Anna", "Bob", "Carl", "Dora"}[i%4],
		[]string{"a friend", "his dog", "her sister"}[i%3], strings.Repeat("x", i)+"market")
}
