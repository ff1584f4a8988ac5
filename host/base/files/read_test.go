package files

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"syscall"
	"testing"
)

func TestRead(t *testing.T) {
	dir := t.TempDir()
	at := func(name string) string { return filepath.Join(dir, name) }
	for _, err := range []error{
		os.WriteFile(at("file"), []byte("four"), 0o666),
		syscall.Mkfifo(at("pipe"), 0o666),
		os.Mkdir(at("folder"), 0o777),
		os.Symlink("file", at("link")),
		os.Symlink("/dev/zero", at("device")),
		os.Symlink("pipe", at("link to pipe")),
		os.Symlink("loop", at("loop")),
	} {
		if err != nil {
			t.Fatal(err)
		}
	}
	root, err := os.OpenRoot(dir)
	if err != nil {
		t.Fatal(err)
	}
	defer root.Close()
	any := errors.New("any error")
	for _, c := range []struct {
		name         string
		limit        int64
		path, inRoot error
	}{
		{"file", 4, nil, nil},
		{"link", 4, nil, nil},
		{"file", 3, ErrTooLarge, ErrTooLarge},
		{"pipe", 9, ErrNotRegular, ErrNotRegular},
		{"link to pipe", 9, ErrNotRegular, ErrNotRegular},
		{"folder", 9, ErrNotRegular, ErrNotRegular},
		{"device", 9, ErrNotRegular, any}, // a Root does not follow it
		{"loop", 9, syscall.ELOOP, any},
		{"nowhere", 9, fs.ErrNotExist, fs.ErrNotExist},
	} {
		check := func(how string, data []byte, err, want error) {
			t.Helper()
			_, isPath := errors.AsType[*fs.PathError](err)
			switch {
			case want == nil && (err != nil || string(data) != "four"):
				t.Errorf("%s %s: %q, %v", how, c.name, data, err)
			case want != nil && (!isPath || want != any && !errors.Is(err, want)):
				t.Errorf("%s %s: %v, want %v", how, c.name, err, want)
			}
		}
		data, err := Read(at(c.name), c.limit)
		check("Read", data, err, c.path)
		data, err = ReadIn(root, c.name, c.limit)
		check("ReadIn", data, err, c.inRoot)
	}
}

// TestNames: the names of a folder, as many as wanted; a pipe is an error and nothing that waits.
func TestNames(t *testing.T) {
	dir := t.TempDir()
	pipe := filepath.Join(dir, "pipe")
	if err := errors.Join(os.Mkdir(filepath.Join(dir, "empty"), 0o777), syscall.Mkfifo(pipe, 0o666)); err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		dir          string
		limit, names int
		complete     bool
	}{{dir, 3, 2, true}, {dir, 2, 2, true}, {dir, 1, 1, false}, {filepath.Join(dir, "empty"), 1, 0, true}} {
		names, complete, err := Names(c.dir, c.limit)
		if len(names) != c.names || complete != c.complete || err != nil {
			t.Errorf("%s, at most %d: %q, complete %v, %v", c.dir, c.limit, names, complete, err)
		}
	}
	if _, _, err := Names(pipe, 1); !errors.Is(err, syscall.ENOTDIR) {
		t.Errorf("a pipe: %v", err)
	}
	if _, _, err := Names(filepath.Join(dir, "none"), 1); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("no folder: %v", err)
	}
}
