package run

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/xtts-host/xtts-host/host/data/dataset"
	"github.com/xtts-host/xtts-host/host/observe/console"
)

// TestClipTornDuringTheRun truncates a clip after the index was made: the decoder finds it, the run continues without
// it, and the checkpoint names it.
func TestClipTornDuringTheRun(t *testing.T) {
	sample, err := dataset.Sample(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	clip := filepath.Join(sample, "wavs", "A", "0003.wav")
	torn := false
	tear := writer(func(p []byte) { // the banner comes when the plan is complete
		if !torn {
			torn = true
			if err := os.Truncate(clip, 20000); err != nil {
				t.Error(err)
			}
		}
	})
	dir, err := trainPico(t, console.Console{Out: tear}, "--train-data", sample, "--max-steps", "5",
		"--model-start-delay", "0")
	if err != nil {
		t.Fatal(err)
	}
	for file, want := range map[string]string{
		"quarantine.jsonl": `{"id":"A/0003","path":"` + clip +
			`","reason":"truncated: the \"data\" chunk declares 82898 bytes, but the file has 19956; copy the recording from its source again, or save what is there: ffmpeg -i ` +
			clip,
		"report.json":                        `"quarantined": 1`,
		"checkpoints/step-000005/state.json": `"id": "A/0003"`,
	} {
		data, err := os.ReadFile(filepath.Join(dir, file))
		if err != nil || !strings.Contains(string(data), want) {
			t.Errorf("%s does not have %s: %v\n%s", file, want, err, data)
		}
	}
	if data, _ := os.ReadFile(filepath.Join(dir, "quarantine.jsonl")); strings.Count(string(data), "\n") != 1 {
		t.Errorf("more rows than one:\n%s", data)
	}
}
