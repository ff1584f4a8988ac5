package prepare

import (
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/xtts-host/xtts-host/host/base/cachedir"
	"github.com/xtts-host/xtts-host/host/base/exit"
	"github.com/xtts-host/xtts-host/host/base/rundir"
	"github.com/xtts-host/xtts-host/host/data/batch"
	"github.com/xtts-host/xtts-host/host/observe/console"
	"github.com/xtts-host/xtts-host/host/observe/report"
	"github.com/xtts-host/xtts-host/host/run"
	"github.com/xtts-host/xtts-host/host/settings/config"
)

// says fails if a text does not match all of some patterns, in which a space is any number of spaces.
func says(t *testing.T, text string, patterns ...string) {
	t.Helper()
	for _, p := range patterns {
		if !regexp.MustCompile("(?m)" + strings.ReplaceAll(p, " ", " +")).MatchString(text) {
			t.Errorf("no line like %q in\n%s", p, text)
		}
	}
}

// TestShards: whatever the number of shards, in whatever order or at the same time they are prepared, in one folder or
// in several that are copied into one, the files and their bytes are the same. What is there is not computed again.
func TestShards(t *testing.T) {
	data := []string{"--train-data", clips(t, 60)}
	one := filepath.Join(t.TempDir(), "one")
	says(t, mustPrepare(t, Shard{0, 1}, one, data...), "^shard 1/1: 60 clips$", "^stages target, prosody$",
		"^prepared 120 rows: [0-9]+ computed, [0-9]+ there already$")
	want := contents(t, one)
	if n := 2*48 + 2; len(want) != n { // 60 clips have 48 recordings of different samples
		t.Fatalf("%d files, want %d: %v", len(want), n, slices.Sorted(maps.Keys(want)))
	}
	says(t, mustPrepare(t, Shard{0, 1}, one, data...), "^prepared 120 rows: 0 computed, 120 there already$",
		"^ nothing written in ")
	if d := differences(want, contents(t, one)); d != nil {
		t.Errorf("the second time: %v", d)
	}

	two := t.TempDir()
	var both sync.WaitGroup
	for i := range 2 {
		both.Go(func() {
			if text, err := prepareWith(t.Context(), console.Console{}, Shard{i, 2}, two, data...); err != nil {
				t.Errorf("%v\n%s", err, text)
			}
		})
	}
	both.Wait()
	if d := differences(want, contents(t, two)); d != nil {
		t.Errorf("two shards at the same time: %v", d)
	}

	merged, owners := t.TempDir(), map[string]int{}
	for i := range 5 {
		part := t.TempDir()
		mustPrepare(t, Shard{i, 5}, part, data...)
		for name := range contents(t, part) {
			owners[name]++
		}
		if err := copyInto(merged, part); err != nil {
			t.Fatal(err)
		}
	}
	if d := differences(want, contents(t, merged)); d != nil {
		t.Errorf("five folders in one: %v", d)
	}
	if owners["prepared"] != 5 {
		t.Errorf("the folders have no marks: %v", owners)
	}

	// A row that is missing is computed again, and nothing else.
	name := slices.Sorted(maps.Keys(want))[7]
	if err := os.Remove(filepath.Join(merged, name)); err != nil {
		t.Fatal(err)
	}
	if d := differences(want, contents(t, merged)); len(d) != 1 {
		t.Errorf("without one file: %v", d)
	}
	for i := range 5 {
		mustPrepare(t, Shard{i, 5}, merged, data...)
	}
	if d := differences(want, contents(t, merged)); d != nil {
		t.Errorf("repaired: %v", d)
	}
}

// copyInto copies a folder into another as cp -r does: a file that is there gets the new content.
func copyInto(to, from string) error {
	return filepath.WalkDir(from, func(path string, e os.DirEntry, err error) error {
		name, _ := filepath.Rel(from, path)
		if err != nil || e.IsDir() {
			return errors.Join(err, os.MkdirAll(filepath.Join(to, name), 0o777))
		}
		data, err := os.ReadFile(path)
		if err != nil {
			return err
		}
		return os.WriteFile(filepath.Join(to, name), data, 0o666)
	})
}

// TestRunFindsAll: a run with the folder as its feature cache computes nothing of what was prepared, and has the losses
// of a run without it.
func TestRunFindsAll(t *testing.T) {
	data, cache := []string{"--graph", pico, "--train-data", clips(t, 50)}, t.TempDir()
	mustPrepare(t, Shard{0, 2}, cache, data...)
	mustPrepare(t, Shard{1, 2}, cache, data...)
	train := func(flags ...string) (dir string, r *report.Report) {
		t.Helper()
		dir = filepath.Join(t.TempDir(), "run")
		set := config.New()
		args := slices.Concat([]string{
			"--plugins", plugins, "--batch-size", "6", "--epochs", "1", "--run-dir", dir, "--spoken-clips", "0",
		}, data, flags)
		if err := set.Parse(args, []string{"XTTS_HOST_DEVICE=cpu"}); err != nil {
			t.Fatal(err)
		}
		if err := run.Train(t.Context(), set, console.Console{Out: io.Discard, Err: io.Discard}); err != nil {
			t.Fatal(err)
		}
		r, err := report.Read(filepath.Join(dir, rundir.ReportFile))
		if err != nil {
			t.Fatal(err)
		}
		return dir, r
	}
	with, r := train("--feature-cache", cache)
	for _, s := range r.FeatureCache.Stages {
		if s.Name == "target" && (s.Misses != 0 || s.Hits != 50) { // also the rows that are held out for evaluation
			t.Errorf("%+v", s)
		}
	}
	without, _ := train()
	if a, b := losses(t, with), losses(t, without); a == "" || a != b {
		t.Errorf("losses\n%s\nwithout\n%s", a, b)
	}
}

