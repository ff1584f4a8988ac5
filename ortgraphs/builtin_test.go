package ortgraphs

import (
	"errors"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/fstest"

	"google.golang.org/protobuf/proto"

	"github.com/xtts-host/xtts-host/host/base/files"
	"github.com/xtts-host/xtts-host/ortgraphs/onnxpb"
)

func TestBuiltins(t *testing.T) {
	if want := []string{"myxtts-multispeaker", "myxtts-nano"}; !slices.Equal(Builtins(), want) {
		t.Errorf("builtins are %v, want %v", Builtins(), want)
	}
	for _, name := range Builtins() {
		b, err := Open("builtin:"+name, t.TempDir())
		if err != nil {
			t.Fatal(err)
		}
		if b.Manifest.Name != name {
			t.Errorf("builtin %s is named %s", name, b.Manifest.Name)
		}
	}
	if _, err := Open("builtin:../optim", t.TempDir()); !errors.Is(err, ErrUnknownBuiltin) {
		t.Errorf("got %v", err)
	}
}

func TestBuiltinUsesTheUsersCache(t *testing.T) {
	cache := t.TempDir()
	t.Setenv("XDG_CACHE_HOME", cache)
	b, err := Builtin("myxtts-nano", "")
	if err != nil {
		t.Fatal(err)
	}
	if filepath.Dir(b.Dir) != filepath.Join(cache, "xtts-host", "bundles") {
		t.Errorf("unpacked to %s", b.Dir)
	}
}

var bundleFS = fstest.MapFS{
	ManifestFile: {Data: []byte("{}")},
	WeightsFile:  {Data: []byte("weights")},
}

func TestUnpack(t *testing.T) {
	for name, damage := range map[string]func(dir string) error{
		"nothing": func(string) error { return nil },
		"file changed": func(dir string) error {
			return os.WriteFile(filepath.Join(dir, WeightsFile), []byte("Weights"), 0o666)
		},
		"file missing":  func(dir string) error { return os.Remove(filepath.Join(dir, WeightsFile)) },
		"file too many": func(dir string) error { return os.WriteFile(filepath.Join(dir, "x"), nil, 0o666) },
		"file for a folder": func(dir string) error {
			return errors.Join(os.RemoveAll(dir), os.WriteFile(dir, nil, 0o666))
		},
		"folder is empty":    func(dir string) error { return errors.Join(os.RemoveAll(dir), os.Mkdir(dir, 0o777)) },
		"folder is not here": os.RemoveAll,
		"link": func(dir string) error {
			other := filepath.Join(filepath.Dir(filepath.Dir(dir)), "other")
			return errors.Join(os.Rename(filepath.Join(dir, WeightsFile), other),
				os.Symlink(other, filepath.Join(dir, WeightsFile)))
		},
	} {
		t.Run(name, func(t *testing.T) {
			parent := filepath.Join(t.TempDir(), "cache", "bundles")
			dir, err := unpacked(bundleFS, files.In(parent), "tiny")
			if err != nil {
				t.Fatal(err)
			}
			before, err := os.Stat(dir)
			if err != nil {
				t.Fatal(err)
			}
			if err := damage(dir); err != nil {
				t.Fatal(err)
			}
			again, err := unpacked(bundleFS, files.In(parent), "tiny")
			if err != nil {
				t.Fatal(err)
			}
			after, err := os.Stat(dir)
			if err != nil {
				t.Fatal(err)
			}
			if again != dir || !same(bundleFS, dir) {
				t.Errorf("%s, then %s, is not what was unpacked", dir, again)
			}
			reused := os.SameFile(before, after) && before.ModTime().Equal(after.ModTime())
			if reused != (name == "nothing") {
				t.Errorf("reused: %v", reused)
			}
			if left, err := os.ReadDir(parent); err != nil || len(left) != 1 {
				t.Errorf("remaining files: %v, %v", left, err)
			}
		})
	}
}

func TestUnpackAtTheSameTime(t *testing.T) {
	parent := t.TempDir()
	var wg sync.WaitGroup
	for range 8 {
		wg.Go(func() {
			for range 10 {
				dir, err := unpacked(bundleFS, files.In(parent), "tiny")
				if err != nil || !same(bundleFS, dir) {
					t.Errorf("%s: %v", dir, err)
				}
			}
		})
	}
	wg.Wait()
}

func TestOptimizer(t *testing.T) {
	for _, name := range append([]string{"accumulate", "norm", "squares"}, slices.Collect(maps.Keys(graphState))...) {
		data, err := Optimizer(name)
		if err != nil {
			t.Fatal(err)
		}
		model := new(onnxpb.ModelProto)
		if err := proto.Unmarshal(data, model); err != nil {
			t.Fatal(err)
		}
		f := &faults{file: name}
		checkPortable(model, nil, f)
		for _, fault := range f.list {
			t.Error(fault)
		}
		var state []string
		for _, v := range model.Graph.Output {
			vector, updated := strings.CutSuffix(v.GetName(), "_out")
			if updated && vector != "param" && graphState[name] != nil {
				state = append(state, vector)
			}
		}
		if got := graphState[name]; !slices.Equal(got, state) {
			t.Errorf("the state of %s is %v, its graph keeps %v", name, got, state)
		}
	}
	if _, err := Optimizer("../builtin"); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("got %v", err)
	}
}

// TestLinkedBundles: nothing is unpacked through a link in the cache folder.
func TestLinkedBundles(t *testing.T) {
	cache, elsewhere := t.TempDir(), t.TempDir()
	if err := os.Symlink(elsewhere, filepath.Join(cache, "bundles")); err != nil {
		t.Fatal(err)
	}
	if _, err := Builtin("myxtts-nano", cache); !errors.Is(err, files.ErrLink) {
		t.Errorf("error %v", err)
	}
	if entries, err := os.ReadDir(elsewhere); err != nil || len(entries) > 0 {
		t.Errorf("%d entries, %v", len(entries), err)
	}
}
