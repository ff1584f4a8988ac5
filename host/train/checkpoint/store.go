package checkpoint

import (
	"bufio"
	"bytes"
	"cmp"
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"path/filepath"
	"slices"
	"strings"

	"github.com/xtts-host/xtts-host/host/base/disk"
	"github.com/xtts-host/xtts-host/host/base/rundir"
)

// Store keeps the checkpoints of one run. One process at a time may save to and prune it, from one goroutine; any
// number may read.
type Store struct {
	// Reached, if set, is called at each phase of a Save, which waits until it returns. Tests use it to interrupt a run
	// at a chosen phase.
	Reached func(Phase)

	dir    string
	fs     fileSystem
	frozen string // file of frozen weights that this process wrote or verified
}

// Phase names a point of a Save.
type Phase string

// The phases of a Save, in order.
const (
	Begin Phase = "checkpoint-begin"
	// one file of it is durable; four times, once more for averages and for new frozen weights
	Written Phase = "checkpoint-file"
	Publish Phase = "checkpoint-rename" // all are; the folder gets its name next
	Saved   Phase = "checkpoint-saved"
)

func (s *Store) reached(p Phase) {
	if s.Reached != nil {
		s.Reached(p)
	}
}

// NewStore returns the store of a run folder. Nothing is read or made until it is used.
func NewStore(runDir string) *Store {
	return &Store{dir: filepath.Join(runDir, rundir.Checkpoints), fs: folderFS(runDir)}
}

// Save writes the checkpoint of state.Step and returns its folder. It returns when the checkpoint is durable. If it
// fails, or the process dies, earlier checkpoints are unchanged. Saving an identical checkpoint again changes nothing;
// another state of the same step replaces the old one. params may hold averages (Tensor.Average) as well. A cancelled
// ctx stops a save between two tensors. Save removes the leftovers of a save that was killed. Frozen weights are
// written once for all checkpoints of the run. The error for a full disk is a *disk.FullError.
func (s *Store) Save(ctx context.Context, state State, params, moments []Tensor) (string, error) {
	path := s.Path(state.Step)
	s.reached(Begin)
	if err := s.save(ctx, path, state, params, moments); err != nil {
		return "", disk.Explain(fmt.Errorf("save checkpoint %s: %w", path, err), path, size(params)+size(moments))
	}
	s.reached(Saved)
	return path, nil
}

// file is one of a checkpoint.
type file struct {
	name    string
	content func(io.Writer) error
}

func (s *Store) save(ctx context.Context, path string, state State, params, moments []Tensor) (err error) {
	stateJSON, err := state.encode()
	if err != nil {
		return fmt.Errorf("%s: %w", stateFile, err)
	}
	if err := s.prepare(); err != nil {
		return err
	}
	var trained, frozen, averages []Tensor
	for _, t := range params {
		switch {
		case t.Average:
			averages = append(averages, t)
		case t.Frozen:
			frozen = append(frozen, t)
		default:
			trained = append(trained, t)
		}
	}
	written := sums{files: map[string][]byte{}}
	if written.frozen, err = s.saveFrozen(ctx, frozen); err != nil {
		return fmt.Errorf("frozen weights: %w", err)
	}
	tmp := path + tmpSuffix
	defer func() {
		if err != nil {
			s.fs.RemoveAll(tmp) // frees the space now; if it fails, the next save tries again
		}
	}()
	if err := s.fs.MkdirAll(tmp); err != nil {
		return err
	}
	tensors := func(all []Tensor) func(io.Writer) error {
		return func(w io.Writer) error { return writeTensors(w, all) }
	}
	files := []file{
		{paramsFile, tensors(trained)}, {optimizerFile, tensors(moments)},
		{stateFile, func(w io.Writer) error { return writeAll(w, stateJSON) }},
	}
	if len(averages) > 0 {
		files = append(files, file{averageFile, tensors(averages)})
	}
	for _, f := range files {
		if written.files[f.name], err = s.write(ctx, filepath.Join(tmp, f.name), f.content); err != nil {
			return fmt.Errorf("%s: %w", f.name, err)
		}
	}
	manifest := written.encode()
	if _, err := s.write(ctx, filepath.Join(tmp, manifestFile), func(w io.Writer) error {
		return writeAll(w, manifest)
	}); err != nil {
		return fmt.Errorf("%s: %w", manifestFile, err)
	}
	if err := s.fs.SyncDir(tmp); err != nil {
		return err
	}
	s.reached(Publish)
	return s.publish(tmp, path, manifest)
}

// Suffixes of folders that are not checkpoints: one that is being written or removed, and an old checkpoint that a new
// one of the same step is about to replace.
const (
	tmpSuffix = ".tmp"
	oldSuffix = rundir.Old
)

// prepare makes the folder of checkpoints durable and clears it.
func (s *Store) prepare() error {
	if err := s.fs.MkdirAll(s.dir); err != nil {
		return err
	}
	if err := s.fs.SyncDir(filepath.Dir(s.dir)); err != nil {
		return err
	}
	return s.clear()
}

// Clean finishes a Save or Prune that was killed. A resumed run needs it: it may have nothing left to save.
func (s *Store) Clean() error {
	if err := s.clear(); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("clean checkpoints: %w", err)
	}
	return nil
}

