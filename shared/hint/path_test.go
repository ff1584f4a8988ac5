package hint_test

import (
	"os/exec"
	"testing"

	"github.com/xtts-host/xtts-host/shared/hint"
)

// A shell reads back what Path wrote.
func TestPathSurvivesAShell(t *testing.T) {
	for _, path := range []string{"runs/first", "run ä", `a "b" ü|c`, "it's", "$HOME", "a*b", "-x;y", ""} {
		out, err := exec.Command("sh", "-c", "printf %s "+hint.Path(path)).Output()
		if err != nil || string(out) != path {
			t.Errorf("%q: the shell reads %q from %s (%v)", path, out, hint.Path(path), err)
		}
	}
	if got := hint.Path("/data/runs/first-2"); got != "/data/runs/first-2" {
		t.Errorf("a plain path is quoted: %s", got)
	}
}
