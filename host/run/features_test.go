package run

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/xtts-host/xtts-host/host/base/cachedir"
	"github.com/xtts-host/xtts-host/host/base/exit"
	"github.com/xtts-host/xtts-host/host/base/rundir"
	"github.com/xtts-host/xtts-host/host/observe/console"
	"github.com/xtts-host/xtts-host/host/observe/report"
)

// cached runs the reference run with a feature cache and returns its folder and what the report says about each stage.
func cached(t *testing.T, cache string, flags ...string) (dir string, stages map[string]report.CachedStage) {
	t.Helper()
	dir = mustTrain(t, append(append(slices.Clone(reference), "--feature-cache", cache), flags...)...)
	r, err := report.Read(filepath.Join(dir, rundir.ReportFile))
	if err != nil {
		t.Fatal(err)
	}
	stages = map[string]report.CachedStage{}
	for _, s := range r.FeatureCache.Stages {
		stages[s.Name] = s
	}
	return dir, stages
}

// TestFeatureCacheChangesNoBit: a run that fills the cache, one that finds it full, one that finds it full of holes and
// damage, and one with batches of other rows all have the bits of a run without a cache.
func TestFeatureCacheChangesNoBit(t *testing.T) {
	want, cache := referenceRun(t), filepath.Join(t.TempDir(), "new", "cache")
	cold, stages := cached(t, cache)
	sameRun(t, "cold", want, cold)
	clips := stages["target"].Stored
	if s := stages["target"]; clips == 0 || s.Hits == 0 || s.Misses < clips {
		t.Errorf("cold: %+v", s)
	}
	// Those of evaluations: stored, or found because "target" has just stored the same row under the same key.
	if s := stages["reference"]; s.TrainingUncached == "" || s.Stored+s.Hits == 0 {
		t.Errorf("cold: %+v", s)
	}

	warm, stages := cached(t, cache)
	sameRun(t, "warm", want, warm)
	for _, s := range stages {
		if s.Misses != 0 || s.Hits == 0 || s.Stored != 0 {
			t.Errorf("warm: %+v", s)
		}
	}

	files, err := filepath.Glob(filepath.Join(cache, "[0-9a-f][0-9a-f]", "*"))
	if err != nil || len(files) < int(clips) {
		t.Fatalf("%d files of %d clips, %v", len(files), clips, err)
	}
	if left, err := os.ReadDir(filepath.Join(cache, "incoming")); err != nil || len(left) > 0 {
		t.Errorf("%d incomplete files, %v", len(left), err)
	}
	for i, file := range files {
		switch i % 3 {
		case 0:
			damage(t, file)
		case 1:
			if err := os.Remove(file); err != nil {
				t.Fatal(err)
			}
		}
	}
	repaired, stages := cached(t, cache)
	sameRun(t, "repaired", want, repaired)
	if s := stages["target"]; s.Damaged == 0 || s.Misses <= s.Damaged || s.Hits == 0 || s.Stored != s.Misses {
		t.Errorf("repaired: %+v", s)
	}
	again, stages := cached(t, cache, "--batch-size", "6", "--max-steps", "4")
	if s := stages["target"]; s.Misses != 0 {
		t.Errorf("batches of 6: %+v", s)
	}
	sameRun(t, "batches of 6",
		mustTrain(t, append(slices.Clone(reference), "--batch-size", "6", "--max-steps", "4")...), again)
}

// damage changes a byte in the middle of a file.
func damage(t *testing.T, file string) {
	t.Helper()
	data, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	data[len(data)/2] ^= 1
	if err := os.WriteFile(file, data, 0o666); err != nil {
		t.Fatal(err)
	}
}

// TestFeatureCacheAndAugmentation: what is computed from an augmented waveform is neither kept nor looked up in
// training. An evaluation has no augmentation, and takes what another run has kept.
func TestFeatureCacheAndAugmentation(t *testing.T) {
	cache := t.TempDir()
	_, plain := cached(t, cache)
	flags := append(slices.Clone(reference), "--augment", "waveaug")
	dir, stages := cached(t, cache, "--augment", "waveaug")
	sameRun(t, "augmented", mustTrain(t, flags...), dir)
	s := stages["target"]
	if s.Stored != 0 || s.Misses != 0 || s.Hits == 0 || s.Hits >= plain["target"].Hits ||
		!strings.Contains(s.TrainingUncached, "waveaug") {
		t.Errorf("%+v", s)
	}
}

func TestFeatureCacheFolder(t *testing.T) {
	file := filepath.Join(t.TempDir(), "file")
	if err := os.WriteFile(file, nil, 0o666); err != nil {
		t.Fatal(err)
	}
	_, err := trainPico(t, console.Console{}, "--max-steps", "1", "--feature-cache", file)
	want := "--feature-cache " + file + ": " + file + " is a file, not a folder"
	if exit.Code(err) != 2 || err.Error() != want || exit.Hint(err) == "" {
		t.Errorf("exit status %d, %v, hint %q; want %s", exit.Code(err), err, exit.Hint(err), want)
	}
}

// TestFeatureCacheThatCannotBeWritten: a run goes on without it, with one warning.
func TestFeatureCacheThatCannotBeWritten(t *testing.T) {
	cache := t.TempDir()
	if _, err := cachedir.Claim(cache, nil); err != nil {
		t.Fatal(err)
	}
	for i := range 256 { // files where folders of entries belong
		if err := os.WriteFile(
			filepath.Join(cache, string("0123456789abcdef"[i/16])+string("0123456789abcdef"[i%16])), nil, 0o666,
		); err != nil {
			t.Fatal(err)
		}
	}
	var warnings strings.Builder
	dir, err := trainPico(t, console.Console{Err: &warnings},
		append(slices.Clone(reference), "--feature-cache", cache)...)
	if err != nil {
		t.Fatal(err)
	}
	sameRun(t, "not writable", referenceRun(t), dir)
	n := strings.Count(warnings.String(), "--feature-cache: ")
	if n != 1 || !strings.Contains(warnings.String(), "training goes on") {
		t.Errorf("%d warnings:\n%s", n, &warnings)
	}
}
