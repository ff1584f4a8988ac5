package files

import (
	"errors"
	"io"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"

	"github.com/xtts-host/xtts-host/shared/hint"
)

// tree makes files with their own names as content, and links, in a new folder.
func tree(t *testing.T, names ...string) string {
	t.Helper()
	dir := t.TempDir()
	for _, name := range names {
		name, to, link := strings.Cut(name, " -> ")
		path := filepath.Join(dir, name)
		err := os.MkdirAll(filepath.Dir(path), 0o777)
		if link {
			err = errors.Join(err, os.Symlink(to, path))
		} else {
			err = errors.Join(err, os.WriteFile(path, []byte(name), 0o666))
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	return dir
}

// TestNoLinkIsFollowed: whatever is done to a place that is a link, or below one, what the link leads to stays as it
// is. The folder itself may be reached through a link.
func TestNoLinkIsFollowed(t *testing.T) {
	copies := map[string]bool{"last": true, "inner/victim": true, "absolute": true}
	for _, name := range []string{"last", "inner/victim", "nothing", "upwards", "loop", "absolute"} {
		for what, do := range map[string]func(p Path) error{
			"Open":    func(p Path) error { _, err := p.Open(); return err },
			"Read":    func(p Path) error { _, err := p.Read(99); return err },
			"ReadDir": func(p Path) error { _, err := p.ReadDir(); return err },
			"Lstat":   func(p Path) error { _, err := p.Lstat(); return err },
			"Append":  func(p Path) error { _, err := p.Append(); return err },
			"Hold":    func(p Path) error { _, err := p.Hold(); return err },
			"SyncDir": func(p Path) error { return p.SyncDir() },
			"MkdirAll": func(p Path) error {
				return p.Join("a").MkdirAll()
			},
		} {
			dir := tree(t, "victims/victim", "run/last -> ../victims/victim", "run/inner -> ../victims",
				"run/nothing -> ../victims/new", "run/upwards -> ..", "run/loop -> loop", "link -> run")
			if err := os.Symlink(
				filepath.Join(dir, "victims", "victim"), filepath.Join(dir, "run", "absolute"),
			); err != nil {
				t.Fatal(err)
			}
			err := do(In(filepath.Join(dir, "link"), name))
			if !errors.Is(err, ErrLink) || !strings.Contains(hint.Of(err), map[bool]string{
				true: "cp -rL ", false: "remove it: rm ",
			}[copies[name]]) {
				t.Errorf("%s of %s: %v, hint %q", what, name, err, hint.Of(err))
			}
			if got, err := os.ReadFile(filepath.Join(dir, "victims/victim")); err != nil ||
				string(got) != "victims/victim" {
				t.Errorf("%s of %s: the victim has %q, %v", what, name, got, err)
			}
			if entries, err := os.ReadDir(filepath.Join(dir, "victims")); err != nil || len(entries) != 1 {
				t.Errorf("%s of %s: %v is among the victims, %v", what, name, entries, err)
			}
		}
	}
}

// TestHintForALink: who follows the hint can go on.
func TestHintForALink(t *testing.T) {
	long := strings.Repeat("ö", 127)
	dir := tree(t, "elsewhere/a b/file", "run/it's here -> ../elsewhere/a b", "run/"+long+" -> ../elsewhere/a b",
		"run/gone -> nothing", "run/loop -> loop", "run/up -> ..")
	for name, want := range map[string]error{
		"it's here": nil, long: nil, "gone": fs.ErrNotExist, "loop": fs.ErrNotExist, "up": fs.ErrNotExist,
	} {
		place := In(filepath.Join(dir, "run"), name, "file")
		_, err := place.Read(99)
		_, command, _ := strings.Cut(hint.Of(err), ": ")
		if out, err := exec.Command("sh", "-c", command).CombinedOutput(); err != nil {
			t.Fatalf("%s: %v: %s", command, err, out)
		}
		if got, err := place.Read(99); !errors.Is(err, want) || want == nil && string(got) != "elsewhere/a b/file" {
			t.Errorf("%s: %q, %v", name, got, err)
		}
	}
	if got, err := os.ReadFile(filepath.Join(dir, "elsewhere/a b/file")); err != nil {
		t.Errorf("what a link leads to: %q, %v", got, err)
	}
}

// TestReplaced: what takes a place takes that of a link, too, and what removes it removes the link.
func TestReplaced(t *testing.T) {
	for what, do := range map[string]func(p Path) error{
		"Replace":   func(p Path) error { return p.Replace([]byte("new")) },
		"Fresh":     func(p Path) error { _, err := p.Fresh(); return err },
		"Remove":    func(p Path) error { return p.Remove() },
		"RemoveAll": func(p Path) error { return p.RemoveAll() },
		"Rename":    func(p Path) error { return p.Rename(p.Parent().Join("moved")) },
	} {
		dir := tree(t, "victims/victim", "run/link -> ../victims/victim", "run/folder -> ../victims")
		for _, name := range []string{"link", "folder"} {
			if err := do(In(dir, "run", name)); err != nil {
				t.Errorf("%s: %v", what, err)
			}
		}
		if got, err := os.ReadFile(filepath.Join(dir, "victims/victim")); err != nil ||
			string(got) != "victims/victim" {
			t.Errorf("%s: the victim has %q, %v", what, got, err)
		}
		if info, err := os.Lstat(filepath.Join(dir, "run/link")); err == nil && info.Mode()&fs.ModeSymlink != 0 {
			t.Errorf("%s: the link is there", what)
		}
	}
}

// TestSpecial: nothing but a regular file is opened or replaced.
func TestSpecial(t *testing.T) {
	dir := t.TempDir()
	if err := syscall.Mkfifo(filepath.Join(dir, "pipe"), 0o666); err != nil {
		t.Fatal(err)
	}
	p := In(dir, "pipe")
	_, open := p.Open()
	_, add := p.Append()
	_, fresh := p.Fresh()
	for what, err := range map[string]error{"Open": open, "Append": add, "Fresh": fresh, "Replace": p.Replace(nil)} {
		if !errors.Is(err, ErrNotRegular) {
			t.Errorf("%s: %v", what, err)
		}
	}
	if _, err := In(dir, "..", "x").Append(); err == nil || !strings.Contains(err.Error(), "outside of its folder") {
		t.Errorf("outside: %v", err)
	}
}

// TestHardLinks: a copy by hard links and its original do not change with each other.
func TestHardLinks(t *testing.T) {
	for what, open := range map[string]func(p Path) (*File, error){
		"Append": Path.Append, "Fresh": Path.Fresh,
		"Hold": func(p Path) (*File, error) { h, err := p.Hold(); return h.File, err },
	} {
		dir := tree(t, "original/metrics")
		if out, err := exec.Command(
			"cp", "-al", filepath.Join(dir, "original"), filepath.Join(dir, "copy"),
		).CombinedOutput(); err != nil {
			t.Fatal(err, string(out))
		}
		copied := In(dir, "copy", "metrics")
		f, err := open(copied)
		if err != nil {
			t.Fatal(what, err)
		}
		content := "original/metrics"
		if what != "Fresh" { // it is read from its beginning
			if got, err := io.ReadAll(f); err != nil || string(got) != content {
				t.Errorf("%s: %q, %v", what, got, err)
			}
		}
		if what == "Fresh" {
			content = ""
		} else if err := f.Truncate(8); err != nil {
			t.Error(err)
		} else {
			content = content[:8]
		}
		if _, err := f.Write([]byte("new")); err != nil {
			t.Error(err)
		}
		if f.Here(copied) != nil || f.Close() != nil {
			t.Errorf("%s: the open file is not in the copy", what)
		}
		if got, err := os.ReadFile(filepath.Join(dir, "original/metrics")); err != nil ||
			string(got) != "original/metrics" {
			t.Errorf("%s: the original has %q, %v", what, got, err)
		}
		if got, err := copied.Read(99); err != nil || string(got) != content+"new" {
			t.Errorf("%s: the copy has %q, %v", what, got, err)
		}
		if left, err := In(dir, "copy").ReadDir(); err != nil || len(left) != 1 {
			t.Errorf("%s: %v is there, %v", what, left, err)
		}
	}
}

// TestFolders makes, lists, moves and removes.
func TestFolders(t *testing.T) {
	root := filepath.Join(t.TempDir(), "not", "there")
	p := In(root, "a", "b")
	if err := errors.Join(
		p.MkdirAll(), p.MkdirAll(), p.Join("c").Mkdir(), p.SyncDir(), p.Join("f").Replace([]byte("x")),
	); err != nil {
		t.Fatal(err)
	}
	if err := p.Mkdir(); !errors.Is(err, fs.ErrExist) {
		t.Errorf("again: %v", err)
	}
	if err := p.Join("f", "g").MkdirAll(); !errors.Is(err, syscall.ENOTDIR) {
		t.Errorf("below a file: %v", err)
	}
	entries, err := p.ReadDir()
	names := []string{}
	for _, e := range entries {
		names = append(names, e.Name())
	}
	if err != nil || !slices.Equal(names, []string{"c", "f"}) {
		t.Errorf("%v, %v", names, err)
	}
	if err := errors.Join(p.Rename(In(root, "d")), In(root, "d").RemoveAll(), In(root, "d").RemoveAll()); err != nil {
		t.Error(err)
	}
	if left, err := In(root).ReadDir(); err != nil || len(left) != 1 || In(root, "a").Remove() != nil {
		t.Errorf("%v is there, %v", left, err)
	}
}
