package fold_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/xtts-host/xtts-host/host/base/fold"
)

func TestText(t *testing.T) {
	const width = 30
	for name, c := range map[string]struct{ text, want string }{
		"short": {"memory    6.35 MiB, all in all", "memory    6.35 MiB, all in all"},
		"columns": {
			"memory    6.35 MiB: weights 1.59, gradients 1.59",
			"memory    6.35 MiB: weights\n          1.59, gradients 1.59",
		},
		"no label": {
			"          for 8 rows of the largest bucket: 1.42",
			"          for 8 rows of the\n            largest bucket:\n            1.42",
		},
		"a sentence": {
			"error: the file runs/a/config.yaml is not there", "error: the file\n  runs/a/config.yaml is not\n  there",
		},
		"a long word": {
			"error: /a/very/long/path/that/has/no/space/at/all is not there",
			"error:\n  /a/very/long/path/that/has/no/space/at/all\n  is not there",
		},
		"only a word": {strings.Repeat("x", 40), strings.Repeat("x", 40)},
		"no ASCII": {
			"größe     übermäßig große Zahl von Wörtern", "größe     übermäßig große Zahl\n          von Wörtern",
		},
		"late columns": {
			"a b c d e f g h i j k l m n  second column of it", "a b c d e f g h i j k l m n\n  second column of it",
		},
		"bars": {
			"2.0 │" + strings.Repeat("█", 20) + " 12", "2.0 │" + strings.Repeat("█", 20) + " 12",
		},
		"wide": {
			"語    " + strings.Repeat("語", 8) + " " + strings.Repeat("語", 8),
			"語    " + strings.Repeat("語", 8) + "\n     " + strings.Repeat("語", 8),
		},
		"a label and a long word": {
			"data      /a/very/long/path/that/is/wide 24 clips",
			"data      /a/very/long/path/that/is/wide\n          24 clips",
		},
		"spaces": {"one" + strings.Repeat(" ", 40), "one"},
		"deep": {
			strings.Repeat(" ", 35) + "one two", strings.Repeat(" ", 35) + "one\n" + strings.Repeat(" ", 15) + "two",
		},
		"a hint": {
			"  hint: make -C /a/folder with all that follows", "  hint: make -C /a/folder with all that follows",
		},
		"a command": {"convert it: iconv -t UTF-8 a >b && mv b a", "convert it: iconv -t UTF-8 a >b && mv b a"},
		"a quote": {
			"folder   '/tmp/my data/with spaces/here' is one", "folder   '/tmp/my data/with spaces/here' is one",
		},
		"a quoted sign": {
			"error: a.csv:3: no '|' between id and 'text'", "error: a.csv:3: no '|' between\n  id and 'text'",
		},
		"a shell's quote": {
			`folder  '/tmp/it'\''s my data/with spaces/here'`, `folder  '/tmp/it'\''s my data/with spaces/here'`,
		},
		"only numbers": {"steps 100 200 300 400 500 600 700 800", "steps 100 200 300 400 500 600\n  700 800"},
		"a numbered item": {
			"spoken  1: 1.4 s, cut now, 2: 12.0 s", "spoken  1: 1.4 s, cut now,\n        2: 12.0 s",
		},
		"a unit":  {"memory    weights of abo 1.59 MiB", "memory    weights of abo\n          1.59 MiB"},
		"numbers": {"1 2 3 4 5 6 7 8 9 10 11 12 13 14 15", "1 2 3 4 5 6 7 8 9 10 11 12 13\n  14 15"},
		"figures": {"step 2/6  loss 1.985  mel_loss 0.483 x", "step 2/6  loss 1.985\n          mel_loss 0.483 x"},
		"lines": {
			"one\n\ntwo    three four five six seven eight", "one\n\ntwo    three four five six\n       seven eight",
		},
	} {
		if got := fold.Text(c.text, width); got != c.want {
			t.Errorf("%s:\n%s\nwant\n%s", name, got, c.want)
		}
	}
}

func TestWriter(t *testing.T) {
	var to strings.Builder
	w := fold.NewWriter(&to, 12)
	for _, part := range []string{"a  b", "cd ef gh ij kl\nmn", " op\n", "rest"} {
		if n, err := fmt.Fprint(w, part); n != len(part) || err != nil {
			t.Fatal(n, err)
		}
	}
	if got, want := to.String(), "a  bcd ef gh\n   ij kl\nmn op\n"; got != want {
		t.Errorf("%q, want %q", got, want)
	}
}
