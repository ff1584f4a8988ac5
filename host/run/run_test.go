package run

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/json"
	"fmt"
	"io"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/xtts-host/xtts-host/host/base/exit"
	"github.com/xtts-host/xtts-host/host/base/rundir"
	"github.com/xtts-host/xtts-host/host/observe/console"
	"github.com/xtts-host/xtts-host/host/settings/config"
	"github.com/xtts-host/xtts-host/host/settings/config/configtest"
	"github.com/xtts-host/xtts-host/host/stages/catalog/catalogtest"
	"github.com/xtts-host/xtts-host/ortgraphs/ort/orttest"
)

const pico = "../../ortgraphs/testdata/pico"

var (
	plugins string // a folder with the first-party plugins, built for these tests
	clips   string // the sample data set, cut short
)

func TestMain(m *testing.M) { os.Exit(testMain(m)) }

func testMain(m *testing.M) int {
	dir, err := os.MkdirTemp("", "xtts-host-test")
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	defer os.RemoveAll(dir)
	plugins = filepath.Join(dir, "plugins")
	if err := catalogtest.BuildFirstParty(plugins, "../../plugins"); err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	// The runs' cache is a new one; the compiler's is not.
	goCache, err := exec.Command("go", "env", "GOCACHE").Output()
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	os.Setenv("GOCACHE", strings.TrimSpace(string(goCache)))
	os.Setenv("XDG_CACHE_HOME", filepath.Join(dir, "cache"))
	os.Setenv("GORACE", "atexit_sleep_ms=0") // under -race each plugin would rest for a second at its end
	if clips, err = shortSample(dir); err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	return orttest.Run(m)
}

// trainPico runs pico on the short clips with these flags and returns its folder.
func trainPico(t *testing.T, console console.Console, flags ...string) (dir string, err error) {
	t.Helper()
	dir = filepath.Join(t.TempDir(), "run")
	args := append([]string{
		"--plugins", plugins, "--graph", pico, "--train-data", clips, "--batch-size", "4", "--run-dir", dir,
		"--buffer-size", "6",
	}, flags...)
	return dir, runFlags(t, console, args...)
}

func runFlags(t testing.TB, console console.Console, args ...string) error {
	t.Helper()
	set := config.New()
	if err := set.Parse(args, []string{"XTTS_HOST_DEVICE=cpu"}); err != nil { // also on a machine with a GPU
		t.Fatal(err)
	}
	if console.Out == nil {
		console.Out = io.Discard
	}
	var warnings bytes.Buffer
	if console.Err == nil {
		console.Err = io.Discard
	}
	console.Err = io.MultiWriter(&warnings, console.Err)
	err := Train(t.Context(), set, console)
	if warnings.Len() > 0 {
		t.Logf("warnings:\n%s", &warnings)
	}
	return err
}

func mustTrain(t *testing.T, flags ...string) string {
	t.Helper()
	dir, err := trainPico(t, console.Console{}, flags...)
	if err != nil {
		t.Fatalf("%v: %v", flags, err)
	}
	return dir
}

// losses reads the part of metrics.jsonl that no clock is in.
func losses(t *testing.T, dir string) []string {
	t.Helper()
	data, err := os.ReadFile(filepath.Join(dir, rundir.MetricsFile))
	if err != nil {
		t.Fatal(err)
	}
	var out []string
	for line := range strings.Lines(string(data)) {
		var v map[string]any
		if err := json.Unmarshal([]byte(line), &v); err != nil {
			t.Fatal(err)
		}
		delete(v, "step_ms")
		delete(v, "input_wait_ms")
		text, _ := json.Marshal(v)
		out = append(out, string(text))
	}
	return out
}

// checkpoints hashes every file of every checkpoint.
func checkpoints(t *testing.T, dir string) map[string][32]byte {
	t.Helper()
	out := map[string][32]byte{}
	root := os.DirFS(filepath.Join(dir, "checkpoints"))
	err := fs.WalkDir(root, ".", func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		data, err := fs.ReadFile(root, path)
		out[path] = sha256.Sum256(data)
		return err
	})
	if err != nil || len(out) == 0 {
		t.Fatalf("%s: %d files, %v", dir, len(out), err)
	}
	return out
}

