package nvrtc

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"
)

// fake returns a compiler whose image of a source contains the options and the source, and the number of programs that
// it has compiled.
func fake() (*Compiler, *atomic.Int32) {
	n := new(atomic.Int32)
	return &Compiler{
		major: 13, known: []int{80, 90, 100},
		compile: func(source string, options []string, ptx bool) ([]byte, string, error) {
			n.Add(1)
			if strings.Contains(source, "wrong") {
				return nil, "kernel.cu(7): error: this is wrong\n    wrong;\n    ^\n\n1 error detected",
					errors.New("no success")
			}
			return []byte(strings.Join(options, " ") + source), "", nil
		},
	}, n
}

func TestTarget(t *testing.T) {
	c, _ := fake()
	for capability, want := range map[int]struct {
		arch string
		ptx  bool
	}{
		80: {"sm_80", false}, 89: {"compute_80", true}, 90: {"sm_90a", false}, 86: {"compute_80", true},
		103: {"compute_100", true}, 990: {"compute_100", true},
	} {
		if arch, ptx, err := c.target(capability); arch != want.arch || ptx != want.ptx || err != nil {
			t.Errorf("%d: %s, %v, %v", capability, arch, ptx, err)
		}
	}
	for _, capability := range []int{0, 75} {
		if _, err := c.Compile(context.Background(), Options{Capability: capability}, nil); err == nil {
			t.Errorf("compiles for %d", capability)
		}
	}
}

func TestCache(t *testing.T) {
	c, n := fake()
	o := Options{Capability: 90, Cache: filepath.Join(t.TempDir(), "not", "made", "yet")}
	compile := func(want, compiles int, sources ...string) {
		t.Helper()
		n.Store(0)
		compiled, err := c.Compile(context.Background(), o, sources)
		if err != nil || compiled.CacheError != nil {
			t.Fatal(err, compiled.CacheError)
		}
		if compiled.Cached != want || compiled.New != compiles || int(n.Load()) != compiles {
			t.Errorf("%d from the cache and %d new, compiled %d; want %d and %d", compiled.Cached, compiled.New,
				n.Load(), want, compiles)
		}
		for i, image := range compiled.Images {
			if !strings.HasSuffix(string(image), sources[i]) || !strings.HasPrefix(string(image), "-arch=sm_") {
				t.Errorf("image %d is %q", i, image)
			}
		}
	}
	compile(0, 2, "a", "b", "a")
	compile(2, 1, "b", "c", "a", "c")
	o.Flags = []string{"-use_fast_math"}
	compile(0, 1, "a")
	o.Capability = 80
	compile(0, 1, "a")
	c.minor = 1
	compile(0, 1, "a")
	compile(1, 0, "a")

	o.Cache = t.TempDir()
	compile(0, 1, "a")
	files, err := filepath.Glob(filepath.Join(o.Cache, "*"))
	if err != nil || len(files) != 1 {
		t.Fatalf("%d files, %v", len(files), err)
	}
	for name, damage := range map[string]func(content []byte) []byte{
		"empty":     func([]byte) []byte { return nil },
		"truncated": func(b []byte) []byte { return b[:len(b)-1] },
		"checksum":  func(b []byte) []byte { return b[:32] },
		"a bit":     func(b []byte) []byte { b[len(b)-1] ^= 1; return b },
		"appended":  func(b []byte) []byte { return append(b, 0) },
	} {
		t.Log(name)
		content, err := os.ReadFile(files[0])
		if err == nil {
			err = os.WriteFile(files[0], damage(content), 0o666)
		}
		if err != nil {
			t.Fatal(err)
		}
		compile(0, 1, "a")
		compile(1, 0, "a")
	}
}

// TestNoCache: programs are compiled where the cache cannot be written, and the result has the reason.
func TestNoCache(t *testing.T) {
	c, _ := fake()
	file := filepath.Join(t.TempDir(), "file")
	if err := os.WriteFile(file, nil, 0o666); err != nil {
		t.Fatal(err)
	}
	for folder, want := range map[string]string{"": "", file: "not a directory"} {
		compiled, err := c.Compile(context.Background(), Options{Capability: 90, Cache: folder}, []string{"a", "b"})
		if err != nil || len(compiled.Images) != 2 || compiled.New != 2 {
			t.Errorf("%+v, %v", compiled, err)
		}
		if e := compiled.CacheError; (e == nil) != (want == "") || e != nil && !strings.Contains(e.Error(), want) {
			t.Errorf("cache error %v, want %q", e, want)
		}
	}
}

// TestRefused: a source that the compiler refuses has its message. The others are compiled.
func TestRefused(t *testing.T) {
	c, n := fake()
	sources := append([]string{"wrong"}, slices.Repeat([]string{"x"}, 3)...)
	compiled, err := c.Compile(context.Background(), Options{Capability: 90, Cache: t.TempDir()}, sources)
	if err != nil || compiled.CacheError != nil || compiled.New != 1 || compiled.Cached != 0 {
		t.Fatalf("%+v, %v", compiled, err)
	}
	want := "compile for sm_90a: no success: kernel.cu(7): error: this is wrong: wrong;"
	if compiled.Images[0] != nil || compiled.Refused[0] == nil || compiled.Refused[0].Error() != want {
		t.Errorf("%q, %v, want the error %s", compiled.Images[0], compiled.Refused[0], want)
	}
	for i := range sources[1:] {
		if compiled.Images[1+i] == nil || compiled.Refused[1+i] != nil {
			t.Errorf("source %d: %v", 1+i, compiled.Refused[1+i])
		}
	}
	n.Store(0)
	ended, end := context.WithCancel(context.Background())
	end()
	_, err = c.Compile(ended, Options{Capability: 90}, sources)
	if !errors.Is(err, context.Canceled) || n.Load() != 0 {
		t.Errorf("%v after %d programs", err, n.Load())
	}
}

func TestShrink(t *testing.T) {
	store := &cache{folder: t.TempDir()}
	image := make([]byte, 1000-32)
	name := func(letter string) string { return strings.Repeat(letter, 64) }
	for _, letter := range []string{"a", "b", "c", "d"} {
		key := name(letter)
		store.add(key, image)
		old := info(t, store, key).ModTime().AddDate(0, 0, -4+int(key[0]-'a'))
		if err := os.Chtimes(filepath.Join(store.folder, key+suffix), old, old); err != nil {
			t.Fatal(err)
		}
	}
	others := []string{filepath.Join(store.folder, "README"), filepath.Join(store.folder, "boot"+suffix)}
	for _, other := range others {
		if err := os.WriteFile(other, nil, 0o666); err != nil {
			t.Fatal(err)
		}
		if err := os.Chtimes(other, time.Time{}, time.Unix(1, 0)); err != nil {
			t.Fatal(err)
		}
	}
	if store.load(name("a")) == nil { // now it is the newest
		t.Fatal("a is not there")
	}
	if err := shrink(store.folder, 2999); err != nil {
		t.Fatal(err)
	}
	for key, want := range map[string]bool{"a": true, "b": false, "c": false, "d": true} {
		if got := store.load(name(key)) != nil; got != want {
			t.Errorf("%s is there: %v", key, got)
		}
	}
	for _, other := range others {
		if _, err := os.Stat(other); err != nil {
			t.Error(err)
		}
	}
}

func info(t *testing.T, c *cache, key string) os.FileInfo {
	t.Helper()
	i, err := os.Stat(filepath.Join(c.folder, key+suffix))
	if err != nil {
		t.Fatal(err)
	}
	return i
}