func (s *Store) clear() error {
	names, err := s.fs.ReadDir(s.dir)
	if err != nil {
		return err
	}
	for _, name := range names {
		suffix := filepath.Ext(name)
		main := strings.TrimSuffix(name, suffix)
		if _, ok := rundir.ParseStep(main); !ok && !(isFrozen(main) && suffix == tmpSuffix) {
			continue // not ours
		}
		path := filepath.Join(s.dir, name)
		switch {
		case suffix == tmpSuffix, suffix == oldSuffix && slices.Contains(names, main):
			err = s.fs.RemoveAll(path)
		case suffix == oldSuffix: // what was to replace it has not come
			err = s.fs.Rename(path, filepath.Join(s.dir, main))
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// publish gives a finished folder its final name. An old checkpoint of the same step is moved aside first and removed
// last, so one of the two always exists.
func (s *Store) publish(tmp, path string, manifest []byte) error {
	names, err := s.fs.ReadDir(s.dir)
	if err != nil {
		return err
	}
	replaces := slices.Contains(names, filepath.Base(path))
	if replaces {
		if s.holds(path, manifest) {
			return s.fs.RemoveAll(tmp)
		}
		if err := s.fs.Rename(path, path+oldSuffix); err != nil {
			return err
		}
	}
	if err := s.fs.Rename(tmp, path); err != nil {
		return err
	}
	if err := s.fs.SyncDir(s.dir); err != nil {
		return err
	}
	if replaces {
		return s.fs.RemoveAll(path + oldSuffix)
	}
	return nil
}

// holds reports whether the checkpoint at path is intact and has this MANIFEST.
func (s *Store) holds(path string, manifest []byte) bool {
	c, err := load(s.fs, path)
	if err != nil {
		return false
	}
	defer c.Close()
	return bytes.Equal(c.manifest, manifest)
}

// write makes a file durable and returns its SHA-256.
func (s *Store) write(ctx context.Context, path string, content func(io.Writer) error) (sum []byte, err error) {
	f, err := s.fs.Create(path)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, f.Close()) }()
	buf := bufio.NewWriterSize(f, 64<<10) // joins small tensors; large ones are written without a copy
	hash := sha256.New()
	if err := content(cancelWriter{ctx, io.MultiWriter(buf, hash)}); err != nil {
		return nil, err
	}
	if err := buf.Flush(); err != nil {
		return nil, err
	}
	if err := f.Sync(); err != nil {
		return nil, err
	}
	s.reached(Written)
	return hash.Sum(nil), nil
}

// cancelWriter fails once its context is over.
type cancelWriter struct {
	ctx context.Context
	w   io.Writer
}

func (c cancelWriter) Write(p []byte) (int, error) {
	if err := context.Cause(c.ctx); err != nil {
		return 0, err
	}
	return c.w.Write(p)
}

func writeAll(w io.Writer, data []byte) error {
	_, err := w.Write(data)
	return err
}

// Prune removes the oldest checkpoints until keep are left; 0 or less keeps all. The checkpoints at the given paths,
// for example the best one, are kept as well and not counted. Frozen weights are removed with the last checkpoint that
// shares them.
func (s *Store) Prune(keep int, paths ...string) error {
	if keep <= 0 {
		return nil
	}
	if err := s.clear(); errors.Is(err, fs.ErrNotExist) {
		return nil
	} else if err != nil {
		return fmt.Errorf("prune checkpoints: %w", err)
	}
	found, err := s.list()
	if err != nil {
		return fmt.Errorf("prune checkpoints: %w", err)
	}
	var removed []string
	for _, path := range found {
		switch {
		case slices.Contains(paths, path):
		case keep > 0:
			keep--
		default:
			removed = append(removed, path)
		}
	}
	if err := errors.Join(s.remove(removed), s.sweep()); err != nil {
		return fmt.Errorf("prune checkpoints: %w", err)
	}
	return nil
}

// remove renames the folders durably before it deletes their files, so that a checkpoint whose removal was interrupted
// does not look damaged.
func (s *Store) remove(paths []string) error {
	if len(paths) == 0 {
		return nil
	}
	for _, path := range paths {
		if err := s.fs.Rename(path, path+tmpSuffix); err != nil {
			return err
		}
	}
	if err := s.fs.SyncDir(s.dir); err != nil {
		return err
	}
	for _, path := range paths {
		if err := s.fs.RemoveAll(path + tmpSuffix); err != nil {
			return err
		}
	}
	return nil
}

// list returns the folders of checkpoints, intact or not, the newest first. A checkpoint that was moved aside comes
// after the one that replaces it.
func (s *Store) list() ([]string, error) {
	names, err := s.fs.ReadDir(s.dir)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	var found []string
	for _, name := range names {
		if _, ok := rundir.StepOf(name); ok {
			found = append(found, filepath.Join(s.dir, name))
		}
	}
	slices.SortFunc(found, func(a, b string) int {
		stepA, _ := rundir.StepOf(filepath.Base(a))
		stepB, _ := rundir.StepOf(filepath.Base(b))
		return cmp.Or(cmp.Compare(stepB, stepA), cmp.Compare(a, b))
	})
	return found, nil
}

// Kept returns the path of a step's checkpoint. If that does not exist, because the disk was full when it was the best,
// Kept returns the oldest checkpoint: Prune has kept it as the best that was saved. Kept returns "" if there is none.
func (s *Store) Kept(step int64) string {
	path := s.Path(step)
	found, err := s.list()
	if err != nil || len(found) == 0 {
		return ""
	}
	if slices.Contains(found, path) {
		return path
	}
	return found[len(found)-1] // the newest comes first
}

// Path returns the folder of a step's checkpoint, whether there is one or not.
func (s *Store) Path(step int64) string {
	return filepath.Join(s.dir, rundir.Step(step))
}
