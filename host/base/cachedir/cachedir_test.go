package cachedir

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
)

func write(t *testing.T, path, text string) {
	t.Helper()
	if err := os.MkdirAll(filepath.Dir(path), 0o777); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, []byte(text), 0o666); err != nil {
		t.Fatal(err)
	}
}

func always(string) bool { return true }

// TestClaim: a folder becomes a cache when it is made, empty, or recognised, and no other one does.
func TestClaim(t *testing.T) {
	for name, c := range map[string]struct {
		make  func(dir string)
		known Recognise
		want  State
	}{
		"not there":     {func(string) {}, nil, Own},
		"empty":         {func(dir string) { os.Mkdir(dir, 0o777) }, nil, Own},
		"killed":        {func(dir string) { write(t, filepath.Join(dir, Marker), "") }, nil, Own},
		"claimed":       {func(dir string) { Claim(dir, nil); write(t, filepath.Join(dir, "a"), "") }, nil, Own},
		"recognised":    {func(dir string) { write(t, filepath.Join(dir, "a"), "") }, always, Adopted},
		"adopted":       {func(dir string) { write(t, filepath.Join(dir, "a"), ""); Claim(dir, always) }, nil, Adopted},
		"a file":        {func(dir string) { write(t, filepath.Join(dir, "a"), "") }, nil, Foreign},
		"a hidden file": {func(dir string) { write(t, filepath.Join(dir, ".git"), "") }, nil, Foreign},
		"another cache": {func(dir string) { write(t, filepath.Join(dir, Marker), standard) }, nil, Foreign},
		"empty marker, and a file": {func(dir string) {
			write(t, filepath.Join(dir, Marker), "")
			write(t, filepath.Join(dir, "a"), "")
		}, nil, Foreign},
		"a marker through a link": {func(dir string) {
			Claim(dir+".real", nil)
			os.Mkdir(dir, 0o777)
			os.Symlink(filepath.Join(dir+".real", Marker), filepath.Join(dir, Marker))
		}, nil, Foreign},
	} {
		dir := filepath.Join(t.TempDir(), "a", "cache")
		os.Mkdir(filepath.Dir(dir), 0o777)
		c.make(dir)
		got, err := Claim(dir, c.known)
		if got != c.want || (c.want == Foreign) != errors.Is(err, ErrForeign) {
			t.Errorf("%s: %d, %v, want %d", name, got, err, c.want)
		}
		if again, err := Look(dir, nil); err != nil || again != c.want {
			t.Errorf("%s: then %d, %v, want %d", name, again, err, c.want)
		}
	}
}

// TestClaimAtTheSameTime: any number of processes claim one folder.
func TestClaimAtTheSameTime(t *testing.T) {
	for range 50 {
		dir := filepath.Join(t.TempDir(), "cache")
		var all sync.WaitGroup
		for range 8 {
			all.Go(func() {
				if state, err := Claim(dir, nil); state != Own || err != nil {
					t.Errorf("%d, %v", state, err)
				}
				if err := os.MkdirAll(filepath.Join(dir, "entries"), 0o777); err != nil {
					t.Error(err)
				}
			})
		}
		all.Wait()
	}
}

// TestBelow: the hint names a folder that can be claimed.
func TestBelow(t *testing.T) {
	dir := t.TempDir()
	write(t, filepath.Join(dir, "xtts-host", "main.go"), "")
	if state, err := Claim(Below(dir), nil); state != Own || err != nil {
		t.Errorf("%s: %d, %v", Below(dir), state, err)
	}
}

// TestExposed: a cache, or a folder in it, that everyone can change is named with its flag.
func TestExposed(t *testing.T) {
	uid := os.Geteuid()
	dir := t.TempDir()
	below := filepath.Join(dir, "index")
	if err := os.Mkdir(below, 0o700); err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		path string
		mode os.FileMode
		want string
	}{
		{dir, 0o755, ""}, {dir, 0o757, "everyone can change " + dir + ","},
		{below, 0o757, "everyone can change " + below}, {dir, 0o757 | os.ModeSticky, ""},
	} {
		if err := os.Chmod(c.path, c.mode); err != nil {
			t.Fatal(err)
		}
		got := strings.Join(Exposed("--cache-dir", dir, uid), "\n")
		if (got == "") != (c.want == "") || !strings.HasPrefix(got, c.want) ||
			c.want != "" && !strings.Contains(got, "--cache-dir") {
			t.Errorf("%s %v: %q, want %q", c.path, c.mode, got, c.want)
		}
		if err := os.Chmod(c.path, 0o700); err != nil {
			t.Fatal(err)
		}
	}
}
