package runs

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/xtts-host/xtts-host/host/base/exit"
	"github.com/xtts-host/xtts-host/host/base/fold"
	"github.com/xtts-host/xtts-host/shared/hint"
)

// write makes a run folder of these files, written at a day of June 2026.
func write(t *testing.T, dir string, day int, content map[string]string) {
	t.Helper()
	if err := os.MkdirAll(dir, 0o777); err != nil {
		t.Fatal(err)
	}
	at := time.Date(2026, 6, day, 12, 30, 0, 0, time.Local)
	for name, text := range content {
		path := filepath.Join(dir, name)
		if err := os.WriteFile(path, []byte(text), 0o666); err != nil {
			t.Fatal(err)
		}
		if err := os.Chtimes(path, at, at); err != nil {
			t.Fatal(err)
		}
	}
}

func step(n int, loss float64) string {
	return fmt.Sprintf(`{"step":%d,"loss":%g,"step_ms":50,"samples":4,"frames":10}`+"\n", n, loss)
}

// runs makes a folder of three runs, one that cannot be read, and others.
func runs(t *testing.T) string {
	t.Helper()
	dir := filepath.Join(t.TempDir(), "Läufe 1")
	write(t, filepath.Join(dir, "b"), 3, map[string]string{
		"metrics.jsonl": step(1, 4), "report.json": `{"outcome":"done","steps":1,"loss":{"first":4,"last":4,"best":4},
			"steps_per_second":13.26,"wall_s":3725,"evaluation":{"step":1,"loss":5,"best":{"step":1,"loss":4.5}}}`,
	})
	write(t, filepath.Join(dir, "a\x1b[31mred"), 2, map[string]string{
		"metrics.jsonl": step(1, 4) + step(2, 3) + step(3, 2), "eval.jsonl": `{"step":2,"loss":1.25}` + "\n",
	})
	write(t, filepath.Join(dir, strings.Repeat("长", 40)), 1, map[string]string{
		"metrics.jsonl": "", "report.json": `{"outcome":"out of memory","loss":{"first":null,"last":null,"best":null}}`,
	})
	write(t, filepath.Join(dir, "other"), 1, map[string]string{"notes.txt": "no run"})
	bad := filepath.Join(dir, "pipe")
	if err := os.Mkdir(bad, 0o777); err != nil {
		t.Fatal(err)
	}
	if err := syscall.Mkfifo(filepath.Join(bad, "metrics.jsonl"), 0o666); err != nil {
		t.Fatal(err)
	}
	return dir
}

func TestList(t *testing.T) {
	dir := runs(t)
	var out bytes.Buffer
	if err := List(&out, []string{dir}, false, 0); err != nil {
		t.Fatal(err)
	}
	want := strings.ReplaceAll(`written           state       steps         loss   best  steps/s   wall  size  run
2026-06-01 12:30  failed          0          -→-      -     0.00      -   73B  DIR/`+strings.Repeat("长", 40)+`
2026-06-02 12:30  unfinished      3  4.000→2.000  1.250     20.0      -  194B  DIR/a\x1b[31mred
2026-06-03 12:30  done            1  4.000→4.000  4.500     13.3  1h02m  227B  DIR/b
cannot be read: DIR/pipe: metrics.jsonl: a named pipe, not a regular file; report.json is not there: the run still trains, or was killed
`, "DIR", dir)
	if got := out.String(); got != want {
		t.Errorf("got\n%s\nwant\n%s", got, want)
	}
	out.Reset()
	if err := List(&out, []string{dir}, false, 80); err != nil {
		t.Fatal(err)
	}
	lines := strings.Split(out.String(), "\n")
	for _, line := range lines[:4] {
		if n := fold.Width(line); n > 80 {
			t.Errorf("%d columns: %s", n, line)
		}
	}
	if want := "2026-06-02 unfinished "; !strings.HasPrefix(lines[2], want) {
		t.Errorf("%q does not begin with %q", lines[2], want)
	}
}

// TestListByMeasure: a run has the value of its measure, which the table names.
func TestListByMeasure(t *testing.T) {
	dir := t.TempDir()
	write(t, filepath.Join(dir, "a"), 2, map[string]string{
		"metrics.jsonl": step(1, 4), "eval.jsonl": `{"step":1,"loss":4.5}` + "\n",
	})
	write(t, filepath.Join(dir, "b"), 3, map[string]string{
		"metrics.jsonl": step(1, 4) + step(2, 3), "config.yaml": "best_by: mel_loss\n",
		"eval.jsonl": `{"step":1,"loss":5,"mel_loss":0.125}` + "\n" + `{"step":2,"loss":4,"mel_loss":0.25}` + "\n",
	})
	var out bytes.Buffer
	if err := List(&out, []string{dir}, false, 0); err != nil {
		t.Fatal(err)
	}
	want := strings.ReplaceAll(`written           state       steps         loss   best        by  steps/s  wall  size  run
2026-06-02 12:30  unfinished      1  4.000→4.000  4.500      loss     0.00     -   79B  DIR/a
2026-06-03 12:30  unfinished      2  4.000→3.000  0.125  mel_loss     20.0     -  205B  DIR/b
`, "DIR", dir)
	if out.String() != want {
		t.Errorf("got\n%s\nwant\n%s", out.String(), want)
	}
	out.Reset()
	if err := List(&out, []string{dir}, true, 0); err != nil {
		t.Fatal(err)
	}
	var got Listing
	if err := json.Unmarshal(out.Bytes(), &got); err != nil {
		t.Fatal(err)
	}
	if b := got.Runs[1].Best; b.By != "mel_loss" || b.Step != 1 || *b.Value != 0.125 || b.Loss != 5 ||
		got.Runs[0].Best.By != "" || strings.Contains(out.String(), `"value":null`) {
		t.Errorf("%s", out.String())
	}
}

