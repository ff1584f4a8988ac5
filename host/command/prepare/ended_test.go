package prepare

import (
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/xtts-host/xtts-host/host/base/exit"
	"github.com/xtts-host/xtts-host/host/observe/console"
)

// begun waits until a folder has a few rows.
func begun(t *testing.T, dir string) {
	t.Helper()
	for end := time.Now().Add(30 * time.Second); ; time.Sleep(time.Millisecond) {
		if rows, _ := filepath.Glob(filepath.Join(dir, "[0-9a-f][0-9a-f]", "*")); len(rows) > 2 {
			return
		}
		if time.Now().After(end) {
			t.Fatal("no row in time")
		}
	}
}

// TestEndedEarly: after a kill, and after a request to stop, the same command completes the folder, with the bytes of
// one that was never interrupted.
func TestEndedEarly(t *testing.T) {
	const n = 400
	list, whole, out := clips(t, n), t.TempDir(), t.TempDir()
	mustPrepare(t, Shard{0, 1}, whole, "--train-data", list)
	want := contents(t, whole)
	for range 2 {
		cmd := exec.Command(os.Args[0])
		cmd.Env = append(os.Environ(),
			asProcess+"="+strings.Join([]string{plugins, out, "--train-data", list}, "\n"))
		cmd.Stderr = os.Stderr
		if err := cmd.Start(); err != nil {
			t.Fatal(err)
		}
		begun(t, out)
		if err := cmd.Process.Kill(); err != nil {
			t.Fatal(err)
		}
		cmd.Wait()
	}
	if len(contents(t, out)) >= len(want) {
		t.Fatal("the process was killed too late for this test")
	}
	stopped := t.TempDir()
	stop := make(chan struct{})
	go func() {
		begun(t, stopped)
		close(stop)
	}()
	text, err := prepareWith(context.Background(), console.Console{Stop: stop}, Shard{0, 1}, stopped, "--train-data",
		list)
	if exit.Code(err) != exit.StatusInterrupted || !exit.Interrupted(err) {
		t.Errorf("exit status %d, %v", exit.Code(err), err)
	}
	says(t, text, "^not complete [0-9]+ of 400 clips; the same command again goes on from there$",
		"^stopping after this batch; ")
	for _, dir := range []string{out, stopped} {
		says(t, mustPrepare(t, Shard{0, 1}, dir, "--train-data", list),
			"^prepared 800 rows: [1-9][0-9]* computed, [1-9][0-9]* there already$")
		if d := differences(want, contents(t, dir)); d != nil {
			t.Errorf("%s: %v", dir, d)
		}
	}
}
