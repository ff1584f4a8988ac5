package run

import (
	"bytes"
	"encoding/json"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/xtts-host/xtts-host/host/base/exit"
	"github.com/xtts-host/xtts-host/host/base/rundir"
	"github.com/xtts-host/xtts-host/host/observe/console"
	"github.com/xtts-host/xtts-host/host/observe/report"
	"github.com/xtts-host/xtts-host/host/train/checkpoint"
	change "github.com/xtts-host/xtts-host/host/train/resume"
)

// resumePico continues a run of trainPico.
func resumePico(t *testing.T, dir string, flags ...string) (out string, err error) {
	t.Helper()
	var said bytes.Buffer
	err = runFlags(t, console.Console{Out: &said}, append([]string{"--resume", dir}, flags...)...)
	return said.String(), err
}

// TestChangeOnPurpose: with --allow a run continues with another learning rate and batch size, says so, and keeps a
// record of it; the next resume needs no flag, and the same changes at the same step give the same bits.
func TestChangeOnPurpose(t *testing.T) {
	flags := []string{"--lr", "0.0001", "--batch-size", "3"}
	var dirs []string
	for _, stop := range []string{"7", "12"} { // the second is not interrupted after its change
		dir := mustTrain(t, "--max-steps", "4", "--schedule", "constant", "--eval-every", "4")
		if _, err := resumePico(t, dir, append(flags, "--max-steps", stop)...); err == nil || exit.Hint(err) !=
			"leave them as they were, or accept the change with --allow batch-size,lr (docs/resume.md)" {
			t.Fatalf("without --allow: %v, hint %s", err, exit.Hint(err))
		}
		out, err := resumePico(t, dir, append(flags, "--max-steps", stop, "--allow", "lr,batch-size,data")...)
		if err != nil {
			t.Fatal(err)
		}
		for _, want := range []string{
			"batch-size: 4 -> 3", "-> 0.0001", "epoch 1 begins again", "the same changes at the same steps",
		} {
			if !strings.Contains(out, want) {
				t.Errorf("no %q in\n%s", want, out)
			}
		}
		dirs = append(dirs, dir)
	}
	out, err := resumePico(t, dirs[0], "--max-steps", "12")
	if err != nil || strings.Contains(out, "changed ") {
		t.Fatalf("%v\n%s", err, out)
	}
	if a, b := losses(t, dirs[1]), losses(t, dirs[0]); !slices.Equal(a, b) {
		t.Errorf("other losses after an interruption:\n%s\nwant\n%s", b, a)
	}
	whole, interrupted := checkpoints(t, dirs[1]), checkpoints(t, dirs[0])
	for _, file := range []string{"params.safetensors", "optimizer.safetensors", "state.json"} {
		if last := "step-000012/" + file; whole[last] != interrupted[last] || whole[last] == [32]byte{} {
			t.Errorf("%s differs after an interruption", last)
		}
	}
	data, err := os.ReadFile(filepath.Join(dirs[0], rundir.ReportFile))
	if err != nil {
		t.Fatal(err)
	}
	var r report.Report
	if err := json.Unmarshal(data, &r); err != nil {
		t.Fatal(err)
	}
	if want := (report.Change{
		Step: 4, Name: "batch-size", From: "4", To: "3",
	}); len(r.Changes) != 2 || r.Changes[0] != want || r.Changes[1].Name != "lr" {
		t.Errorf("changes %+v", r.Changes)
	}
	for file, want := range map[string]string{
		"config.yaml": "#   at step 4: batch-size: 4 -> 3\n", rundir.LogFile: `"msg":"changed","step":4,"name":"lr"`,
	} {
		if data, err := os.ReadFile(filepath.Join(dirs[0], file)); err != nil || !strings.Contains(string(data), want) {
			t.Errorf("%s: %v, no %s in\n%s", file, err, want, data)
		}
	}
	if data, _ := os.ReadFile(filepath.Join(dirs[0], rundir.LogFile)); !strings.Contains(
		string(data), "--allow data: nothing of it differs",
	) {
		t.Error("an entry of --allow that nothing needs is not said")
	}
}

// TestEpochsAfterAChange: --epochs counts epochs as they are: after a change in the middle of the first, that one
// begins again, and the second follows it whole.
func TestEpochsAfterAChange(t *testing.T) {
	dir := mustTrain(t, "--max-steps", "2", "--schedule", "constant")
	if _, err := resumePico(
		t, dir, "--epochs", "2", "--max-steps", "0", "--batch-size", "5", "--allow", "batch-size",
	); err != nil {
		t.Fatal(err)
	}
	epochs := map[string]int{}
	for _, line := range losses(t, dir)[2:] {
		var m struct{ Epoch json.Number }
		if err := json.Unmarshal([]byte(line), &m); err != nil {
			t.Fatal(err)
		}
		epochs[m.Epoch.String()]++
	}
	if len(epochs) != 2 || epochs["0"] != epochs["1"] {
		t.Errorf("steps by epoch after the change: %v", epochs)
	}
}

// TestTrainOthersFromNowOn: parameters that were frozen have no moments: the optimizer starts from zero with them.
// Those that are frozen from now on only lose theirs.
func TestTrainOthersFromNowOn(t *testing.T) {
	dir := mustTrain(t, "--max-steps", "2", "--train-only", "mel_head")
	out, err := resumePico(t, dir, "--max-steps", "3", "--train-only", "mel_head,stop_head", "--allow", "freeze")
	if err != nil || !strings.Contains(out, "the optimizer starts with an empty state") {
		t.Fatalf("%v\n%s", err, out)
	}
	out, err = resumePico(t, dir, "--max-steps", "4", "--train-only", "stop_head", "--allow", "freeze")
	if err != nil || strings.Contains(out, "empty state") {
		t.Fatalf("%v\n%s", err, out)
	}
}

// TestEverySettingIsKnown: --allow knows what every value in a checkpoint's hashes means.
func TestEverySettingIsKnown(t *testing.T) {
	dir := mustTrain(t, "--max-steps", "1", "--freeze", "mel_head", "--augment", "waveaug")
	c, _, err := checkpoint.NewStore(dir).Latest()
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	refused := &change.RefusedError{Refused: change.Differences(c.State.Hashes, nil)}
	if len(refused.Refused) < 15 || strings.Contains(refused.Hint(), "this program does not know") {
		t.Errorf("%d differences; hint %s", len(refused.Refused), refused.Hint())
	}
	for _, d := range refused.Refused {
		if slices.ContainsFunc([]string{d.Name, d.From}, func(s string) bool {
			return strings.ContainsAny(s, `"[]{}`)
		}) {
			t.Errorf("not readable: %s", d)
		}
	}
}
