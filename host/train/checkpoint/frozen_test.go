package checkpoint

import (
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// frozenFiles returns the names of the files of frozen weights.
func frozenFiles(t *testing.T, s *Store) []string {
	t.Helper()
	return slices.DeleteFunc(names(t, s.dir), func(name string) bool { return !isFrozen(name) })
}

func TestCheckpointsShareFrozenWeights(t *testing.T) {
	s := quickStore(t, [][2]int64{{1, 101}, {2, 102}})
	files := frozenFiles(t, s)
	if len(files) != 1 {
		t.Fatalf("frozen weights in %v", files)
	}
	file := filepath.Join(s.dir, files[0])
	before, err := os.Stat(file)
	if err != nil {
		t.Fatal(err)
	}
	again := NewStore(filepath.Dir(s.dir)) // as in a resumed run
	save(t, again, 3, 103)
	if after, err := os.Stat(file); err != nil || !os.SameFile(before, after) {
		t.Errorf("the next process wrote them again (%v)", err)
	}
	for step := range int64(3) {
		c, err := Load(s.Path(step + 1))
		if err != nil {
			t.Fatal(err)
		}
		check(t, c, step+1, 101+step)
		c.Close()
	}
	if tool, err := exec.LookPath("sha256sum"); err == nil {
		cmd := exec.Command(tool, "--strict", "-c", manifestFile)
		cmd.Dir = s.Path(3)
		if out, err := cmd.CombinedOutput(); err != nil || !strings.Contains(string(out), files[0]+": OK") {
			t.Errorf("%v\n%s", err, out)
		}
	}
}

// TestLoadFromInside opens a checkpoint as the working folder, and through a link elsewhere.
func TestLoadFromInside(t *testing.T) {
	s := quickStore(t, [][2]int64{{1, 101}})
	link := filepath.Join(t.TempDir(), "link")
	if err := os.Symlink(s.Path(1), link); err != nil {
		t.Fatal(err)
	}
	t.Chdir(s.Path(1))
	for _, path := range []string{".", link} {
		c, err := Load(path)
		if err != nil {
			t.Fatal(err)
		}
		check(t, c, 1, 101)
		c.Close()
	}
}

func TestDamagedFrozenWeights(t *testing.T) {
	for name, c := range map[string]struct {
		damage func(file string) error
		want   string
	}{
		"missing": {
			os.Remove, ".safetensors is missing: it holds the frozen weights, next to the checkpoint's folder",
		},
		"truncated": {
			func(file string) error { return os.Truncate(file, 30) }, ".safetensors: not a valid safetensors file",
		},
		"changed": {func(file string) error {
			data, err := os.ReadFile(file)
			if err != nil {
				return err
			}
			data[len(data)-1] ^= 1
			return os.WriteFile(file, data, 0o666)
		}, "does not match MANIFEST"},
	} {
		t.Run(name, func(t *testing.T) {
			s := quickStore(t, [][2]int64{{1, 101}})
			file := filepath.Join(s.dir, frozenFiles(t, s)[0])
			if err := c.damage(file); err != nil {
				t.Fatal(err)
			}
			if _, err := Load(s.Path(1)); !errors.Is(err, ErrDamaged) || !strings.Contains(err.Error(), c.want) {
				t.Errorf("load: %v", err)
			}
			// The next process replaces them, and with them all checkpoints are intact again.
			again := NewStore(filepath.Dir(s.dir))
			save(t, again, 2, 102)
			for step := range int64(2) {
				c, err := Load(s.Path(step + 1))
				if err != nil {
					t.Fatal(err)
				}
				check(t, c, step+1, 101+step)
				c.Close()
			}
		})
	}
}

// A prune that fails anywhere leaves the frozen weights of all checkpoints that are kept, and the next one removes
// those that no checkpoint shares.
func TestPruneKeepsSharedFrozenWeights(t *testing.T) {
	for _, fault := range append([]error{errCrash}, faults...) {
		t.Run(fault.Error(), func(t *testing.T) {
			for k := 0; ; k++ {
				s := quickStore(t, [][2]int64{{0, 100}, {1, 201}, {2, 202}, {3, 303}})
				all := len(frozenFiles(t, s))
				faulty := newFaultyFS(k, fault)
				s.fs = faulty
				err := s.Prune(1, s.Path(1))
				if fault == errCrash {
					faulty.lose(t)
				}
				s.fs = sound()
				if (err != nil) != faulty.hit() {
					t.Fatalf("operation %d: Prune gave %v", k, err)
				}
				for _, kept := range [][2]int64{{1, 201}, {3, 303}} {
					c, err := Load(s.Path(kept[0]))
					if err != nil {
						t.Fatalf("operation %d: %v", k, err)
					}
					check(t, c, kept[0], kept[1])
					c.Close()
				}
				if err := s.Prune(1, s.Path(1)); err != nil {
					t.Fatal(err)
				}
				if left := frozenFiles(t, s); all != 3 || len(left) != 2 {
					t.Errorf("operation %d: of %d files of frozen weights %v are left", k, all, left)
				}
				if !faulty.hit() {
					return
				}
			}
		})
	}
}

// A checkpoint whose MANIFEST is damaged may share any frozen weights.
func TestPruneKeepsFrozenWeightsOfDamaged(t *testing.T) {
	s := quickStore(t, [][2]int64{{1, 101}, {2, 202}, {3, 303}})
	if err := os.Truncate(filepath.Join(s.Path(3), manifestFile), 10); err != nil {
		t.Fatal(err)
	}
	if err := s.Prune(1); err != nil {
		t.Fatal(err)
	}
	if left := frozenFiles(t, s); len(left) != 3 {
		t.Errorf("%v are left", left)
	}
}
