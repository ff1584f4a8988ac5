package files

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
)

// TestRemoveAllWithoutRights: a folder that its owner may not read or change is removed with all in it, as a user whom
// modes restrict.
func TestRemoveAllWithoutRights(t *testing.T) {
	if os.Geteuid() == 0 {
		asNobody(t, "^TestRemoveAllWithoutRights$")
		return
	}
	for _, mode := range []os.FileMode{0, 0o400, 0o500} {
		top := t.TempDir()
		below := filepath.Join(top, "a", "b")
		if err := os.MkdirAll(filepath.Join(below, "c"), 0o700); err != nil {
			t.Fatal(err)
		}
		for _, folder := range []string{below, filepath.Dir(below)} {
			if err := os.Chmod(folder, mode); err != nil {
				t.Fatal(err)
			}
		}
		if err := In(top).Join("a").RemoveAll(); err != nil {
			t.Errorf("mode %v: %v", mode, err)
			os.Chmod(filepath.Dir(below), 0o700) // for the test's own removal
			os.Chmod(below, 0o700)
		}
	}
}

// asNobody runs a test as a user who is not root.
func asNobody(t *testing.T, name string) {
	t.Helper()
	tmp, err := os.MkdirTemp("/tmp", "nobody")
	if err != nil {
		t.Fatal(err)
	}
	defer os.RemoveAll(tmp)
	const nobody = 65534
	if err := os.Chown(tmp, nobody, nobody); err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command("/proc/self/exe", "-test.run="+name, "-test.v")
	cmd.Dir, cmd.Env = tmp, append(os.Environ(), "TMPDIR="+tmp)
	cmd.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: nobody, Gid: nobody}}
	if out, err := cmd.CombinedOutput(); err != nil || !strings.Contains(string(out), "--- PASS: ") {
		t.Errorf("%v\n%s", err, out)
	}
}
