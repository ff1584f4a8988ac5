package run

import (
	"bytes"
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/xtts-host/xtts-host/host/base/exit"
	"github.com/xtts-host/xtts-host/host/base/rundir"
	"github.com/xtts-host/xtts-host/host/observe/console"
	"github.com/xtts-host/xtts-host/host/observe/report"
)

// rates reads the learning rates of a run.
func rates(t *testing.T, dir string) (all []float64) {
	t.Helper()
	for _, line := range losses(t, dir) {
		var step struct{ LR float64 }
		if err := json.Unmarshal([]byte(line), &step); err != nil {
			t.Fatal(err)
		}
		all = append(all, step.LR)
	}
	return all
}

// TestPlateauGoesOnToTheSameBits: with a rate so large that the loss rises, the schedule lowers it, and what it has
// seen survives a resume in the middle of a count.
func TestPlateauGoesOnToTheSameBits(t *testing.T) {
	flags := func(steps string) []string {
		return []string{
			"--max-steps", steps, "--eval-every", "2", "--checkpoint-every", "100", "--warmup-steps", "0", "--lr",
			"0.5", "--schedule", "plateau", "--plateau-patience", "2", "--plateau-factor", "0.1", "--keep-last", "1",
		}
	}
	want := mustTrain(t, flags("14")...)
	all := rates(t, want)
	if all[0] != 0.5 || all[13] >= 0.5 {
		t.Fatalf("learning rates %v", all)
	}
	// An evaluation is made after step 7 because the run ends there, which the longer run does not have.
	got := mustTrain(t, flags("7")...)
	args := append(
		[]string{"--plugins", plugins, "--graph", pico, "--train-data", clips, "--batch-size", "4", "--resume", got},
		flags("14")...)
	if err := runFlags(t, console.Console{}, args...); err != nil {
		t.Fatal(err)
	}
	a, b := losses(t, want), losses(t, got)
	if strings.Join(a, "\n") != strings.Join(b, "\n") {
		t.Errorf("resumed:\n%s\nwant\n%s", strings.Join(b, "\n"), strings.Join(a, "\n"))
	}
}

func TestEarlyStop(t *testing.T) {
	flags := []string{
		"--max-steps", "40", "--eval-every", "2", "--warmup-steps", "0", "--lr", "0.5", "--schedule", "constant",
		"--early-stop", "2", "--early-stop-delta", "0.01",
	}
	var out bytes.Buffer
	dir, err := trainPico(t, console.Console{Out: &out}, flags...)
	if err != nil {
		t.Fatal(err)
	}
	read := func() report.Report {
		var r report.Report
		data, err := os.ReadFile(filepath.Join(dir, rundir.ReportFile))
		if err != nil {
			t.Fatal(err)
		}
		if err := json.Unmarshal(data, &r); err != nil {
			t.Fatal(err)
		}
		return r
	}
	r := read()
	if r.Outcome != "done" || r.EarlyStop == nil || r.EarlyStop.Evaluations != 2 ||
		r.EarlyStop.Step != int64(r.Steps) || r.Steps >= 40 {
		t.Fatalf("%d steps, %s, %+v", r.Steps, r.Outcome, r.EarlyStop)
	}
	if !strings.Contains(out.String(), "stopped early   at step ") {
		t.Errorf("the table does not say why the run ended:\n%s", &out)
	}
	// It continues only on request.
	resume := []string{
		"--plugins", plugins, "--graph", pico, "--train-data", clips, "--batch-size", "4", "--resume", dir,
	}
	before := r.Steps
	for _, c := range []struct {
		stop, max string
		steps     int64
	}{{"2", "40", int64(before)}, {"0", "12", 12}} {
		args := append(append([]string{}, resume...), append(flags, "--early-stop", c.stop, "--max-steps", c.max)...)
		if err := runFlags(t, console.Console{}, args...); err != nil {
			t.Fatal(err)
		}
		if n := int64(len(losses(t, dir))); n != c.steps {
			t.Errorf("--early-stop %s: %d steps, want %d", c.stop, n, c.steps)
		}
	}
}

func TestLearningIsRefused(t *testing.T) {
	bare := filepath.Join(t.TempDir(), "bare")
	if err := os.CopyFS(bare, os.DirFS(clips)); err != nil {
		t.Fatal(err)
	}
	if err := os.Rename(filepath.Join(bare, "metadata_train.csv"), filepath.Join(bare, "metadata.csv")); err != nil {
		t.Fatal(err)
	}
	if err := os.Remove(filepath.Join(bare, "metadata_eval.csv")); err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct{ flags, want string }{
		{"--lr 0.001 --min-lr 0.01", "--min-lr 0.01 is above the learning rate of 0.001"},
		{"--lr 0", "--lr 0: a model learns with a rate above 0 only"},
		{"--lr=-1e-4", "--lr -0.0001: a model learns with a rate above 0 only"},
		{"--schedule plateau --train-data " + bare, "there is no validation data"},
		{"--early-stop 3 --train-data " + bare, "there is no validation data"},
	} {
		_, err := trainPico(t, console.Console{}, strings.Fields(c.flags)...)
		if exit.Code(err) != 2 || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: exit status %d: %v", c.flags, exit.Code(err), err)
		}
	}
}

// TestAverageGoesOnToTheSameBits: the average is a part of a checkpoint, and the weights are trained as without one.
func TestAverageGoesOnToTheSameBits(t *testing.T) {
	flags := func(steps string, more ...string) []string {
		return append([]string{"--max-steps", steps, "--eval-every", "3", "--schedule", "constant", "--keep-last", "0"},
			more...)
	}
	resume := func(dir string, flags []string) (string, error) {
		var out bytes.Buffer
		args := append([]string{
			"--plugins", plugins, "--graph", pico, "--train-data", clips, "--batch-size", "4", "--resume", dir,
		}, flags...)
		err := runFlags(t, console.Console{Out: &out}, args...)
		return out.String(), err
	}
	want, plain := mustTrain(t, flags("6", "--ema", "0.8")...), mustTrain(t, flags("6")...)
	got := mustTrain(t, flags("3", "--ema", "0.8")...)
	if _, err := resume(got, flags("6", "--ema", "0.8")); err != nil {
		t.Fatal(err)
	}
	a, b, resumed := checkpoints(t, want), checkpoints(t, plain), checkpoints(t, got)
	for _, name := range []string{"params", "optimizer", "ema"} { // state.json has the length that the run began with
		if file := "step-000006/" + name + ".safetensors"; a[file] != resumed[file] {
			t.Errorf("resumed with an average: %s differs", file)
		}
	}
	if a["step-000006/params.safetensors"] != b["step-000006/params.safetensors"] {
		t.Error("an average changes the weights")
	}
	_, has := b["step-000006/ema.safetensors"]
	if sum := a["step-000006/ema.safetensors"]; has || sum == [32]byte{} || sum == a["step-000006/params.safetensors"] {
		t.Error("the average is saved where none was asked for, is not saved, or is the weights")
	}
	if _, err := resume(want, flags("8", "--ema", "0.9")); exit.Code(err) != 2 ||
		!strings.Contains(err.Error(), "--ema was 0.8, is 0.9") {
		t.Errorf("another decay: exit status %d: %v", exit.Code(err), err)
	}
	out, err := resume(plain, flags("8", "--ema", "0.8"))
	if err != nil || !strings.Contains(out, "average      begins with the weights of step 6") {
		t.Errorf("an average of a run without one: %v\n%s", err, out)
	}
	if _, ok := checkpoints(t, plain)["step-000008/ema.safetensors"]; !ok {
		t.Error("the average that begins later is not saved")
	}
}
