package run

import (
	"bytes"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/xtts-host/xtts-host/host/base/exit"
	"github.com/xtts-host/xtts-host/host/base/rundir"
	"github.com/xtts-host/xtts-host/host/observe/console"
	"github.com/xtts-host/xtts-host/host/observe/report"
	"github.com/xtts-host/xtts-host/host/run/runfolder"
	"github.com/xtts-host/xtts-host/host/settings/config/configtest"
	"github.com/xtts-host/xtts-host/host/train/checkpoint"
)

// copyReference returns a copy of the reference run.
func copyReference(t *testing.T) string {
	t.Helper()
	dir := filepath.Join(t.TempDir(), "run")
	if err := os.CopyFS(dir, os.DirFS(referenceRun(t))); err != nil {
		t.Fatal(err)
	}
	return dir
}

// resume continues a run, and returns its output.
func resume(t *testing.T, flags ...string) (string, error) {
	t.Helper()
	var out bytes.Buffer
	err := runFlags(t, console.Console{Out: &out}, append([]string{"--plugins", plugins}, flags...)...)
	return out.String(), err
}

func readReport(t *testing.T, dir string) *report.Report {
	t.Helper()
	r, err := report.Read(filepath.Join(dir, rundir.ReportFile))
	if err != nil {
		t.Fatal(err)
	}
	return r
}

// contents are the files of a folder with their times.
func contents(t *testing.T, dir string) (files []string) {
	t.Helper()
	err := filepath.Walk(dir, func(path string, info os.FileInfo, err error) error {
		if err == nil {
			files = append(files, path+" "+info.ModTime().String())
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return files
}

// TestNothingToDo resumes a run that is at its end, or beyond: nothing of it is touched.
func TestNothingToDo(t *testing.T) {
	dir := copyReference(t)
	before := contents(t, dir)
	for _, flags := range [][]string{
		{"--resume", dir}, {"--resume", dir, "--max-steps", "7"}, {"--resume-or-start", dir},
		{"--resume", dir + "@12", "--max-steps", "11"},
		{"--resume", dir, "--epochs", "1", "--max-steps", "0"},
	} {
		said, err := resume(t, flags...)
		if err != nil || !strings.HasPrefix(said, "nothing to do: "+dir+" is at step 1") {
			t.Errorf("%v: %v, %q", flags, err, said)
		}
	}
	if after := contents(t, dir); !slices.Equal(before, after) {
		t.Errorf("files were changed:\n%s\n%s", strings.Join(before, "\n"), strings.Join(after, "\n"))
	}
}

// TestReportIsCompleted: a run that was killed after its last checkpoint and before its report gets that.
func TestReportIsCompleted(t *testing.T) {
	dir := copyReference(t)
	want := readReport(t, dir)
	if err := os.Remove(filepath.Join(dir, rundir.ReportFile)); err != nil {
		t.Fatal(err)
	}
	if _, err := resume(t, "--resume-or-start", dir); err != nil {
		t.Fatal(err)
	}
	got := readReport(t, dir)
	if got.Outcome != "done" || got.Steps != want.Steps || got.Loss != want.Loss || got.Evaluation == nil ||
		got.Evaluation.Best != want.Evaluation.Best {
		t.Errorf("%+v\nwant %+v", got, want)
	}
}

// TestReportCoversWholeRun: a run that is resumed and ends before its next evaluation reports the one before, and its
// baselines.
func TestReportCoversWholeRun(t *testing.T) {
	dir := copyReference(t)
	before := readReport(t, dir)
	if before.Evaluation == nil || len(before.Baselines) == 0 || before.Baselines[0].EvalRows == 0 {
		t.Fatalf("the reference run has no evaluation or baselines: %+v", before)
	}
	stop := make(chan struct{})
	var once sync.Once
	out := writer(func(p []byte) {
		if bytes.Contains(p, []byte("grad_norm")) {
			once.Do(func() { close(stop) })
		}
	})
	err := runFlags(t, console.Console{Out: out, Stop: stop}, "--plugins", plugins, "--resume", dir, "--max-steps",
		"1000000", "--eval-every", "1000000", "--log-every", "1")
	if exit.Code(err) != 130 {
		t.Fatal(err)
	}
	got := readReport(t, dir)
	if got.Steps <= before.Steps || got.Loss.First != before.Loss.First ||
		!reflect.DeepEqual(got.Evaluation, before.Evaluation) {
		t.Fatalf("%+v\nbefore %+v", got, before)
	}
	b, was := got.Baselines[0], before.Baselines[0]
	if b.Rows < was.Rows || b.EvalRows != was.EvalRows || b.EvalConstant != was.EvalConstant || b.Eval != was.Eval {
		t.Errorf("baselines %+v, before %+v", b, was)
	}
}

// TestGoBack resumes from a checkpoint that is not the last: what came after goes, and the run is the undisturbed run
// again.
func TestGoBack(t *testing.T) {
	want := referenceRun(t)
	steps, err := checkpoint.NewStore(want).Steps()
	if err != nil {
		t.Fatal(err)
	}
	best := readReport(t, want).Evaluation.Best.Step
	if !slices.Contains(steps, best) || !slices.Contains(steps, 12) {
		t.Fatalf("the reference run has checkpoints of the steps %v, its best is %d", steps, best)
	}
	for _, at := range []string{"12", "best", "last"} {
		dir := copyReference(t)
		said, err := resume(t, "--resume", dir+"@"+at)
		if err != nil {
			t.Fatalf("%s: %v", at, err)
		}
		if at == "12" && !strings.Contains(said, "resumed      "+checkpoint.NewStore(dir).Path(12)) {
			t.Errorf("%s:\n%s", at, said)
		}
		sameRun(t, at, want, dir)
	}
	_, err = resume(t, "--resume", want+"@7")
	if exit.Code(err) != 2 || !strings.Contains(exit.Hint(err), "there are checkpoints of the steps") {
		t.Errorf("a step without a checkpoint: %v, %s", err, exit.Hint(err))
	}
}

// TestStartAgain: a start that ended before its first checkpoint is started again by --resume-or-start, and by nothing
// else.
func TestStartAgain(t *testing.T) {
	want := referenceRun(t)
	dir := copyReference(t)
	if err := os.RemoveAll(filepath.Join(dir, rundir.Checkpoints)); err != nil {
		t.Fatal(err)
	}
	start := append([]string{"--graph", pico, "--train-data", clips, "--batch-size", "4", "--buffer-size", "6"},
		reference...)
	for _, flags := range [][]string{{"--resume", dir}, append([]string{"--run-dir", dir}, start...)} {
		_, err := resume(t, flags...)
		if exit.Code(err) != 2 || !strings.Contains(err.Error(), "ended before its first checkpoint") ||
			!strings.HasPrefix(exit.Hint(err), "start it again with --resume-or-start "+dir) {
			t.Errorf("%s: %v, %q", flags[0], err, exit.Hint(err))
		}
	}
	folder, err := runfolder.Claim(
		configtest.Parse(t, "--resume-or-start="+dir, "--graph="+pico, "--train-data="+clips), time.Now())
	if err != nil {
		t.Fatal(err)
	}
	if _, err := resume(t, "--resume", dir); exit.Code(err) != 2 ||
		!strings.Contains(err.Error(), "another process is training in this folder") {
		t.Errorf("--resume while another process trains: %v", err)
	}
	if err := folder.Close(nil); err != nil {
		t.Fatal(err)
	}
	if _, err := resume(t, append([]string{"--resume-or-start", dir}, start...)...); err != nil {
		t.Fatal(err)
	}
	sameRun(t, "started again", want, dir)
}
