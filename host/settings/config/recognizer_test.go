package config

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/xtts-host/xtts-host/host/base/rundir"
	"github.com/xtts-host/xtts-host/shared/hint"
)

// TestRunFolderNamesNoRecognizer: a command that only a run folder names is not taken, until this user's own command
// line has named it, from any working directory.
func TestRunFolderNamesNoRecognizer(t *testing.T) {
	t.Setenv("XDG_CACHE_HOME", t.TempDir())
	run := t.TempDir()
	const command = "evil {wav}"
	if err := os.WriteFile(filepath.Join(run, rundir.SettingsFile), []byte("recognizer: \""+command+"\"\n"),
		0o666); err != nil {
		t.Fatal(err)
	}
	parse := func(flags ...string) (*Set, error) {
		s := New()
		return s, s.Parse(append(flags, "--resume", run), nil)
	}
	if _, err := parse(); err == nil || !strings.Contains(err.Error(), "recognizer: "+command) ||
		!strings.Contains(hint.Of(err), "--recognizer ") {
		t.Fatalf("%v (%s)", err, hint.Of(err))
	}
	named, err := parse("--recognizer", command)
	if err != nil {
		t.Fatal(err)
	}
	if err := Confirm(named); err != nil {
		t.Fatal(err)
	}
	t.Chdir(t.TempDir())
	if s, err := parse(); err != nil || s.Recognizer != command {
		t.Errorf("after the user's word: %q, %v", s.Recognizer, err)
	}
}
