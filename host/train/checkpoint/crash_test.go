package checkpoint

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"

	"github.com/xtts-host/xtts-host/host/base/rundir"
	"github.com/xtts-host/xtts-host/shared/hint"
)

var errCrash = errors.New("the machine is off")

// faultyFS is a file system that goes wrong at one operation.
//
// With err == errCrash nothing works from that operation on, and lose then takes away what a machine that lost
// its power may lose: content that was not synced, names whose folder was not synced. Any other err fails that
// one operation only.
type faultyFS struct {
	folderFS
	left int // operations until the fault
	err  error
	dead bool
	// looking is set once a checkpoint is looked into: one that may have to be replaced.
	looking bool

	contents map[string]bool // files whose content is not durable
	entries  map[string]bool // names that are not durable
	renames  [][2]string     // renames that are not durable, in their order
}

func newFaultyFS(left int, err error) *faultyFS {
	return &faultyFS{folderFS: "/", left: left, err: err, contents: map[string]bool{}, entries: map[string]bool{}}
}

// sound returns a file system without a fault. It does not wait for the disk, so that a test can save often.
func sound() *faultyFS { return newFaultyFS(math.MaxInt, nil) }

// quickStore returns a store with these checkpoints, each a step and a salt.
func quickStore(t *testing.T, saved [][2]int64) *Store {
	s := NewStore(t.TempDir())
	s.fs = sound()
	for _, c := range saved {
		save(t, s, c[0], c[1])
	}
	return s
}

// step counts one operation and reports whether it is the faulty one.
func (f *faultyFS) step() error {
	f.left--
	if f.dead {
		return errCrash
	}
	if f.left != -1 {
		return nil
	}
	f.dead = f.err == errCrash
	return f.err
}

// hit reports whether the fault has come; hadFault, whether it had before the operation that step counted last.
func (f *faultyFS) hit() bool      { return f.left < 0 }
func (f *faultyFS) hadFault() bool { return f.left < -1 }

func (f *faultyFS) MkdirAll(path string) error {
	if err := f.step(); err != nil {
		return err
	}
	if _, err := os.Stat(path); err != nil {
		f.entries[path] = true
	}
	return f.folderFS.MkdirAll(path)
}

func (f *faultyFS) ReadDir(path string) ([]string, error) {
	f.looking = f.looking || filepath.Base(path) != rundir.Checkpoints
	if err := f.step(); err != nil {
		return nil, err
	}
	return f.folderFS.ReadDir(path)
}

func (f *faultyFS) Open(path string) (readFile, error) {
	if err := f.step(); err != nil {
		return nil, err
	}
	r, err := f.folderFS.Open(path)
	if err != nil {
		return nil, err
	}
	return &faultyRead{r, f}, nil
}

type faultyRead struct {
	readFile
	fs *faultyFS
}

func (r *faultyRead) ReadAt(p []byte, off int64) (int, error) {
	if err := r.fs.step(); err != nil {
		return 0, err
	}
	return r.readFile.ReadAt(p, off)
}

func (f *faultyFS) Create(path string) (writeFile, error) {
	if err := f.step(); err != nil {
		return nil, err
	}
	w, err := f.folderFS.Create(path)
	f.entries[path], f.contents[path] = true, true
	return &faultyFile{w, path, f}, err
}

type faultyFile struct {
	writeFile
	path string
	fs   *faultyFS
}

func (w *faultyFile) Write(p []byte) (int, error) {
	if err := w.fs.step(); err != nil {
		n, _ := w.writeFile.Write(p[:len(p)/2])
		return n, err
	}
	return w.writeFile.Write(p)
}

func (w *faultyFile) Sync() error {
	if err := w.fs.step(); err != nil {
		return err
	}
	delete(w.fs.contents, w.path)
	return nil // the test's own bookkeeping decides what is lost
}

// Close is counted, since network file systems report a full disk there.
func (w *faultyFile) Close() error { return errors.Join(w.writeFile.Close(), w.fs.step()) }

func (f *faultyFS) Rename(from, to string) error {
	if err := f.step(); err != nil {
		return err
	}
	f.renames = append(f.renames, [2]string{from, to})
	return f.move(from, to)
}

