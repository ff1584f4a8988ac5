package files

import (
	"errors"
	"os"
	"strings"
	"testing"

	"github.com/xtts-host/xtts-host/shared/hint"
)

// TestLinkHint: no name is an option of the commands in the hint.
func TestLinkHint(t *testing.T) {
	t.Chdir(t.TempDir())
	if err := errors.Join(os.WriteFile("file", nil, 0o666), os.Symlink("file", "-r")); err != nil {
		t.Fatal(err)
	}
	got := hint.Of(linked("open", "-r"))
	if !strings.Contains(got, "cp -rL ./-r ./-r.copy && rm ./-r && mv ./-r.copy ./-r") {
		t.Error(got)
	}
}
