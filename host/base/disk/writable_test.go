package disk

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// TestCheck: what cannot be written is named, and nothing is made.
func TestCheck(t *testing.T) {
	dir := t.TempDir()
	at := func(name string) string { return filepath.Join(dir, name) }
	if err := os.WriteFile(at("file"), nil, 0o666); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink(at("nothing"), at("link")); err != nil {
		t.Fatal(err)
	}
	if err := os.Mkdir(at("closed"), 0o555); err != nil {
		t.Fatal(err)
	}
	root := os.Geteuid() == 0 // may write anywhere
	for _, tt := range []struct {
		check func(string) error
		path  string
		want  string // in the error, "" for none
	}{
		{CheckFolder, dir, ""},
		{CheckFolder, at("a/b/c"), ""},
		{CheckFolder, at("file"), "file is a file, not a folder"},
		{CheckFolder, at("file/a/b"), "file is a file, not a folder"},
		{CheckFolder, at("link"), "link is a link to nothing"},
		{CheckFolder, "/proc/nothing", "write to folder /proc: "},
		{CheckFolder, at("closed/a"), "write to folder " + at("closed")},
		{CheckFile, at("new"), ""},
		{CheckFile, at("file"), ""},
		{CheckFile, dir, "is a folder, not a file"},
		{CheckFile, at("none/new"), "none: no such file or directory"},
		{CheckFile, at("file/new"), "not a directory"},
		{CheckFile, at("closed/new"), "write to folder " + at("closed")},
	} {
		if root && (strings.Contains(tt.path, "closed") || tt.path == "/proc/nothing") {
			continue
		}
		err := tt.check(tt.path)
		if tt.want == "" && err != nil || tt.want != "" && (err == nil || !strings.Contains(err.Error(), tt.want)) {
			t.Errorf("%s: %v, want %q", tt.path, err, tt.want)
		}
	}
	if left, err := os.ReadDir(dir); err != nil || len(left) != 3 {
		t.Errorf("%v, %v", left, err)
	}
}

// TestCheckNew refuses what is there, a link to nothing too, and what cannot be made.
func TestCheckNew(t *testing.T) {
	dir := t.TempDir()
	link := filepath.Join(dir, "link")
	if err := os.Symlink(filepath.Join(dir, "nothing"), link); err != nil {
		t.Fatal(err)
	}
	file := filepath.Join(dir, "file")
	if err := os.WriteFile(file, nil, 0o666); err != nil {
		t.Fatal(err)
	}
	for _, path := range []string{dir, file} {
		if err := CheckNew(path); !errors.Is(err, ErrThere) {
			t.Errorf("%s: %v", path, err)
		}
	}
	if err := CheckNew(link); err == nil {
		t.Error("a link to nothing counts as new")
	}
	if err := CheckNew(filepath.Join(dir, "a", "new")); err != nil {
		t.Error(err)
	}
	if err := CheckNew(filepath.Join(file, "new")); err == nil || errors.Is(err, ErrThere) {
		t.Errorf("in a file: %v", err)
	}
}