func (f *faultyFS) move(from, to string) error {
	for _, set := range []map[string]bool{f.contents, f.entries} {
		for path := range set {
			if rest, ok := strings.CutPrefix(path, from); ok {
				delete(set, path)
				set[to+rest] = true
			}
		}
	}
	return f.folderFS.Rename(from, to)
}

// RemoveAll removes one file of a folder when it fails.
func (f *faultyFS) RemoveAll(path string) error {
	if err := f.step(); err != nil {
		if inside, _ := f.folderFS.ReadDir(path); len(inside) > 0 && !f.hadFault() {
			f.folderFS.RemoveAll(filepath.Join(path, inside[0]))
		}
		return err
	}
	return f.folderFS.RemoveAll(path)
}

func (f *faultyFS) SyncDir(path string) error {
	if err := f.step(); err != nil {
		return err
	}
	for entry := range f.entries {
		if filepath.Dir(entry) == path {
			delete(f.entries, entry)
		}
	}
	f.renames = slices.DeleteFunc(f.renames, func(r [2]string) bool { return filepath.Dir(r[1]) == path })
	return nil
}

// lose takes away everything that is not durable.
func (f *faultyFS) lose(t *testing.T) {
	t.Helper()
	for _, r := range slices.Backward(f.renames) {
		if err := f.move(r[1], r[0]); err != nil && !errors.Is(err, fs.ErrNotExist) {
			t.Fatal(err)
		}
	}
	for path := range f.contents {
		if info, err := os.Stat(path); err == nil {
			if err := os.Truncate(path, info.Size()/2); err != nil {
				t.Fatal(err)
			}
		}
	}
	for path := range f.entries {
		if err := os.RemoveAll(path); err != nil {
			t.Fatal(err)
		}
	}
}

// The cases of a save: what was there before, and what is saved with which step and salt.
var saves = []struct {
	name       string
	before     [][2]int64
	step, salt int64
}{
	{"the first", nil, 1, 1},
	{"one more", [][2]int64{{1, 1}, {2, 2}}, 3, 3},
	{"another state of the same step", [][2]int64{{1, 1}}, 1, 9},
	{"the same again", [][2]int64{{1, 1}}, 1, 1},
	{"the first with frozen weights", nil, 1, 101},
	{"one more with frozen weights", [][2]int64{{1, 101}}, 2, 102},
	{"other frozen weights", [][2]int64{{1, 101}}, 1, 209},
	{"the same again with frozen weights", [][2]int64{{1, 101}}, 1, 101},
}

// Whatever operation a save is killed at, and whether the disk kept what was not synced or lost it, the run goes
// on from the checkpoint before or from the new one, and the next save finds a clean folder.
func TestSaveIsKilledAnywhere(t *testing.T) {
	for _, c := range saves {
		for _, lose := range []bool{false, true} {
			t.Run(fmt.Sprintf("%s/lose=%v", c.name, lose), func(t *testing.T) {
				for k := 0; ; k++ {
					s := quickStore(t, c.before)
					faulty := newFaultyFS(k, errCrash)
					s.fs = faulty
					params, moments := someTensors(c.salt)
					_, err := s.Save(context.Background(), someState(c.step), params, moments)
					if (err != nil) != faulty.hit() {
						t.Fatalf("operation %d: fault %v, Save gave %v", k, faulty.hit(), err)
					}
					if lose {
						faulty.lose(t)
					}
					s.fs = sound()
					checkSurvivor(t, s, k, c.before, c.step, c.salt, err == nil)
					if err := s.clear(); err != nil && !errors.Is(err, fs.ErrNotExist) {
						t.Fatal(err)
					}
					checkSurvivor(t, s, k, c.before, c.step, c.salt, err == nil)
					save(t, s, 7, 7)
					for _, name := range names(t, s.dir) {
						if strings.HasSuffix(name, tmpSuffix) || strings.HasSuffix(name, oldSuffix) {
							t.Errorf("operation %d: %s is left after the next save", k, name)
						}
					}
					if !faulty.hit() {
						if k < 5 {
							t.Errorf("only %d operations", k)
						}
						return
					}
				}
			})
		}
	}
}

