package fold

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// TestKeep: a path stays whole, wherever the line could be broken, and so does the name of a file below it.
func TestKeep(t *testing.T) {
	const width = 30
	defer func(had []string) { kept = had }(kept)
	Keep("/tmp/meine Hörbücher", "runs/a b  c", "no-space")
	for text, want := range map[string]string{
		"data      /tmp/meine Hörbücher/metadata.csv and more": "data      /tmp/meine Hörbücher/metadata.csv\n" +
			"          and more",
		"error: open /tmp/meine Hörbücher/wavs/one two.wav: no such": "error: open\n" +
			"  /tmp/meine Hörbücher/wavs/one two.wav:\n  no such",
		"warning: /tmp/meine Hörbücher has 3 clips, the rest is gone": "warning: /tmp/meine Hörbücher\n" +
			"  has 3 clips, the rest is\n  gone",
		"folder  runs/a b  c":                    "folder  runs/a b  c",
		"run  runs/a b  c/checkpoints/step-0001": "run  runs/a b  c/checkpoints/step-0001",
		"/tmp/meine und deine Bücher sind hier":  "/tmp/meine und deine Bücher\n  sind hier",
	} {
		if got := Text(text, width); got != want {
			t.Errorf("%s:\n%s\nwant\n%s", text, got, want)
		}
	}
	wd, err := os.Getwd()
	line := strings.Repeat("x", width) + " " + filepath.Join(wd, "runs/a b  c")
	if err != nil || strings.Count(Text(line, width), "\n") != 1 {
		t.Errorf("%v: a path from the root is broken: %s", err, Text(line, width))
	}
}

// TestProse: only the lines of a table stay as wide as they are.
func TestProse(t *testing.T) {
	table := "a  b  " + strings.Repeat("c ", 20) + "d"
	if got, want := Prose(table+"\none two three four\n", 10), table+"\none two\n  three\n  four\n"; got != want {
		t.Errorf("%q, want %q", got, want)
	}
}
