package socketdir

import (
	"net"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// TestRoot: in the longest folder that is taken for sockets, the path of a socket has at most 107 bytes.
func TestRoot(t *testing.T) {
	const below = "/plugin-dir1234567890/plugin1234567890"
	longest := ""
	for n := range 107 {
		if tmp := "/" + strings.Repeat("t", n); root(tmp, len(below)) == tmp {
			longest = tmp
		}
	}
	for range 20 {
		dir, err := New(len(below))
		if err != nil {
			t.Fatal(err)
		}
		path := filepath.Join(longest, filepath.Base(dir.Path)) + below
		dir.Remove()
		if len(path) > 107 {
			t.Errorf("%s has %d bytes", path, len(path))
		}
	}
}

// TestSweep: folders of processes that were killed are removed, and no others.
func TestSweep(t *testing.T) {
	root, err := os.MkdirTemp("/tmp", "sweep") // short enough for sockets in it
	if err != nil {
		t.Fatal(err)
	}
	defer os.RemoveAll(root)
	t.Setenv("TMPDIR", root)
	dir := func(name string) string {
		path := filepath.Join(root, name)
		if err := os.MkdirAll(filepath.Join(path, "plugin-dir1"), 0o700); err != nil {
			t.Fatal(err)
		}
		return path
	}
	file := func(path, content string) {
		if err := os.WriteFile(path, []byte(content), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	dead := dir(Prefix + "dead")
	l, err := net.ListenUnix("unix", &net.UnixAddr{Name: filepath.Join(dead, "plugin-dir1", "s"), Net: "unix"})
	if err != nil {
		t.Fatal(err)
	}
	l.SetUnlinkOnClose(false) // as when its process is killed
	l.Close()
	file(filepath.Join(dir(Prefix+"early"), "plugin-dir1", "plugin1"), "")
	file(filepath.Join(dir(Prefix+"files"), "plugin-dir1", "thesis.tex"), "hello")
	dir("other")
	live, err := New(len("/plugin-dir1/s"))
	if err != nil {
		t.Fatal(err)
	}
	Sweep(len("/plugin-dir1/s"))
	entries, err := os.ReadDir(root)
	if err != nil {
		t.Fatal(err)
	}
	var left []string
	for _, e := range entries {
		left = append(left, e.Name())
	}
	want := []string{"other", filepath.Base(live.Path), Prefix + "files"}
	slices.Sort(want)
	if !slices.Equal(left, want) {
		t.Errorf("left: %v, want %v", left, want)
	}
	live.Remove()
	if _, err := os.Stat(live.Path); !os.IsNotExist(err) {
		t.Errorf("removed, it is still there: %v", err)
	}
}
