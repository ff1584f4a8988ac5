package dataset

import (
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"maps"
	"math/rand/v2"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/xtts-host/xtts-host/host/data/dataset/internal/layout"
	"github.com/xtts-host/xtts-host/scripts/nightly"
)

// beside are columns that stand beside texts, of the clip i, which the voice v reads.
var beside = map[string]func(i, v int, text string) []string{
	"two forms of a name": func(_, v int, _ string) []string { return []string{givenName(v), givenName(v) + " S."} },
	"a name twice":        func(_, v int, _ string) []string { return []string{givenName(v), givenName(v)} },
	"a name and its full form": func(_, v int, _ string) []string {
		return []string{strings.ToLower(givenName(v)) + "_smith", givenName(v) + " Smith"}
	},
	"a name and its number": func(_, v int, _ string) []string {
		return []string{givenName(v), fmt.Sprintf("%s_%02d", givenName(v), v)}
	},
	"a place and its country": func(_, v int, _ string) []string {
		return []string{givenName(v) + " of York", givenName(v) + " of York, England"}
	},
	"three forms of a name": func(_, v int, _ string) []string {
		return []string{givenName(v), givenName(v) + " S.", strings.ToUpper(givenName(v) + " s.")}
	},
	"moods": func(i, _ int, _ string) []string { return []string{[]string{"happy", "sad", "angry"}[i%3]} },
	"moods twice": func(i, _ int, _ string) []string {
		m := []string{"happy", "sad", "angry"}[i%3]
		return []string{m, "very " + m}
	},
	"sentence-like": func(i, _ int, _ string) []string {
		m := []string{"Read it with joy.", "Read it with grief.", "Read it in anger."}[i%3]
		return []string{m, m + "."}
	},
	"phonemes": func(_, _ int, text string) []string { return []string{soundsOf(text)} },
	"dates":    func(i, _ int, _ string) []string { return []string{fmt.Sprintf("2024-%02d-%02d", 1+i/28%12, 1+i%28)} },
	"times": func(i, _ int, _ string) []string {
		return []string{fmt.Sprintf("2024-01-02T03:%02d:%02dZ", i/60%60, i%60)}
	},
	"long dates": func(i, _ int, _ string) []string { return []string{fmt.Sprintf("%d March %d", 1+i%28, 1900+i)} },
	"hashes": func(i, _ int, _ string) []string {
		return []string{fmt.Sprintf("%x", sha256.Sum256([]byte{byte(i), byte(i >> 8)}))}
	},
	"short hashes": func(i, _ int, _ string) []string {
		return []string{fmt.Sprintf("%x", sha256.Sum256([]byte{byte(i), byte(i >> 8)}))[:8]}
	},
	"two hashes": func(i, _ int, _ string) []string {
		h := fmt.Sprintf("%x", sha256.Sum256([]byte{byte(i), byte(i >> 8)}))
		return []string{h[:32], strings.ToUpper(h[:32])}
	},
	"seconds": func(i, _ int, _ string) []string { return []string{fmt.Sprintf("%d.%02d", 1+i%9, i%100)} },
	"samples": func(i, _ int, _ string) []string { return []string{fmt.Sprint(22050 + 17*i)} },
	"from and to": func(i, _ int, _ string) []string {
		return []string{fmt.Sprintf("%d.5", i), fmt.Sprintf("%d.75", i+1)}
	},
	"splits": func(i, _ int, _ string) []string {
		return []string{[]string{"train", "train", "test", "dev"}[i%4]}
	},
	"numbers":       func(_, v int, _ string) []string { return []string{fmt.Sprint(v)} },
	"numbers twice": func(_, v int, _ string) []string { return []string{fmt.Sprint(v), fmt.Sprintf("%03d", v)} },
	"confidences":   func(i, _ int, _ string) []string { return []string{fmt.Sprintf("0.%03d", 900+i%100)} },
	"percent":       func(i, _ int, _ string) []string { return []string{fmt.Sprintf("%d%%", 90+i%10)} },
	"units":         func(i, _ int, _ string) []string { return []string{fmt.Sprintf("%d.%d s", 1+i%9, i%10)} },
	"a book": func(i, _ int, _ string) []string {
		return []string{[]string{"The Old Man and the Sea", "Of Mice and Men"}[i%2]}
	},
	"a book and part": func(i, _ int, _ string) []string {
		b := []string{"The Old Man and the Sea", "Of Mice and Men"}[i%2]
		return []string{b, fmt.Sprintf("%s, part %d", b, 1+i%3)}
	},
	"a recorded place": func(i, _ int, _ string) []string {
		return []string{[]string{"the kitchen", "the hall"}[i%2]}
	},
	"another file": func(i, _ int, _ string) []string {
		return []string{fmt.Sprintf("/data/raw/session_%d.aiff", i)}
	},
	"a link": func(i, _ int, _ string) []string {
		return []string{fmt.Sprintf("https://example.org/watch?v=%d", i)}
	},
	"a number of words": func(_, _ int, text string) []string {
		return []string{fmt.Sprint(len(strings.Fields(text)))}
	},
	"bool":          func(i, _ int, _ string) []string { return []string{[]string{"True", "False"}[i%2]} },
	"a clip's name": func(i, _ int, _ string) []string { return []string{fmt.Sprintf("utt_%05d", i)} },
}