// checkSurvivor fails unless the newest checkpoint is the one saved last, or, where that save failed, the one
// before it.
func checkSurvivor(t *testing.T, s *Store, k int, before [][2]int64, step, salt int64, saved bool) {
	t.Helper()
	c, skipped, err := s.Latest()
	if len(skipped) > 0 {
		t.Errorf("operation %d: a damaged checkpoint has its final name: %v", k, skipped)
	}
	if errors.Is(err, ErrNone) && len(before) == 0 && !saved {
		return
	}
	if err != nil {
		t.Fatalf("operation %d: %v", k, err)
	}
	defer c.Close()
	params, moments := someTensors(salt)
	got := blank(params)
	if err := c.Restore(got, blank(moments)); err != nil {
		t.Fatal(err)
	}
	isNew := c.State.Step == step && string(got[0].Data) == string(params[0].Data)
	if saved && !isNew {
		t.Errorf("operation %d: Save had returned, and the checkpoint is lost", k)
	}
	if !isNew {
		last := before[len(before)-1]
		check(t, c, last[0], last[1])
	} else {
		check(t, c, step, salt)
	}
}

// faults are what a disk does. A write that fails has written a part.
var faults = []error{syscall.ENOSPC, syscall.EIO, io.ErrShortWrite}

// An error of any single operation is returned, harms no checkpoint, and frees the space that was taken. Only looking
// at the checkpoint that is to be replaced may fail unnoticed: it is then replaced.
func TestSaveFailsAnywhere(t *testing.T) {
	for i, c := range saves {
		for j := range faults {
			if j > 0 && i > 0 {
				break // each operation with each fault once, in the first case, is enough
			}
			t.Run(fmt.Sprintf("%s/%d", c.name, j),
				func(t *testing.T) { saveFailsAnywhere(t, c.before, c.step, c.salt, j) })
		}
	}
}

// saveFailsAnywhere takes the faults in turn, from one on.
func saveFailsAnywhere(t *testing.T, before [][2]int64, step, salt int64, first int) {
	for k := 0; ; k++ {
		fault := faults[(first+k)%len(faults)]
		s := quickStore(t, before)
		faulty := newFaultyFS(k, fault)
		s.fs = faulty
		params, moments := someTensors(salt)
		_, err := s.Save(context.Background(), someState(step), params, moments)
		if !faulty.hit() {
			if k < 20 {
				t.Errorf("only %d operations", k)
			}
			return
		}
		if err == nil && !faulty.looking {
			t.Fatalf("operation %d: Save gave no error", k)
		}
		if err != nil && !errors.Is(err, fault) {
			t.Fatalf("operation %d: Save gave %v", k, err)
		}
		if h := hint.Of(err); (h != "") != (err != nil && fault == syscall.ENOSPC) {
			t.Errorf("operation %d: hint %q of %v", k, h, err)
		}
		s.fs = sound()
		checkSurvivor(t, s, k, before, step, salt, err == nil)
		if tmp, _ := filepath.Glob(filepath.Join(s.dir, "*"+tmpSuffix)); tmp != nil {
			t.Errorf("operation %d: %v still takes space", k, tmp)
		}
	}
}

// A prune that is killed anywhere, or fails, leaves the checkpoints that were to be kept (the newest, and the best),
// and no damaged ones. The next save finishes it.
func TestPruneFailsAnywhere(t *testing.T) {
	for _, fault := range append([]error{errCrash}, faults...) {
		t.Run(fault.Error(), func(t *testing.T) {
			for k := 0; ; k++ {
				s := quickStore(t, [][2]int64{{0, 0}, {1, 1}, {2, 2}, {3, 3}})
				faulty := newFaultyFS(k, fault)
				s.fs = faulty
				err := s.Prune(1, s.Path(1))
				if fault == errCrash {
					faulty.lose(t)
				}
				s.fs = sound()
				if (err != nil) != faulty.hit() || err != nil && !errors.Is(err, fault) {
					t.Fatalf("operation %d: Prune gave %v", k, err)
				}
				c, _ := latest(t, s)
				check(t, c, 3, 3)
				left, err := s.list()
				if err != nil {
					t.Fatal(err)
				}
				for _, path := range append(left, s.Path(1)) {
					c, err := Load(path)
					if err != nil {
						t.Errorf("operation %d: %v", k, err)
						continue
					}
					c.Close()
				}
				save(t, s, 4, 4)
				if tmp, _ := filepath.Glob(filepath.Join(s.dir, "*"+tmpSuffix)); tmp != nil {
					t.Errorf("operation %d: %v still takes space", k, tmp)
				}
				if !faulty.hit() {
					return
				}
			}
		})
	}
}
