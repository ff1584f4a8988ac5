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
	"strconv"
	"strings"

	"github.com/xtts-host/xtts-host/host/disk"
)

// Folder is the name of the folder of checkpoints in a run folder.
const Folder = "checkpoints"

// Store keeps the checkpoints of one run. One process at a time may save to and prune it, from one goroutine;
// any number may read.
type Store struct {
	// Reached, if set, is told how far a Save has come, and the Save waits there until it returns. For tests that
	// break a run at a chosen point.
	Reached func(Phase)

	dir    string
	fs     fileSystem
	frozen string // file of frozen weights that this process wrote or verified
}

// Phase names a point of a Save.
type Phase string

// The phases of a Save, in order.
const (
	Begin   Phase = "checkpoint-begin"
	Written Phase = "checkpoint-file"   // one file of it is durable; four times, once more for new frozen weights
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
	return &Store{dir: filepath.Join(runDir, Folder), fs: osFS{}}
}

// Save writes the checkpoint of state.Step and returns its folder. It returns once the checkpoint is durable;
// when it fails, or the process dies, those saved before are as they were. Saving again what is there already
// changes nothing; another state of the same step replaces it. ctx ends a save between two tensors. Leftovers
// of a save that was killed are removed. Frozen weights are written once for all checkpoints of the run. The error for
// a full disk is a *disk.FullError.
func (s *Store) Save(ctx context.Context, state State, params, moments []Tensor) (string, error) {
	path := s.Path(state.Step)
	s.reached(Begin)
	if err := s.save(ctx, path, state, params, moments); err != nil {
		return "", disk.Explain(fmt.Errorf("save checkpoint %s: %w", path, err), path, size(params)+size(moments))
	}
	s.reached(Saved)
	return path, nil
}

func (s *Store) save(ctx context.Context, path string, state State, params, moments []Tensor) (err error) {
	stateJSON, err := state.encode()
	if err != nil {
		return fmt.Errorf("%s: %w", stateFile, err)
	}
	if err := s.prepare(); err != nil {
		return err
	}
	var trained, frozen []Tensor
	for _, t := range params {
		if t.Frozen {
			frozen = append(frozen, t)
		} else {
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
	for _, f := range []struct {
		name    string
		content func(io.Writer) error
	}{
		{paramsFile, func(w io.Writer) error { return writeTensors(w, trained) }},
		{optimizerFile, func(w io.Writer) error { return writeTensors(w, moments) }},
		{stateFile, func(w io.Writer) error { return writeAll(w, stateJSON) }},
	} {
		if written.files[f.name], err = s.write(ctx, filepath.Join(tmp, f.name), f.content); err != nil {
			return fmt.Errorf("%s: %w", f.name, err)
		}
	}
	manifest := written.encode()
	if _, err := s.write(ctx, filepath.Join(tmp, manifestFile), func(w io.Writer) error { return writeAll(w, manifest) }); err != nil {
		return fmt.Errorf("%s: %w", manifestFile, err)
	}
	if err := s.fs.SyncDir(tmp); err != nil {
		return err
	}
	s.reached(Publish)
	return s.publish(tmp, path, manifest)
}

// Folders that are not a checkpoint yet, or not any more: one being written or removed, and one that
// another of the same step is about to replace.
const (
	tmpSuffix = ".tmp"
	oldSuffix = ".old"
)

// prepare makes the folder of checkpoints, durably, and clears it.
func (s *Store) prepare() error {
	if err := s.fs.MkdirAll(s.dir); err != nil {
		return err
	}
	if err := s.fs.SyncDir(filepath.Dir(s.dir)); err != nil {
		return err
	}
	return s.clear()
}

// Clean finishes what a Save or Prune that was killed had begun: a run that is resumed may have nothing left to save.
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
		if _, ok := parseStep(main); !ok && !(isFrozen(main) && suffix == tmpSuffix) {
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

// publish gives a finished folder its name. A checkpoint of the same step is moved aside, not removed, until
// the new one has its place: at no moment is there neither.
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
	buf := bufio.NewWriterSize(f, 64<<10) // small tensors together; large ones pass by without a copy
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

// Prune removes the oldest checkpoints until keep are left; 0 or less keeps all. Those at the given paths are
// kept too, and not counted: the best one, say. Frozen weights go with the last checkpoint that shares them.
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
	var doomed []string
	for _, path := range found {
		switch {
		case slices.Contains(paths, path):
		case keep > 0:
			keep--
		default:
			doomed = append(doomed, path)
		}
	}
	if err := errors.Join(s.remove(doomed), s.sweep()); err != nil {
		return fmt.Errorf("prune checkpoints: %w", err)
	}
	return nil
}

// remove takes the folders' names away, durably, before their files: one that is half removed must not look
// like a damaged checkpoint.
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

// list returns the folders of checkpoints, intact or not, the newest first. One that was moved aside stands
// behind the one that replaces it.
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
		if _, ok := parseStep(strings.TrimSuffix(name, oldSuffix)); ok {
			found = append(found, filepath.Join(s.dir, name))
		}
	}
	slices.SortFunc(found, func(a, b string) int {
		stepA, _ := parseStep(strings.TrimSuffix(filepath.Base(a), oldSuffix))
		stepB, _ := parseStep(strings.TrimSuffix(filepath.Base(b), oldSuffix))
		return cmp.Or(cmp.Compare(stepB, stepA), cmp.Compare(a, b))
	})
	return found, nil
}

// Kept returns the path of a step's checkpoint or, where it is not there, of the oldest one: when the disk had no room for the
// best, the best that was saved is what Prune has left behind all others. It is "" without any.
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
	return filepath.Join(s.dir, stepName(step))
}

func stepName(step int64) string { return fmt.Sprintf("step-%06d", step) }

// parseStep reads a folder's name. Only what stepName writes is one.
func parseStep(name string) (int64, bool) {
	digits, _ := strings.CutPrefix(name, "step-")
	step, err := strconv.ParseInt(digits, 10, 64)
	return step, err == nil && step >= 0 && stepName(step) == name
}