func givenName(v int) string {
	const names = "Anna Bob Carl Dora Emil Fritz Gerda Hans Ida Jan"
	list := strings.Fields(names)
	if v < len(list) {
		return list[v]
	}
	return list[v%10] + strings.Repeat("i", v/10)
}

func soundsOf(text string) string {
	return strings.NewReplacer("a", "ɐ", "e", "ə", "th", "ð", "o", "ɔ", "r", "ɹ", "i", "ɪ", "s", "z", ".", "").Replace(
		strings.ToLower(text))
}

// said is a sentence: one of very many.
func said(r *rand.Rand) string {
	words := strings.Fields(
		"the a ship road sun rain came went over under nobody knows where old house garden winter " +
			"summer people never always read wrote long short and but into river")
	var list []string
	for range 5 + r.IntN(8) {
		list = append(list, words[r.IntN(len(words))])
	}
	s := strings.Join(list, " ")
	return strings.ToUpper(s[:1]) + s[1:] + "."
}

// TestBesideTexts: whatever columns stand beside the texts, at any place, a text is never another column in silence. A
// question has the right reading.
func TestBesideTexts(t *testing.T) {
	dir := t.TempDir()
	for i := range 400 {
		write(t, filepath.Join(dir, wavs(i)), wavFile(8000, 1, ramp(1, 8000)))
	}
	every, n := nightly.Of(7, 1), 0 // no divisor of the columns' cases: others of them for each
	for _, name := range slices.Sorted(maps.Keys(beside)) {
		columns := beside[name]
		for _, lines := range []int{40, 400} {
			for _, voices := range []int{1, 2, 100} {
				for _, same := range []int{1, 8, 100} { // how many voices read a text
					if same > 1 && voices == 1 {
						continue
					}
					for place := range 3 {
						if n++; n%every > 0 {
							continue
						}
						besideText(t, dir, fmt.Sprintf("%s, %d lines, %d voices, each text by %d, place %d", name,
							lines, voices, same, place),
							lines, voices, same, place, columns)
					}
				}
			}
		}
	}
}

func besideText(
	t *testing.T, dir, name string, lines, voices, same, place int, columns func(i, v int, text string) []string,
) {
	r := rand.New(rand.NewPCG(1, 2))
	var texts []string
	var list strings.Builder
	for i := range lines {
		text := said(r)
		if i%min(voices, same) > 0 {
			text = texts[i-1]
		}
		texts = append(texts, text)
		fields := []string{fmt.Sprintf("c%d", i)}
		more := columns(i, i%voices, text)
		switch place {
		case 0:
			fields = slices.Concat(fields, []string{text}, more)
		case 1:
			fields = slices.Concat(fields, more, []string{text})
		case 2:
			fields = slices.Concat(more, fields, []string{text})
		}
		list.WriteString(strings.Join(fields, "|") + "\n")
	}
	file := filepath.Join(dir, "list.csv")
	write(t, file, []byte(list.String()))
	ix, err := Open(context.Background(), Config{Dir: file, SampleRate: 8000})
	if q, ok := errors.AsType[*layout.Question](err); ok {
		for _, r := range q.Readings {
			if slices.Contains(r.Columns, layout.Text) && strings.Contains(r.Says, texts[max(0, q.Line-1)]) {
				return
			}
		}
		t.Errorf("%s: no reading is right: %v", name, q)
		return
	}
	if err != nil { // without columns to choose from
		if !strings.Contains(err.Error(), "no column has texts") {
			t.Errorf("%s: %v", name, err)
		}
		return
	}
	for i, row := range ix.Rows {
		if row.Text != texts[i] {
			t.Errorf("%s: %s: the text of line %d is %q", name, ix.Layout, i, row.Text)
			return
		}
	}
}

// TestNoTextAtAll: two forms of a name without a text beside them are never texts in silence.
func TestNoTextAtAll(t *testing.T) {
	for _, lines := range []int{6, 40, 400} {
		m := made{t, t.TempDir()}
		write(t, filepath.Join(m.dir, wavs(0)), wavFile(8000, 1, ramp(1, 8000)))
		var list strings.Builder
		for i := range lines {
			fmt.Fprintf(&list, "c%d|%s|%s S.\n", i, givenName(i%3), givenName(i%3))
		}
		write(t, filepath.Join(m.dir, "metadata.csv"), []byte(list.String()))
		if q := asks(t, m.dir); q.Readings[1].Name != "ljspeech" { // or a few texts that very many voices read
			t.Errorf("%d lines: %v", lines, q)
		}
	}
}
