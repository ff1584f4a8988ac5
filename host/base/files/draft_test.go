package files

import (
	"bytes"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
)

// names returns what a folder has.
func names(t *testing.T, dir string) string {
	t.Helper()
	entries, err := os.ReadDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	var list []string
	for _, e := range entries {
		list = append(list, e.Name())
	}
	return strings.Join(list, " ")
}

// TestWrite: a file is replaced, and what a killed process left that wrote another one goes. Files of other programs
// stay.
func TestWrite(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "not", "made", "yet")
	file := filepath.Join(dir, "image.bin")
	for _, content := range []string{"old and longer", "new"} {
		if content == "new" {
			for _, left := range []string{
				draftName("other.bin"), ".vim.tmp", ".other.bin.42" + ending, ".image.bin.1z141z3-00000000" + ending,
			} {
				if err := os.WriteFile(filepath.Join(dir, left), []byte("half"), 0o666); err != nil {
					t.Fatal(err)
				}
			}
		}
		if err := At(file).Write([]byte(content[:2]), []byte(content[2:])); err != nil {
			t.Fatal(err)
		}
		if got, err := os.ReadFile(file); err != nil || string(got) != content {
			t.Errorf("the file has %q, %v", got, err)
		}
	}
	if got := names(t, dir); got != ".image.bin.1z141z3-00000000"+ending+" .other.bin.42"+ending+" .vim.tmp image.bin" {
		t.Errorf("%s are there", got)
	}
}

// TestWriteLongName: a name may be as long as the file system takes, also one of long letters.
func TestWriteLongName(t *testing.T) {
	for _, name := range []string{strings.Repeat("a", 255), strings.Repeat("ü", 127)} {
		dir := t.TempDir()
		left := draftName(name)
		if err := os.WriteFile(filepath.Join(dir, left), nil, 0o666); err != nil {
			t.Fatal(err)
		}
		if err := At(filepath.Join(dir, name)).Write([]byte("content")); err != nil {
			t.Errorf("a name of %d bytes: %v", len(name), err)
		}
		if got := names(t, dir); got != name {
			t.Errorf("%s are there", got)
		}
	}
}

// TestCommitUnsynced: the old content stays, and nothing else, if the disk does not take the new one.
func TestCommitUnsynced(t *testing.T) {
	dir := t.TempDir()
	path := filepath.Join(dir, "a")
	if err := At(path).Write([]byte("old")); err != nil {
		t.Fatal(err)
	}
	d, err := At(path).Create()
	if err != nil {
		t.Fatal(err)
	}
	_, err = d.Write([]byte("new"))
	if err := errors.Join(err, d.Close()); err != nil { // the content can be made durable no more
		t.Fatal(err)
	}
	if err := d.Commit(); err == nil {
		t.Error("a Commit without a file succeeds")
	}
	if got, err := os.ReadFile(path); err != nil || string(got) != "old" || names(t, dir) != "a" {
		t.Errorf("the file has %q, %v; there is %s", got, err, names(t, dir))
	}
}

// TestFile: the old content stays until Commit, and after Discard. What is being written is not taken for what was
// left.
func TestFile(t *testing.T) {
	dir := t.TempDir()
	path := filepath.Join(dir, "a")
	if err := At(path).Write([]byte("old")); err != nil {
		t.Fatal(err)
	}
	for _, commit := range []bool{false, true} {
		f, err := At(path).Create()
		if err != nil {
			t.Fatal(err)
		}
		if _, err := f.Write([]byte("new")); err != nil {
			t.Fatal(err)
		}
		if err := At(filepath.Join(dir, "b")).Write(nil); err != nil { // which sweeps
			t.Fatal(err)
		}
		if got, err := os.ReadFile(path); err != nil || string(got) != "old" {
			t.Errorf("before the end, the file has %q, %v", got, err)
		}
		want := "old"
		if commit {
			err, want = f.Commit(), "new"
		}
		if err != nil || f.Discard() != nil || f.Discard() != nil {
			t.Errorf("commit %v: %v", commit, err)
		}
		if got, err := os.ReadFile(path); err != nil || string(got) != want || names(t, dir) != "a b" {
			t.Errorf("the file has %q, %v; %s are there", got, err, names(t, dir))
		}
		if info, err := os.Stat(path); err != nil || info.Mode().Perm()&0o444 != 0o444 {
			t.Errorf("others cannot read it: %v, %v", info.Mode(), err)
		}
	}
}

// TestCommitFails: nothing is left where the name is that of a folder.
func TestCommitFails(t *testing.T) {
	dir := t.TempDir()
	if err := os.Mkdir(filepath.Join(dir, "folder"), 0o777); err != nil {
		t.Fatal(err)
	}
	if err := At(filepath.Join(dir, "folder")).Write([]byte("x")); err == nil || names(t, dir) != "folder" {
		t.Errorf("%v; %s are there", err, names(t, dir))
	}
	if _, err := At(filepath.Join(dir, "nowhere", "a")).Create(); err == nil {
		t.Error("a file in a folder that is not there")
	}
}

// TestAtTheSameTime: writers that remove what others have left do not remove what others write.
func TestAtTheSameTime(t *testing.T) {
	file := filepath.Join(t.TempDir(), "file")
	content := bytes.Repeat([]byte("whole"), 1<<12)
	var wg sync.WaitGroup
	for range 8 {
		wg.Go(func() {
			for range 20 {
				if err := At(file).Write(content); err != nil {
					t.Error(err)
				}
				if got, err := os.ReadFile(file); err != nil || !bytes.Equal(got, content) {
					t.Errorf("%d bytes, %v", len(got), err)
				}
			}
		})
	}
	wg.Wait()
}

// TestErrors: an error names the file that the caller knows.
func TestErrors(t *testing.T) {
	path := filepath.Join(t.TempDir(), "a")
	f, err := At(path).Create()
	if err != nil {
		t.Fatal(err)
	}
	if err := f.open.Load().Close(); err != nil {
		t.Fatal(err)
	}
	_, write := f.Write([]byte("a"))
	_, writeAt := f.WriteAt([]byte("a"), 0)
	for name, err := range map[string]error{
		"Write": write, "WriteAt": writeAt, "Sync": f.Sync(), "Commit": f.Commit(),
	} {
		var of *fs.PathError
		if !errors.As(err, &of) || of.Path != path {
			t.Errorf("%s: %v", name, err)
		}
	}
}
