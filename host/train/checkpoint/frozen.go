package checkpoint

import (
	"bytes"
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"path/filepath"
	"slices"
	"strings"

	"github.com/xtts-host/xtts-host/ortgraphs/safetensors"
)

// The name of a file of frozen weights, with its SHA-256 in hex between the two.
const (
	frozenPrefix = "frozen-"
	frozenSuffix = ".safetensors"
)

func frozenName(sum []byte) string { return fmt.Sprintf("%s%x%s", frozenPrefix, sum, frozenSuffix) }

// isFrozen reports whether a name is one that frozenName returns.
func isFrozen(name string) bool {
	digits, ok := strings.CutPrefix(name, frozenPrefix)
	digits, cut := strings.CutSuffix(digits, frozenSuffix)
	return ok && cut && len(digits) == 2*sha256.Size && strings.Trim(digits, "0123456789abcdef") == ""
}

// saveFrozen makes the frozen weights durable, if they are not, and returns their SHA-256; nil when nothing is frozen.
// A file that is there is read and checked once by each process.
func (s *Store) saveFrozen(ctx context.Context, tensors []Tensor) (sum []byte, err error) {
	if len(tensors) == 0 {
		return nil, nil
	}
	hash := sha256.New()
	if err := writeTensors(cancelWriter{ctx, hash}, tensors); err != nil {
		return nil, err
	}
	sum = hash.Sum(nil)
	path := filepath.Join(s.dir, frozenName(sum))
	if has, err := s.hasFrozen(path, sum); has || err != nil {
		return sum, err
	}
	tmp := path + tmpSuffix
	defer func() {
		if err != nil {
			s.fs.RemoveAll(tmp) // frees the space now; if it fails, the next save tries again
		}
	}()
	written, err := s.write(ctx, tmp, func(w io.Writer) error { return writeTensors(w, tensors) })
	if err != nil {
		return nil, err
	}
	if !bytes.Equal(written, sum) {
		return nil, errors.New("frozen weights change while they are saved")
	}
	if err := s.fs.Rename(tmp, path); err != nil {
		return nil, err
	}
	if err := s.fs.SyncDir(s.dir); err != nil {
		return nil, err
	}
	s.frozen = path
	return sum, nil
}

// hasFrozen reports whether a file of frozen weights is there and intact.
func (s *Store) hasFrozen(path string, sum []byte) (bool, error) {
	f, err := s.fs.Open(path)
	if errors.Is(err, fs.ErrNotExist) {
		return false, nil
	}
	if err != nil {
		return false, err
	}
	defer f.Close()
	if s.frozen == path {
		return true, nil
	}
	if err := verify(f, f.Size(), sum); err != nil {
		if errors.Is(err, ErrDamaged) {
			err = nil // the new one replaces it
		}
		return false, err
	}
	// The process that wrote it may have been killed before its name was durable.
	if err := s.fs.SyncDir(s.dir); err != nil {
		return false, err
	}
	s.frozen = path
	return true, nil
}

// openFrozen opens and verifies the frozen weights that a checkpoint shares with others of its run.
func (c *Checkpoint) openFrozen(fsys fileSystem, sum []byte) error {
	name := "../" + frozenName(sum)
	f, err := fsys.Open(filepath.Join(c.Path, name)) // no part of the path is a link
	if errors.Is(err, fs.ErrNotExist) {
		return damage{fmt.Errorf("%w: it holds the frozen weights, next to the checkpoint's folder", missing(name))}
	}
	if err != nil {
		return err
	}
	c.files = append(c.files, f)
	r, err := safetensors.NewReader(f, f.Size())
	if errors.Is(err, safetensors.ErrFormat) {
		err = damage{err}
	}
	if err == nil {
		err = verify(f, f.Size(), sum)
	}
	if err != nil {
		return fmt.Errorf("%s: %w", name, err)
	}
	c.Weights = append(c.Weights, r)
	return nil
}

// sweep removes the frozen weights that no checkpoint shares any more. While a MANIFEST is damaged, none is removed.
func (s *Store) sweep() error {
	names, err := s.fs.ReadDir(s.dir)
	if err != nil {
		return err
	}
	names = slices.DeleteFunc(names, func(name string) bool { return !isFrozen(name) })
	if len(names) == 0 {
		return nil
	}
	found, err := s.list()
	if err != nil {
		return err
	}
	for _, path := range found {
		_, m, err := readManifest(s.fs, path)
		if errors.Is(err, ErrDamaged) {
			return nil
		}
		if err != nil {
			return err
		}
		names = slices.DeleteFunc(names,
			func(name string) bool { return m.frozen != nil && name == frozenName(m.frozen) })
	}
	for _, name := range names {
		if err := s.fs.RemoveAll(filepath.Join(s.dir, name)); err != nil {
			return err
		}
	}
	return nil
}
