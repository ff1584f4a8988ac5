package run

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/xtts-host/xtts-host/host/base/exit"
	"github.com/xtts-host/xtts-host/host/observe/console"
	"github.com/xtts-host/xtts-host/host/train/checkpoint"
)

// TestFolderRemoved removes the run folder in the middle of a run: it ends with an error, and what was trained is
// saved.
func TestFolderRemoved(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "run")
	var once sync.Once
	out := writer(func(p []byte) {
		if bytes.Contains(p, []byte("grad_norm")) {
			once.Do(func() {
				if err := os.Rename(dir, dir+"-away"); err != nil {
					t.Error(err)
				}
			})
		}
	})
	err := runFlags(t, console.Console{Out: out}, "--plugins", plugins, "--graph", pico, "--train-data", clips,
		"--batch-size", "4", "--run-dir", dir, "--log-every", "1", "--checkpoint-every", "20", "--epochs", "1000000",
		"--schedule", "constant")
	if exit.Code(err) != 1 || !strings.Contains(err.Error(), "removed or moved away while the run was writing to it") ||
		!strings.Contains(exit.Hint(err), "--resume "+dir) {
		t.Fatalf("%v, %q", err, exit.Hint(err))
	}
	steps, err := checkpoint.NewStore(dir).Steps()
	if err != nil || len(steps) != 1 {
		t.Fatalf("checkpoints of the steps %v: %v", steps, err)
	}
	said, err := resume(t, "--resume", dir, "--epochs", "1")
	if err != nil || !strings.Contains(said, "nothing to do") && !strings.Contains(said, "resumed ") {
		t.Errorf("%v\n%s", err, said)
	}
}
