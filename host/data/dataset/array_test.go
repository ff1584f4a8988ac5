package dataset

import (
	"context"
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/xtts-host/xtts-host/shared/hint"
)

// TestArrayOfObjects: a list that is one JSON array is refused with a command that, followed to the letter, writes the
// list.
func TestArrayOfObjects(t *testing.T) {
	if _, err := exec.LookPath("python3"); err != nil {
		t.Skip("python3 is not installed")
	}
	objects := []map[string]any{}
	for i, c := range clips {
		objects = append(objects, map[string]any{"audio_filepath": wavs(i), "text": c.text + " Übung دو"})
	}
	one, _ := json.Marshal(objects)
	several, _ := json.MarshalIndent(objects, "", "    ")
	for name, list := range map[string][]byte{
		"one line": one, "several lines": several, "a mark of byte order": append([]byte("\ufeff\n"), several...),
	} {
		for _, taken := range []bool{false, true} {
			dir := filepath.Join(t.TempDir(), "it's a folder; $HOME")
			m := &made{t, dir}
			for i := range clips {
				m.recording(i, wavs(i))
			}
			path := filepath.Join(dir, "train.json")
			write(t, path, list)
			if taken {
				write(t, filepath.Join(dir, "train.jsonl"), []byte("mine"))
			}
			_, err := Open(context.Background(), Config{Dir: path, SampleRate: 8000})
			advice := hint.Of(err)
			_, command, ok := strings.Cut(advice, ": ")
			if err == nil || !ok || !strings.Contains(err.Error(), "train.json is one JSON array of objects") {
				t.Fatalf("%s: %v, hint %q", name, err, advice)
			}
			if _, fault := ReadSentences(path); hint.Of(fault) != advice {
				t.Errorf("%s: as sentences: %v, hint %q", name, fault, hint.Of(fault))
			}
			if out, err := exec.Command("sh", "-ec", command).CombinedOutput(); err != nil {
				t.Fatalf("%s: %v: %s", command, err, out)
			}
			lines := filepath.Join(dir, "train.jsonl")
			if taken {
				if kept, _ := os.ReadFile(lines); string(kept) != "mine" {
					t.Errorf("the command replaces a list")
				}
				lines = filepath.Join(dir, "train.lines.jsonl")
			}
			ix, err := Open(context.Background(), Config{Dir: lines, SampleRate: 8000})
			if err != nil || len(ix.Rows) != len(clips) || len(ix.Rejected) > 0 ||
				!strings.HasSuffix(ix.Rows[0].Text, "Übung دو") {
				t.Fatalf("%s: after %s: %v, %+v", name, command, err, ix)
			}
		}
	}
}
