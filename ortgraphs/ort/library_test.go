package ort

import (
	"bytes"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"golang.org/x/sys/unix"
)

func TestCandidates(t *testing.T) {
	const name = "libonnxruntime.so.1.29.0"
	for _, tt := range []struct {
		test        string
		option, env string
		cuda        bool
		want        []string
	}{
		{"option before environment", "/a/lib.so", "/b/lib.so", true, []string{"/a/lib.so"}},
		{"environment", "", "/b/lib.so", false, []string{"/b/lib.so"}},
		{"a bare name is a file here, not one for the loader", "lib.so", "", false, []string{"./lib.so"}},
		{"neither", "", "", false, []string{
			"/opt/xtts/bin/lib/" + name, "/opt/xtts/lib/" + name, "/opt/xtts/.cache/ort/1.29.0/" + name,
			"libonnxruntime.so.1"}},
		{"neither, CUDA", "", "", true, []string{
			"/opt/xtts/.cache/ort-gpu/1.29.0/" + name, "/home/me/.cache/xtts-host/ort-gpu/1.29.0/" + name,
			"libonnxruntime.so.1"}},
	} {
		t.Run(tt.test, func(t *testing.T) {
			got := candidates(tt.option, tt.env, "/opt/xtts/bin", "/home/me/.cache", tt.cuda)
			if !slices.Equal(got, tt.want) {
				t.Errorf("got %q, want %q", got, tt.want)
			}
		})
	}
}

func TestLoad(t *testing.T) {
	dir := t.TempDir()
	good, other, broken, absent := filepath.Join(dir, "good"), filepath.Join(dir, "other"),
		filepath.Join(dir, "broken"), filepath.Join(dir, "absent")
	for _, f := range []string{good, other, broken} {
		if err := os.WriteFile(f, nil, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	errBroken := errors.New("broken")
	for _, tt := range []struct {
		name       string
		candidates []string
		found      bool // by the loader
		want       string
		tried      []string
		err        error
	}{
		{"first", []string{good, other}, false, good, nil, nil},
		{"skips absent ones", []string{absent, other, good}, false, other, nil, nil},
		{"never skips a broken one", []string{absent, broken, good}, false, "", []string{broken}, errBroken},
		{"loader", []string{absent, loaderDefault}, true, loaderDefault, nil, nil},
		{"nothing", []string{absent, loaderDefault}, false, "", []string{absent, loaderDefault}, errBroken},
		{"named and absent", []string{absent}, true, "", []string{absent}, fs.ErrNotExist},
		{
			"below a file", []string{filepath.Join(good, "lib"), other}, true, "", []string{filepath.Join(good, "lib")},
			unix.ENOTDIR,
		},
	} {
		t.Run(tt.name, func(t *testing.T) {
			got, err := load(tt.candidates, func(path string) error {
				if path == broken || path == loaderDefault && !tt.found {
					return errBroken
				}
				return nil
			})
			if got != tt.want {
				t.Errorf("loaded %q, want %q", got, tt.want)
			}
			e, _ := errors.AsType[*LibraryError](err)
			if (tt.tried != nil) != (e != nil) ||
				e != nil && (!slices.Equal(e.Tried, tt.tried) || !errors.Is(e, tt.err)) {
				t.Errorf("error %v, want one that tried %q: %v", err, tt.tried, tt.err)
			}
			for _, path := range tt.tried {
				if !strings.Contains(err.Error(), path) {
					t.Errorf("%v does not name %s", err, path)
				}
			}
		})
	}
}

// TestLibraryHint: one way out, which exists where the program is.
func TestLibraryHint(t *testing.T) {
	missing := &LibraryError{Err: fs.ErrNotExist}
	noCXX := &LibraryError{Err: errors.New("libstdc++.so.6: cannot open shared object file: No such file or directory")}
	oldCXX := &LibraryError{Err: errors.New(
		"/lib64/libstdc++.so.6: version `GLIBCXX_3.4.22' not found (required by lib.so)")}
	for _, tt := range []struct {
		err       *LibraryError
		installed bool
		want      string
	}{
		{missing, false, fetchScript + " fetches"},
		{missing, true, "a release has the library in lib"},
		{noCXX, true, "install the C++ library of GCC"},
		{noCXX, false, "install the C++ library of GCC"},
		{oldCXX, true, "install the C++ library of GCC"},
	} {
		if got := tt.err.hint(tt.installed); !strings.HasPrefix(got, tt.want) {
			t.Errorf("%v, installed %v: the hint is %s", tt.err, tt.installed, got)
		}
	}
}

func TestFetchScriptAgrees(t *testing.T) {
	script, err := os.ReadFile("../../scripts/fetch-ort.sh")
	if err != nil {
		t.Fatal(err)
	}
	version := strings.TrimPrefix(libraryName, "libonnxruntime.so.")
	if !bytes.Contains(script, []byte("\nversion="+version+"\n")) ||
		!bytes.Contains(script, []byte("/.cache/ort/$version/$name")) {
		t.Errorf("scripts/fetch-ort.sh does not make %s", CachedLibrary)
	}
}

func TestFind(t *testing.T) {
	t.Chdir(t.TempDir())
	dir, err := os.Getwd()
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile("lib.so", nil, 0o600); err != nil { // not a library: it is not opened
		t.Fatal(err)
	}
	if got, err := Find(Options{Library: "lib.so"}); err != nil || got != filepath.Join(dir, "lib.so") {
		t.Errorf("found %s, %v", got, err)
	}
	t.Setenv(LibraryEnv, "/nowhere/lib.so")
	got, err := Find(Options{CUDA: true})
	if !errors.Is(err, fs.ErrNotExist) || !strings.Contains(err.(*LibraryError).Hint(), "fetch cuda") {
		t.Errorf("found %s, %v", got, err)
	}
}