// TestNarrowByMeasure: where the name of a measure takes the room of the names of the runs, columns are left out, and a
// name keeps its end.
func TestNarrowByMeasure(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "größere Läufe")
	write(t, filepath.Join(dir, "zweiter"), 2, map[string]string{
		"metrics.jsonl": step(1, 4) + step(2, 3), "config.yaml": "best_by: spoken.speaker_similarity\n",
		"eval.jsonl":   `{"step":1,"loss":5}` + "\n",
		"spoken.jsonl": `{"step":1,"clip":1,"ended":true,"measures":{"length_ratio":1,"speaker_similarity":0.5}}` + "\n",
	})
	for width, want := range map[int]string{
		60: "written    state      steps        loss  best                 by run\n" +
			"2026-06-02 unfinished     2 4.000→3.000 0.500 speaker_similarity …zweiter\n",
		80: "written    state      steps        loss  best                 by run\n" +
			"2026-06-02 unfinished     2 4.000→3.000 0.500 speaker_similarity … Läufe/zweiter\n",
		86: "written    state      steps        loss  best                 by wall run\n" +
			"2026-06-02 unfinished     2 4.000→3.000 0.500 speaker_similarity    - …e Läufe/zweiter\n",
	} {
		var out bytes.Buffer
		if err := List(&out, []string{dir}, false, width); err != nil {
			t.Fatal(err)
		}
		if out.String() != want {
			t.Errorf("%d columns:\n%s\nwant\n%s", width, out.String(), want)
		}
	}
}

// TestListDamaged: a line that cannot be read is named, and the run has its figures.
func TestListDamaged(t *testing.T) {
	dir := t.TempDir()
	write(t, filepath.Join(dir, "a"), 2, map[string]string{
		"metrics.jsonl": step(1, 4) + strings.Repeat("x", 3<<20) + "\n" + step(3, 2),
	})
	var text, object bytes.Buffer
	if err := errors.Join(List(&text, []string{dir}, false, 0), List(&object, []string{dir}, true, 0)); err != nil {
		t.Fatal(err)
	}
	problem := "metrics.jsonl:2 was left out: it has more than 256 KiB"
	var got Listing
	if err := json.Unmarshal(object.Bytes(), &got); err != nil {
		t.Fatal(err)
	}
	if !slices.Equal(got.Runs[0].Problems, []string{problem}) || got.Runs[0].Steps != 3 {
		t.Errorf("%+v", got.Runs)
	}
	want := "\nread in part: " + filepath.Join(dir, "a") + ": " + problem + "\n"
	if !strings.Contains(text.String(), "unfinished      3  4.000→2.000") || !strings.HasSuffix(text.String(), want) {
		t.Errorf("%s", text.String())
	}
}

func TestListAsJSON(t *testing.T) {
	dir := runs(t)
	var out bytes.Buffer
	if err := List(&out, []string{filepath.Join(dir, "b"), dir}, true, 80); err != nil {
		t.Fatal(err)
	}
	var got Listing
	if err := json.Unmarshal(out.Bytes(), &got); err != nil {
		t.Fatal(err)
	}
	if len(got.Runs) != 3 || len(got.Unreadable) != 1 || got.Runs[2].WallS != 3725 || got.Runs[2].Best.Loss != 4.5 ||
		got.Runs[0].Best != nil || got.Runs[1].Outcome != "unfinished" || got.Runs[1].StepsPerSecond != 20 {
		t.Errorf("%s", out.String())
	}
	if err := List(&out, []string{dir + "x"}, true, 80); exit.Code(err) != exit.StatusRefused {
		t.Errorf("a folder that is not there: %v", err)
	}
}

func TestShortFigures(t *testing.T) {
	for seconds, want := range map[float64]string{
		0.2: "<1s", 45: "45s", 725: "12m05s", 11_220: "3h07m", 1_051_200: "12d04h", 1e300: "10000d00h",
	} {
		if got := short(seconds); got != want {
			t.Errorf("%g s is %s, want %s", seconds, got, want)
		}
	}
	for n, want := range map[int64]string{7: "7B", 1536: "1.5K", 23 << 20: "23M", 1023 << 20: "1.0G", 5 << 40: "5.0T"} {
		if got := sizeOf(n); got != want {
			t.Errorf("%d bytes are %s, want %s", n, got, want)
		}
	}
	for n, want := range map[int64]string{99_999: "99999", 100_000: "100k", 12_345_678: "12.3M"} {
		if got := count(n); got != want {
			t.Errorf("%d is %s, want %s", n, got, want)
		}
	}
}

// TestFolders: a run is there once, however it is named. What is no folder is refused with a hint that works.
func TestFolders(t *testing.T) {
	dir := t.TempDir()
	run, link := filepath.Join(dir, "a"), filepath.Join(t.TempDir(), "link")
	write(t, run, 1, map[string]string{"metrics.jsonl": step(1, 4)})
	if err := os.Symlink(run, link); err != nil {
		t.Fatal(err)
	}
	list, err := Folders([]string{run, dir, run + "/", link, filepath.Join(run, "..", "a")})
	if err != nil || len(list) != 1 || list[0] != run {
		t.Errorf("%q, %v", list, err)
	}
	for name, want := range map[string]string{
		"": "name the folder of a run", filepath.Join(run, "metrics.jsonl"): "name the run: " + run,
		os.Args[0]: "name the folder of a run",
	} {
		if _, err := Folders([]string{name}); err == nil || !strings.HasPrefix(hint.Of(err), want) {
			t.Errorf("%q: %v, hint %q", name, err, hint.Of(err))
		}
	}
}
