package run

import (
	"bytes"
	"errors"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/xtts-host/xtts-host/host/base/exit"
	"github.com/xtts-host/xtts-host/host/base/rundir"
	"github.com/xtts-host/xtts-host/host/observe/console"
	"github.com/xtts-host/xtts-host/host/observe/report"
	"github.com/xtts-host/xtts-host/host/train/checkpoint"
	"github.com/xtts-host/xtts-host/host/train/save"
	"github.com/xtts-host/xtts-host/ortgraphs/variant"
)

// steps returns the steps that have checkpoints, each of which must be intact and finite.
func steps(t *testing.T, dir string) []int64 {
	t.Helper()
	store := checkpoint.NewStore(dir)
	found, err := store.Steps()
	if err != nil {
		t.Fatal(err)
	}
	for _, step := range found {
		c, err := checkpoint.Load(store.Path(step))
		if err != nil {
			t.Fatal(err)
		}
		if err := c.Finite(); err != nil {
			t.Error(err)
		}
		c.Close()
	}
	return found
}

// command returns the flags of the command that the hint of an error names.
func command(t *testing.T, err error) []string {
	t.Helper()
	found := regexp.MustCompile(`with: xtts-host (.*)$`).FindStringSubmatch(exit.Hint(err))
	if found == nil {
		t.Fatalf("no command in the hint %q of %v", exit.Hint(err), err)
	}
	args := strings.Fields(found[1])
	for i := range args {
		args[i] = strings.Trim(args[i], "'")
	}
	return args
}

// TestRuinedWeightsAreNotSaved: weights that become infinite while losses and gradients stay finite end the run at the
// next checkpoint, which is not saved. The good ones are there, also without room for more than one, and the hint leads
// back.
func TestRuinedWeightsAreNotSaved(t *testing.T) {
	bundle := filepath.Join(t.TempDir(), "idle")
	if _, err := variant.Rewrite(pico, bundle, variant.Idle); err != nil {
		t.Fatal(err)
	}
	// The decay multiplies the parameter by -9999 in each step, so it is infinite after ten.
	flags := []string{
		"--graph", bundle, "--max-steps", "20", "--checkpoint-every", "2", "--keep-last", "1", "--eval-every", "1000",
		"--schedule", "constant", "--warmup-steps", "0", "--lr", "0.01", "--weight-decay-of",
		variant.IdleParameter + "=1000000",
	}
	for name, more := range map[string][]string{
		"plain": nil, "average": {"--ema", "0.9"}, "accumulated": {"--accumulate", "2"},
	} {
		dir, err := trainPico(t, console.Console{}, append(slices.Clone(flags), more...)...)
		bad, ok := errors.AsType[*save.NotFiniteError](err)
		if !ok || bad.Step != 10 || exit.Code(err) != 1 || !strings.Contains(err.Error(), "idle[0] is infinite") {
			t.Fatalf("%s: %v", name, err)
		}
		if got := steps(t, dir); !slices.Equal(got, []int64{6, 8}) {
			t.Errorf("%s: checkpoints of the steps %v, want the last and the last good", name, got)
		}
		r := readReport(t, dir)
		if r.SkippedSteps > 0 || r.GoodCheckpoint == nil ||
			*r.GoodCheckpoint != (report.GoodCheckpoint{Step: 8, Folder: "checkpoints/step-000008"}) {
			t.Errorf("%s: %d steps skipped, good: %+v", name, r.SkippedSteps, r.GoodCheckpoint)
		}
		back := command(t, err)
		if want := []string{"--resume", dir + "@8", "--allow", "lr", "--lr", "0.003"}; !slices.Equal(back, want) {
			t.Errorf("%s: the way back is %q, want %q", name, back, want)
		}
		// The parameter stays finite for a step more with the lower rate.
		if err := runFlags(t, console.Console{}, append(back, "--max-steps", "9")...); err != nil {
			t.Errorf("%s: %v", name, err)
		}
		if got := steps(t, dir); !slices.Equal(got, []int64{8, 9}) {
			t.Errorf("%s: checkpoints of the steps %v after going back", name, got)
		}
	}
}