// sameRun fails unless two runs have the same losses and the same checkpoint files, bit for bit.
func sameRun(t *testing.T, what, want, got string) {
	t.Helper()
	a, b := losses(t, want), losses(t, got)
	for i := range min(len(a), len(b)) {
		if a[i] != b[i] {
			t.Fatalf("%s: line %d differs:\n%s\n%s", what, i+1, a[i], b[i])
		}
	}
	if len(a) != len(b) {
		t.Fatalf("%s: %d steps, want %d", what, len(b), len(a))
	}
	x, y := checkpoints(t, want), checkpoints(t, got)
	for path, sum := range x {
		if y[path] != sum {
			t.Errorf("%s: %s differs", what, path)
		}
	}
	if len(x) != len(y) {
		t.Errorf("%s: %d checkpoint files, want %d", what, len(y), len(x))
	}
}

var reference = []string{"--max-steps", "16", "--checkpoint-every", "6", "--eval-every", "5"}

// referenceRun is the folder of a run with these flags that nothing disturbs. The first test that needs it makes it.
func referenceRun(t *testing.T) string {
	t.Helper()
	return shared(t, "reference", func() string { return mustTrain(t, reference...) })
}

var eightSteps = []string{"--max-steps", "8"}

// plainRun is the folder of a run with these flags, of the bundle's own pipeline.
func plainRun(t *testing.T) string {
	t.Helper()
	return shared(t, "plain", func() string { return mustTrain(t, eightSteps...) })
}

// shared returns the folder of a run that tests share. The first one that needs it calls train.
func shared(t *testing.T, name string, train func() string) string {
	t.Helper()
	dir := filepath.Join(filepath.Dir(plugins), name)
	if _, err := os.Stat(dir); err != nil {
		if err := os.Rename(train(), dir); err != nil {
			t.Fatal(err)
		}
	}
	return dir
}

func TestSameBits(t *testing.T) {
	want := referenceRun(t)
	for _, flags := range [][]string{
		{"--num-workers", "1", "--threads", "1"},
		{"--num-workers", "4", "--buffer-size", "3"},
		{"--num-workers", "2", "--threads", "2", "--plugin-workers", "features=2", "--slots", "5"},
		{"--threads", "3"},
		{"--threads", "3", "--deterministic"},
	} {
		sameRun(t, strings.Join(flags, " "), want, mustTrain(t, append(slices.Clone(reference), flags...)...))
	}
	if a, b := lossesOf(t, want), lossesOf(t, mustTrain(t, "--seed", "2", "--max-steps", "1")); a[0] == b[0] {
		t.Error("another seed gives the same first step")
	}
}

// stopAfter closes Stop when so many progress lines were printed.
type stopAfter struct {
	lines int
	stop  chan struct{}
	once  sync.Once
}

func (s *stopAfter) Write(p []byte) (int, error) {
	if bytes.Contains(p, []byte("step ")) {
		if s.lines--; s.lines == 0 {
			s.once.Do(func() { close(s.stop) })
		}
	}
	return len(p), nil
}

// interrupted trains until so many progress lines were printed, and returns the run's folder and the number of its
// steps. Lines are printed while training continues, so on a busy machine a short run may have reached its end by then:
// such a run is repeated.
func interrupted(t *testing.T, lines, steps int, flags ...string) (dir string, done int) {
	t.Helper()
	for range 10 {
		s := &stopAfter{lines: lines, stop: make(chan struct{})}
		dir, err := trainPico(t, console.Console{Out: s, Stop: s.stop}, flags...)
		done = len(losses(t, dir))
		atEnd := done == steps && err == nil
		if !atEnd && exit.Code(err) != 130 {
			t.Fatalf("%v: exit status %d after step %d: %v", flags, exit.Code(err), done, err)
		}
		if done < steps {
			return dir, done
		}
	}
	t.Fatalf("%v: no run was interrupted before its end", flags)
	return "", 0
}

func TestInterruptedAndResumedIsTheSameRun(t *testing.T) {
	for _, accumulate := range []string{"1", "2"} {
		flags := append(slices.Clone(reference), "--accumulate", accumulate, "--log-every", "1")
		want := referenceRun(t)
		if accumulate != "1" {
			want = mustTrain(t, flags...)
		}
		dir, done := interrupted(t, 8, 16, flags...) // in the middle of an epoch
		args := append([]string{
			"--plugins", plugins, "--graph", pico, "--train-data", clips, "--batch-size", "4", "--num-workers", "3",
			"--resume", dir,
		}, flags...)
		if err := runFlags(t, console.Console{}, args...); err != nil {
			t.Fatal(err)
		}
		// The interrupted run has a checkpoint more: that of the step it stopped at.
		extra := filepath.Join(dir, "checkpoints", fmt.Sprintf("step-%06d", done))
		if done%6 != 0 && done%5 != 0 {
			if err := os.RemoveAll(extra); err != nil {
				t.Fatal(err)
			}
		}
		sameRun(t, "resumed after step "+strconv.Itoa(done), want, dir)
	}
}

