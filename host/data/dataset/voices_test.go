package dataset

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"testing"

	"github.com/xtts-host/xtts-host/host/data/dataset/internal/layout"
)

var sentences = clips

// readBy makes the clips those of so many voices, of which each reads every sentence.
func readBy(t *testing.T, n int) {
	t.Cleanup(func() { clips = sentences })
	clips = nil
	for _, c := range sentences {
		for v := range n {
			c.speaker, c.language = voiceNames[v], []string{"en", "de"}[v%2]
			clips = append(clips, c)
		}
	}
}

// TestKnownLayoutsOfVoices: a list in which several voices read the same sentences is read as one of other sentences.
func TestKnownLayoutsOfVoices(t *testing.T) {
	for _, n := range []int{2, 3, 5, 10} {
		t.Run(fmt.Sprint(n), func(t *testing.T) {
			readBy(t, n)
			for _, k := range known {
				t.Run(k.name, func(t *testing.T) {
					m := made{t, t.TempDir()}
					k.make(&m)
					ix := open(t, Config{Dir: m.dir, SampleRate: 8000})
					if k.layout != "" && ix.Layout != k.layout {
						t.Errorf("layout %q, want %q", ix.Layout, k.layout)
					}
					check(t, ix, k.normal, k.speaker, k.language)
				})
			}
		})
	}
}

// TestTranslationOfVoices: of sentences and their translation, the text is asked for, and no sentence is a speaker.
func TestTranslationOfVoices(t *testing.T) {
	for _, n := range []int{2, 3, 5, 10} {
		readBy(t, n)
		m := made{t, t.TempDir()}
		m.list("metadata.csv", "",
			func(i int, c spoken) string { return fmt.Sprintf("c%d|%s|%s", i, c.text, reversed(c.text)) }, wavs)
		q := asks(t, m.dir)
		if a, b := q.Readings[0].String(), q.Readings[1].String(); a != "columns=id,text,-" || b != "last-column" {
			t.Errorf("%d voices: %s", n, q)
		}
	}
}

// TestLabelsAreNoTexts: labels that repeat are never taken as the text, with or without a text beside them.
func TestLabelsAreNoTexts(t *testing.T) {
	for name, labels := range map[string][]string{
		"moods": {"happy", "sad", "angry", "calm"}, "styles": {"very happy", "a bit sad", "quite angry", "calm"},
		"full names":       {"Anna Maria Smith", "Ludwig van Beethoven", "John F. Kennedy", "Vincent van der Berg"},
		"numbered":         {"speaker 1", "speaker 2", "speaker 3", "speaker 4"},
		"dates":            {"12 March 2024", "13 March 2024", "14 March 2024", "15 March 2024"},
		"one long name":    {"Speaker of the House"},
		"names in kanji":   {"\u7530\u4e2d\u592a\u90ce", "\u9234\u6728\u82b1\u5b50", "\u4f50\u85e4\u5065"},
		"initials":         {"Anna S.", "Bob T.", "Carl U.", "Dora V."},
		"parts of a house": {"the kitchen", "the hall"},
	} {
		label := func(i int) string { return labels[i%len(labels)] }
		readBy(t, 3)
		for _, line := range []func(i int, c spoken) string{
			func(i int, c spoken) string { return fmt.Sprintf("c%d|%s|%s", i, c.text, label(i)) },
			func(i int, c spoken) string { return fmt.Sprintf("c%d|%s|%s", i, label(i), c.text) },
		} {
			m := made{t, t.TempDir()}
			m.list("metadata.csv", "", line, wavs)
			ix, err := Open(context.Background(), Config{Dir: m.dir, SampleRate: 8000})
			if err != nil {
				asks(t, m.dir)
				continue
			}
			for i, r := range ix.Rows {
				if r.Text == label(i) {
					t.Errorf("%s: %s: a text is %q", name, ix.Layout, r.Text)
				}
			}
		}
		m := made{t, t.TempDir()}
		m.list("metadata.csv", "",
			func(i int, c spoken) string { return fmt.Sprintf("c%d|%s|%s", i, c.speaker, label(i)) }, wavs)
		asks(t, m.dir)
	}
}

// asks returns the question about the list of a folder.
func asks(t *testing.T, dir string) *layout.Question {
	t.Helper()
	_, err := Open(context.Background(), Config{Dir: filepath.Join(dir, "metadata.csv"), SampleRate: 8000})
	q, ok := errors.AsType[*layout.Question](err)
	if !ok {
		t.Fatalf("%v is no question", err)
	}
	return q
}