// poisoned returns a bundle of which a weight is not a number.
func poisoned(t *testing.T) string {
	t.Helper()
	bundle := filepath.Join(t.TempDir(), "poisoned")
	if _, err := variant.Rewrite(pico, bundle, variant.Poisoned("stop_head.bias", float32(math.NaN()))); err != nil {
		t.Fatal(err)
	}
	return bundle
}

// TestNotFiniteBundle: weights of a bundle that are not finite are refused before the first step, unless --init
// replaces them.
func TestNotFiniteBundle(t *testing.T) {
	bundle := poisoned(t)
	dir, err := trainPico(t, console.Console{}, "--graph", bundle, "--max-steps", "2")
	if want := filepath.Join(bundle, "params.safetensors") + ": stop_head.bias[0] is NaN"; exit.Code(err) != 2 ||
		!strings.HasPrefix(err.Error(), want) {
		t.Errorf("status %d: %v, want %s", exit.Code(err), err, want)
	}
	if _, err := os.Stat(filepath.Join(dir, "metrics.jsonl")); err == nil {
		t.Error("the run has begun")
	}
	good := filepath.Join(pico, "params.safetensors")
	if _, err := trainPico(t, console.Console{}, "--graph", bundle, "--max-steps", "2", "--init", good); err != nil {
		t.Error(err)
	}
	bad := filepath.Join(bundle, "params.safetensors")
	_, err = trainPico(t, console.Console{}, "--max-steps", "2", "--init", bad)
	want := "--init " + bad + ": stop_head.bias[0] is NaN"
	if exit.Code(err) != 2 || !strings.HasPrefix(err.Error(), want) {
		t.Errorf("status %d: %v, want %s", exit.Code(err), err, want)
	}
}

// TestMostlySkipped: a run that skips most of its steps, though never --max-skipped in a row, does not end with 0, nor
// when it is resumed with nothing left to do. One that skips some says so in its verdict.
func TestMostlySkipped(t *testing.T) {
	diverging := []string{
		"--eval-every", "1000", "--schedule", "constant", "--warmup-steps", "0", "--max-skipped", "1000",
		"--checkpoint-every", "5", "--lr", "100000",
	}
	dir, err := trainPico(t, console.Console{}, append(diverging, "--max-steps", "60")...)
	if exit.Code(err) != 1 || !regexp.MustCompile(`[0-9]+ of 60 steps were skipped`).MatchString(fmt.Sprint(err)) {
		t.Fatalf("status %d: %v", exit.Code(err), err)
	}
	steps(t, dir)
	command(t, err)
	if r := readReport(t, dir); r.Outcome == report.Done {
		t.Error("the report says that it is done")
	}
	if err := runFlags(t, console.Console{}, "--resume-or-start", dir); exit.Code(err) != 1 {
		t.Errorf("resumed with nothing left to do: %v", err)
	}
}

// TestPartlySkipped: a run that skips fewer than half of its steps ends with 0, and its verdict says so.
func TestPartlySkipped(t *testing.T) {
	dir := mustTrain(t, "--max-steps", "4")
	path := filepath.Join(dir, rundir.MetricsFile)
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	lines := bytes.SplitAfter(text, []byte("\n"))
	lines[1] = []byte(`{"step":2,"loss":null,"samples":4,"frames":9,"skipped":true}` + "\n")
	if err := os.WriteFile(path, bytes.Join(lines, nil), 0o666); err != nil {
		t.Fatal(err)
	}
	if err := runFlags(
		t, console.Console{}, "--resume", dir, "--max-steps", "6", "--schedule", "constant", "--allow", "schedule",
	); err != nil {
		t.Fatal(err)
	}
	r := readReport(t, dir)
	if r.SkippedSteps != 1 || !slices.ContainsFunc(r.Verdict.Advice, func(s string) bool {
		return strings.HasPrefix(s, "Skipped: 1 of 6 steps, which taught nothing")
	}) {
		t.Errorf("%d skipped: %q", r.SkippedSteps, r.Verdict.Advice)
	}
}