// TestKilledPluginChangesNothing kills the plugin's process as soon as training is under way, with batches in its
// hands.
func TestKilledPluginChangesNothing(t *testing.T) {
	want := referenceRun(t)
	killed := false
	kill := writer(func(p []byte) {
		if !killed && bytes.Contains(p, []byte("training starting")) {
			for _, pid := range children(t) {
				if err := syscall.Kill(pid, syscall.SIGKILL); err != nil {
					t.Error(err)
				}
				killed = true
			}
		}
	})
	dir, err := trainPico(t, console.Console{Out: kill}, reference...)
	if err != nil {
		t.Fatal(err)
	}
	if !killed {
		t.Fatal("no plugin process was found")
	}
	var r struct{ Plugins []struct{ Restarts int } }
	data, err := os.ReadFile(filepath.Join(dir, rundir.ReportFile))
	if err != nil {
		t.Fatal(err)
	}
	if err := json.Unmarshal(data, &r); err != nil || len(r.Plugins) != 1 || r.Plugins[0].Restarts != 1 {
		t.Errorf("report says %+v, %v", r, err)
	}
	sameRun(t, "plugin killed", want, dir)
	if left := children(t); len(left) > 0 {
		t.Errorf("processes left: %v", left)
	}
}

type writer func(p []byte)

func (w writer) Write(p []byte) (int, error) { w(p); return len(p), nil }

// trainKilled is a run of pico whose two plugin processes are killed when training begins.
func trainKilled(t *testing.T, flags ...string) string {
	t.Helper()
	killed := 0
	kill := writer(func(p []byte) {
		if killed == 0 && bytes.Contains(p, []byte("training starting")) {
			for _, pid := range children(t) {
				if syscall.Kill(pid, syscall.SIGKILL) == nil {
					killed++
				}
			}
		}
	})
	dir, err := trainPico(t, console.Console{Out: kill}, flags...)
	if err != nil || killed != 2 {
		t.Fatalf("%d processes killed, %v", killed, err)
	}
	return dir
}

// children lists the processes that this one has started and that are still there.
func children(t *testing.T) []int {
	t.Helper()
	tasks, err := filepath.Glob("/proc/self/task/*/children")
	if err != nil || len(tasks) == 0 {
		t.Fatalf("no list of children: %v", err)
	}
	var pids []int
	for _, file := range tasks {
		data, _ := os.ReadFile(file) // a thread may be gone by now
		for _, field := range strings.Fields(string(data)) {
			if pid, err := strconv.Atoi(field); err == nil && pid > 1 {
				pids = append(pids, pid)
			}
		}
	}
	return pids
}

func TestResumeRefusesAnotherRun(t *testing.T) {
	dir := referenceRun(t)
	err := runFlags(t, console.Console{}, "--plugins", plugins, "--graph", pico, "--train-data", clips, "--batch-size",
		"8", "--seed", "9", "--max-steps", "18", "--resume", dir)
	if err == nil || exit.Code(err) != 2 || !strings.Contains(err.Error(), "batch-size: 4 -> 8") ||
		!strings.Contains(err.Error(), "seed: 1 -> 9") {
		t.Errorf("exit status %d: %v", exit.Code(err), err)
	}
}

func TestCancelledRunLeavesNothing(t *testing.T) {
	ctx, cancel := context.WithTimeout(t.Context(), 900*time.Millisecond)
	defer cancel()
	set := configtest.Parse(t, "--plugins", plugins, "--graph", pico, "--train-data", clips, "--batch-size", "4",
		"--run-dir", filepath.Join(t.TempDir(), "run"))
	err := Train(ctx, set, console.Console{Out: io.Discard, Err: io.Discard})
	if err == nil {
		t.Error("a cancelled run has no error")
	}
	if left := children(t); len(left) > 0 {
		t.Errorf("processes left: %v", left)
	}
}
