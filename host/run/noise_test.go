package run

import (
	"bytes"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/xtts-host/xtts-host/host/base/exit"
	"github.com/xtts-host/xtts-host/host/base/rundir"
	"github.com/xtts-host/xtts-host/host/stages/catalog/catalogtest"
	"github.com/xtts-host/xtts-host/shared/wav"
)

// noisePlugins is a folder with the features plugin and the two that add noise.
func noisePlugins(t *testing.T) string {
	t.Helper()
	dir := pythonPlugins(t)
	if err := os.RemoveAll(filepath.Join(dir, "gain")); err != nil {
		t.Fatal(err)
	}
	for to, from := range map[string]string{
		"noisy": "../../plugins/testdata/python/noise", "noisy/xtts_plugin": "../../shared/python/xtts_plugin",
	} {
		if err := os.CopyFS(filepath.Join(dir, to), os.DirFS(from)); err != nil {
			t.Fatal(err)
		}
	}
	if err := catalogtest.Build(
		filepath.Join(dir, "noise", catalogtest.Program("noise")), "../../plugins/testdata/noise",
	); err != nil {
		t.Fatal(err)
	}
	return dir
}

// noiseFolder is a folder with recordings of noise, and a file that is none.
func noiseFolder(t *testing.T, count int) string {
	t.Helper()
	dir := filepath.Join(t.TempDir(), "noise")
	if err := os.MkdirAll(filepath.Join(dir, "more"), 0o777); err != nil {
		t.Fatal(err)
	}
	for i := range count {
		writeNoise(t, filepath.Join(dir, []string{"", "more"}[i%2], fmt.Sprintf("%d.wav", i)), uint64(i))
	}
	if err := os.WriteFile(filepath.Join(dir, "LICENSE"), []byte("free\n"), 0o666); err != nil {
		t.Fatal(err)
	}
	return dir
}

func writeNoise(t *testing.T, path string, seed uint64) {
	t.Helper()
	rng, samples := rand.New(rand.NewPCG(seed, 1)), make([]int16, 2000+700*int(seed))
	for i := range samples {
		samples[i] = int16(rng.IntN(1 << 16))
	}
	if err := os.WriteFile(path, wav.File(24000, samples), 0o666); err != nil {
		t.Fatal(err)
	}
}

// TestDataFolder trains with stages that read a data folder, in Go and in Python: the content of the folder is a part
// of what the run is, and its path is not.
func TestDataFolder(t *testing.T) {
	folder := noisePlugins(t)
	for _, stage := range []string{"noise", "noisy"} {
		t.Run(stage, func(t *testing.T) { withNoise(t, folder, stage) })
	}
}

func withNoise(t *testing.T, plugins, stage string) {
	noise := noiseFolder(t, 3)
	flags := func(noise string, more ...string) []string {
		return append([]string{
			"--plugins", plugins, "--augment", stage, "--plugin-data", "noise=" + noise, "--checkpoint-every", "3",
		}, more...)
	}
	plain := referenceRun(t)
	want := mustTrain(t, flags(noise, eightSteps...)...)
	if slices.Equal(losses(t, plain)[:8], losses(t, want)) {
		t.Fatal("noise changes no loss")
	}
	list := readReport(t, want).Data.Folders
	if len(list) != 1 || list[0].Name != stage+".noise" || list[0].Path != noise || list[0].Files != 3 ||
		list[0].LeftOut != 1 || list[0].Bytes != 3*44+2*(2000+2700+3400) {
		t.Errorf("report.json: %+v", list)
	}
	log, err := os.ReadFile(filepath.Join(want, rundir.LogFile))
	if err != nil || !bytes.Contains(log, []byte(`"folder":"`+stage+`.noise","file":"LICENSE","reason":"`)) {
		t.Errorf("the log names no file that is left out (%v):\n%s", err, log)
	}

	moved := filepath.Join(t.TempDir(), "elsewhere")
	if err := os.CopyFS(moved, os.DirFS(noise)); err != nil {
		t.Fatal(err)
	}
	sameRun(t, "the folder elsewhere", want, mustTrain(t, flags(moved, eightSteps...)...))

	dir := trainKilled(t, flags(noise, eightSteps...)...)
	sameRun(t, "killed processes", want, dir)

	short := func() string {
		t.Helper()
		return mustTrain(t, flags(noise, "--max-steps", "5", "--schedule", "constant")...)
	}
	whole := mustTrain(t, flags(noise, "--max-steps", "8", "--schedule", "constant")...)
	again := func(what, dir string, more ...string) {
		t.Helper()
		_, err := resume(t,
			append([]string{"--resume", dir, "--max-steps", "8", "--plugins", plugins}, more...)...)
		if err != nil {
			t.Fatalf("%s: %v\n%s", what, err, exit.Hint(err))
		}
		if !slices.Equal(losses(t, dir), losses(t, whole)) {
			t.Errorf("%s: other losses", what)
		}
	}
	dir = short()
	again("resumed with a moved folder", dir, "--plugin-data", stage+".noise="+moved)
	a, b := short(), short()
	t.Chdir(filepath.Dir(noise)) // config.yaml has absolute paths
	again("resumed from another working directory", a)
	refusedFolder(t, plugins, stage, b, noise)
}

// refusedFolder resumes a run whose folder has changed.
func refusedFolder(t *testing.T, plugins, stage, run, noise string) {
	again := func(more ...string) error {
		_, err := resume(t, append([]string{"--resume", run, "--max-steps", "8", "--plugins", plugins}, more...)...)
		return err
	}
	if err := os.Remove(filepath.Join(noise, "0.wav")); err != nil {
		t.Fatal(err)
	}
	writeNoise(t, filepath.Join(noise, "2.wav"), 9)
	writeNoise(t, filepath.Join(noise, "9.wav"), 9)
	err := again()
	text := fmt.Sprint(err)
	for _, want := range []string{
		"other settings:\n  plugin-data/" + stage + ".noise: other files than before in " + noise + ":\n",
		"\n    removed: 0.wav\n", "\n    changed: 2.wav\n", "\n    added: 9.wav",
	} {
		if !strings.Contains(text, want) {
			t.Errorf("%s\nwant %s", text, want)
		}
	}
	want := "put the files back, name the folder where they are with --plugin-data " + stage + ".noise=DIR, begin a " +
		"new run with --init " + filepath.Join(run, "checkpoints", rundir.Step(5)) + ", or accept the change with " +
		"--allow plugin-data (docs/resume.md)"
	if got := exit.Hint(err); got != want {
		t.Errorf("hint: %s\nwant: %s", got, want)
	}
	if err := os.Rename(noise, noise+"-gone"); err != nil {
		t.Fatal(err)
	}
	err = again()
	if want := "data folder " + stage + ".noise: " + noise + ": there is no such folder"; fmt.Sprint(err) != want {
		t.Errorf("%v, want %s", err, want)
	}
	if err := os.Rename(noise+"-gone", noise); err != nil {
		t.Fatal(err)
	}
	if err := again("--allow", "plugin-data"); err != nil { // each way that the hint names
		t.Error(err)
	}
	if err := again("--max-steps", "9"); err != nil {
		t.Errorf("after an allowed change: %v", err)
	}
}