// losses returns the losses of a run, each with the number of its step.
func losses(t *testing.T, dir string) string {
	t.Helper()
	data, err := os.ReadFile(filepath.Join(dir, rundir.MetricsFile))
	if err != nil {
		t.Fatal(err)
	}
	return strings.Join(regexp.MustCompile(`"(step|loss|eval_loss)": ?[^,}]*`).FindAllString(string(data), -1), "\n")
}

// TestUnusable: clips that cannot be read are named and counted, by the rules of a run, and all others are prepared.
func TestUnusable(t *testing.T) {
	list, out := clips(t, 20), t.TempDir()
	for i, damage := range []func(path string) error{
		os.Remove, func(path string) error { return os.WriteFile(path, []byte("no sound"), 0o666) },
		func(path string) error { return os.Truncate(path, 9000) },
	} {
		if err := damage(filepath.Join(filepath.Dir(list), fmt.Sprintf("clip %d.wav", i))); err != nil {
			t.Fatal(err)
		}
	}
	text, err := prepareWith(t.Context(), console.Console{}, Shard{0, 1}, out, "--train-data", list)
	if exit.Code(err) != exit.StatusData || !errors.Is(err, batch.ErrQuarantine) {
		t.Errorf("exit status %d: %v", exit.Code(err), err)
	}
	says(t, text, `train\.jsonl:1: there is no clip 0\.wav`, `train\.jsonl:2: `, `train\.jsonl:3: truncated`,
		`^prepared 34 rows: [0-9]+ computed, `)
	again, err := prepareWith(t.Context(), console.Console{}, Shard{0, 1}, out, "--train-data", list,
		"--max-quarantine", "3")
	if err != nil {
		t.Error(err)
	}
	says(t, again, "^prepared 34 rows: 0 computed, 34 there already$")
}

// TestStages: stages are named as in the pipeline, and what they need is computed with them. A stage that a run does
// not keep is refused.
func TestStages(t *testing.T) {
	list := clips(t, 10)
	for _, c := range []struct {
		stages, flags []string
		text, refused string
	}{
		{[]string{"target"}, nil, "^prepared 10 rows", ""},
		{[]string{"prosody"}, nil, "^ also computed, because these need it: target$", ""},
		{[]string{"targt"}, nil, "", "--stages targt: no stage of the pipeline has that name"},
		{[]string{"target", "reference"}, nil, "", "--stages reference: a run does not keep what it computes for " +
			"training, because reference_waveform is drawn anew for each epoch"},
		{nil, []string{"--augment", "waveaug"}, "", "a run keeps no stage of the pipeline for training: waveaug: it " +
			"is an augmentation; target: waveform is made by waveaug: an augmentation; reference: reference_waveform " +
			"is drawn anew for each epoch; prosody: waveform is made by waveaug: an augmentation"},
	} {
		set := config.New()
		args := append([]string{"--plugins", plugins, "--train-data", list}, c.flags...)
		if err := set.Parse(args, []string{"XTTS_HOST_DEVICE=cpu"}); err != nil {
			t.Fatal(err)
		}
		var out strings.Builder
		o := Options{Out: filepath.Join(t.TempDir(), "out"), Shard: Shard{0, 1}, Stages: c.stages}
		err := Run(t.Context(), set, o, console.Console{Out: &out, Err: io.Discard})
		if c.refused != "" {
			if err == nil || err.Error() != c.refused || exit.Code(err) != exit.StatusRefused || exit.Hint(err) == "" {
				t.Errorf("%v: %v, hint %q", c.stages, err, exit.Hint(err))
			}
			continue
		}
		if err != nil {
			t.Error(err)
		}
		says(t, out.String(), c.text)
	}
}

// TestFolder: a folder of others is refused before anything is read; one that cannot be written ends the command.
func TestFolder(t *testing.T) {
	foreign := t.TempDir()
	if err := os.WriteFile(filepath.Join(foreign, "letter.txt"), nil, 0o666); err != nil {
		t.Fatal(err)
	}
	_, err := prepareWith(t.Context(), console.Console{}, Shard{0, 1}, foreign, "--train-data", "nowhere")
	if !errors.Is(err, cachedir.ErrForeign) || exit.Code(err) != exit.StatusRefused ||
		!strings.Contains(exit.Hint(err), "--out "+foreign) {
		t.Errorf("%v, hint %q", err, exit.Hint(err))
	}

	blocked := t.TempDir()
	if _, err := cachedir.Claim(blocked, nil); err != nil {
		t.Fatal(err)
	}
	for i := range 256 { // files where folders of rows belong
		if err := os.WriteFile(filepath.Join(blocked, fmt.Sprintf("%02x", i)), nil, 0o666); err != nil {
			t.Fatal(err)
		}
	}
	list := clips(t, 40)
	text, err := prepareWith(t.Context(), console.Console{}, Shard{0, 1}, blocked, "--train-data", list)
	if err == nil || exit.Code(err) != 1 || !strings.HasPrefix(err.Error(), "--out: ") ||
		!strings.HasSuffix(exit.Hint(err), "then start the command again: it goes on from there") {
		t.Errorf("%v, hint %q", err, exit.Hint(err))
	}
	says(t, text, "^not complete [0-9]+ of 40 clips")
	for i := range 256 {
		if err := os.Remove(filepath.Join(blocked, fmt.Sprintf("%02x", i))); err != nil {
			t.Fatal(err)
		}
	}
	says(t, mustPrepare(t, Shard{0, 1}, blocked, "--train-data", list), "^prepared 80 rows: [0-9]+ computed, ")
}
