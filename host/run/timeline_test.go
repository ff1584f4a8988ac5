package run

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/xtts-host/xtts-host/host/base/exit"
	"github.com/xtts-host/xtts-host/host/observe/console"
	"github.com/xtts-host/xtts-host/host/observe/trace/tracetest"
)

// TestTimeline traces ten steps of a run that evaluates and saves, and looks for every track and what belongs on it.
func TestTimeline(t *testing.T) {
	path := filepath.Join(t.TempDir(), "timeline.json")
	var out strings.Builder
	dir, err := trainPico(t, console.Console{Out: &out}, "--max-steps", "12", "--trace", path, "--trace-steps", "10",
		"--eval-every", "4", "--checkpoint-every", "5", "--val-data", clips, "--accumulate", "2")
	if err != nil {
		t.Fatal(err)
	}
	file := tracetest.Read(t, path)
	names := map[string]int{} // "group/track/span"
	for group, tracks := range file.Spans {
		for track, spans := range tracks {
			for _, s := range spans {
				names[group+"/"+track+"/"+s.Name]++
			}
		}
	}
	for name, least := range map[string]int{
		"pipeline/decode 0/decode": 1, "pipeline/decode 1/decode": 1, "pipeline/target/target": 1,
		"pipeline/transfer/transfer": 20, "device slots/slot 0/FREE": 1, "device slots/slot 1/PREPARING": 1,
		"device slots/slot 2/READY": 1, "device slots/slot 2/TRAINING": 1, "trainer/trainer/wait": 20,
		"trainer/trainer/train": 20, "trainer/trainer/optimizer": 10, "trainer/trainer/evaluate": 2,
		"trainer/trainer/checkpoint": 2,
	} {
		if names[name] < least {
			t.Errorf("%d of %s, want %d or more", names[name], name, least)
		}
	}
	if n := names["trainer/trainer/optimizer"]; n != 10 {
		t.Errorf("%d steps, want the first 10", n)
	}
	for _, counter := range []string{"ring slots building", "ring slots ready"} {
		if len(file.Counters[counter]) == 0 {
			t.Errorf("no counter %s", counter)
		}
	}
	if _, there := file.Spans["GPU"]; there {
		t.Error("a GPU on the CPU")
	}
	for _, s := range file.Spans["pipeline"]["transfer"] {
		if s.Args["bytes"] <= 0 {
			t.Errorf("a transfer has %v", s.Args)
		}
	}
	if !strings.Contains(out.String(), "timeline") {
		t.Errorf("the banner does not name the timeline:\n%s", &out)
	}
	// A resumed run does not overwrite it.
	data, err := os.ReadFile(filepath.Join(dir, "config.yaml"))
	if err != nil || !strings.Contains(string(data), "# trace: ") {
		t.Errorf("config.yaml, %v:\n%s", err, data)
	}
}

func TestTimelineThatCannotBeWritten(t *testing.T) {
	_, err := trainPico(t, console.Console{}, "--trace", filepath.Join(t.TempDir(), "no", "folder"))
	if err == nil || exit.Code(err) != 2 || !strings.Contains(err.Error(), "--trace ") || exit.Hint(err) == "" {
		t.Errorf("%v, exit status %d, hint %q", err, exit.Code(err), exit.Hint(err))
	}
}
