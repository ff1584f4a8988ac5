package checkpoint

import (
	"bytes"
	"crypto/sha256"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"path/filepath"
	"slices"
	"strings"

	"github.com/xtts-host/xtts-host/host/base/files"
	"github.com/xtts-host/xtts-host/host/base/rundir"
	"github.com/xtts-host/xtts-host/ortgraphs/safetensors"
	"github.com/xtts-host/xtts-host/shared/hint"
)

var (
	// ErrNone says that a run has no checkpoint that can be loaded.
	ErrNone = errors.New("no intact checkpoint")
	// ErrDamaged says that a checkpoint is not what was saved.
	ErrDamaged = errors.New("damaged checkpoint")
)

// Bounds of state.json and MANIFEST, in bytes. A row of the quarantine takes about 150 bytes, and the host cuts it to
// about 1,000, so at least 60,000 rows fit. Save refuses larger files as well.
const (
	maxState    = 64 << 20
	maxManifest = 4 << 10
)

// Checkpoint is one that was loaded and verified. Its weights and moments stay in their files, which are open
// until Close. It is safe for concurrent use.
type Checkpoint struct {
	// Path is its folder.
	Path  string
	State State
	// Weights reads params.safetensors and, of a run that freezes some, the frozen weights. Moments reads
	// optimizer.safetensors.
	Weights Weights
	Moments *safetensors.Reader
	// Averages reads ema.safetensors; nil for a run that does not average its weights.
	Averages *safetensors.Reader

	manifest []byte
	files    []io.Closer
}

// Skipped is a checkpoint that Latest could not load. Err does not name it.
type Skipped struct {
	Path string
	Err  error
	fs   fileSystem
}

// Error gives the folder's name and the reason, as in "step-000008: MANIFEST is missing".
func (s Skipped) Error() string { return filepath.Base(s.Path) + ": " + s.Err.Error() }
func (s Skipped) Unwrap() error { return s.Err }

// Warning is a line about it: that it is skipped, and what can still be used of it.
func (s Skipped) Warning() string {
	text := "damaged checkpoint skipped"
	if s.fs != nil {
		if usable := salvage(s.fs, s.Path, s.Path); usable != "" {
			text += "; " + usable
		}
	}
	return text
}

// damage is an ErrDamaged whose message is only the reason. The function that returns it to the caller names what is
// damaged.
type damage struct{ error }

func (d damage) Unwrap() []error { return []error{ErrDamaged, d.error} }

// Latest loads the newest intact checkpoint. It also returns the damaged ones that are newer, newest first, even with
// an error, so that the caller can report them. The error is an ErrNone when no intact checkpoint is left. Latest
// changes nothing, so it may read the folder of another run.
func (s *Store) Latest() (*Checkpoint, []Skipped, error) {
	found, err := s.list()
	if err != nil {
		return nil, nil, err
	}
	var skipped []Skipped
	for _, path := range found {
		c, err := read(s.fs, path)
		if err == nil {
			return c, skipped, nil
		}
		// it may be intact, and an older one is not what was asked for
		if files.OfMachine(err) || errors.Is(err, files.ErrLink) {
			return nil, nil, loading(path, err)
		}
		skipped = append(skipped, Skipped{Path: path, Err: err, fs: s.fs})
	}
	if len(skipped) > 0 {
		const shown = 5
		var reasons []error
		for _, s := range skipped[:min(shown, len(skipped))] {
			reasons = append(reasons, s)
		}
		if n := len(skipped) - shown; n > 0 {
			reasons = append(reasons, fmt.Errorf("and %d more", n))
		}
		advice := "copy an intact checkpoint into that folder, or start a new run"
		for _, damaged := range skipped {
			if text := salvage(s.fs, damaged.Path, damaged.Path); text != "" {
				advice = fmt.Sprintf("copy an intact checkpoint into that folder; of %s, %s",
					filepath.Base(damaged.Path), text)
				break
			}
		}
		return nil, skipped, hint.Errorf(advice,
			"%w", errors.Join(slices.Insert(reasons, 0,
				fmt.Errorf("%s: %w among %d%s", s.dir, ErrNone, len(skipped), ":"))...))
	}
	return nil, nil, hint.Errorf("the run has no checkpoint: start a new run", "%s: %w", s.dir, ErrNone)
}

// Load loads the checkpoint in a folder and verifies every byte of it. The error is an ErrDamaged when a file
// is missing or is not what MANIFEST says. The caller closes the checkpoint.
func Load(path string) (*Checkpoint, error) {
	real, err := filepath.EvalSymlinks(path) // the user named it
	if err != nil {
		return nil, fmt.Errorf("load checkpoint %s: %w", path, err)
	}
	if real, err = filepath.Abs(real); err != nil {
		return nil, fmt.Errorf("load checkpoint %s: %w", path, err)
	}
	c, err := read(folderFS(filepath.Dir(real)), real)
	if err != nil {
		store := NewStore(filepath.Dir(filepath.Dir(real)))
		if filepath.Base(filepath.Dir(real)) != rundir.Checkpoints { // it is in no run
			store = NewStore(real)
		}
		return nil, mend(store, real, filepath.Clean(path), loading(path, err))
	}
	c.Path = path
	return c, nil
}

func load(fsys fileSystem, path string) (*Checkpoint, error) {
	c, err := read(fsys, path)
	if err != nil {
		return nil, loading(path, err)
	}
	return c, nil
}

// loading adds the folder to an error of read.
func loading(path string, err error) error {
	if errors.Is(err, ErrDamaged) {
		return fmt.Errorf("load checkpoint %s: %w: %w", path, ErrDamaged, err)
	}
	return fmt.Errorf("load checkpoint %s: %w", path, err)
}

var errOneAverage = fmt.Errorf(
	"%s and %s: only one of them has a moving average of the weights", stateFile, manifestFile)

// read does what Load does. Its errors do not name the folder.
func read(fsys fileSystem, path string) (_ *Checkpoint, err error) {
	c := &Checkpoint{Path: path}
	defer func() {
		if err != nil {
			c.Close()
		}
	}()
	if _, err := fsys.ReadDir(path); err != nil {
		return nil, err
	}
	open := func(name string) (file readFile, size int64, err error) {
		f, err := fsys.Open(filepath.Join(path, name))
		if err != nil {
			if errors.Is(err, fs.ErrNotExist) {
				err = damage{missing(name)}
			}
			return nil, 0, err
		}
		c.files = append(c.files, f)
		return f, f.Size(), nil
	}
	text, want, err := readManifest(fsys, path)
	if err != nil {
		return nil, err
	}
	c.manifest = text
	for _, name := range want.names() {
		f, size, err := open(name)
		if err != nil {
			return nil, err
		}
		// The header is checked before the whole file is read: the file may have any size.
		var text []byte
		switch name {
		case paramsFile:
			c.Weights = make(Weights, 1)
			c.Weights[0], err = safetensors.NewReader(f, size)
		case optimizerFile:
			c.Moments, err = safetensors.NewReader(f, size)
		case averageFile:
			c.Averages, err = safetensors.NewReader(f, size)
		case stateFile:
			text, err = readText(f, size, maxState)
		}
		if errors.Is(err, safetensors.ErrFormat) {
			err = damage{err}
		}
		if err == nil {
			err = verify(f, size, want.files[name])
		}
		if err == nil && name == stateFile {
			c.State, err = decodeState(text)
		}
		if err != nil {
			return nil, fmt.Errorf("%s: %w", name, err)
		}
	}
	if (c.Averages == nil) != (c.State.EMA == nil) {
		return nil, damage{errOneAverage}
	}
	if want.frozen != nil {
		if err := c.openFrozen(fsys, want.frozen); err != nil {
			return nil, err
		}
	}
	if step, ok := rundir.ParseStep(filepath.Base(path)); ok && step != c.State.Step {
		return nil, damage{fmt.Errorf("%s: step %d", stateFile, c.State.Step)}
	}
	return c, nil
}

// missing is the error for a missing file, an fs.ErrNotExist.
type missing string

func (m missing) Error() string { return string(m) + " is missing" }
func (missing) Unwrap() error   { return fs.ErrNotExist }

func verify(f io.ReaderAt, size int64, want []byte) error {
	hash := sha256.New()
	n, err := io.CopyBuffer(hash, io.NewSectionReader(f, 0, size), make([]byte, min(size, 1<<20)+1))
	if err != nil {
		return err
	}
	if n != size || !bytes.Equal(hash.Sum(nil), want) {
		return damage{fmt.Errorf("the SHA-256 of its %d bytes does not match %s", size, manifestFile)}
	}
	return nil
}

func readText(f io.ReaderAt, size, limit int64) ([]byte, error) {
	if size > limit {
		return nil, damage{fmt.Errorf("%d bytes, at most %d are read", size, limit)}
	}
	data := make([]byte, size) // io.ReadAll takes several times the size
	n, err := f.ReadAt(data, 0)
	if err == io.EOF {
		err = nil
	}
	return data[:n], err
}

// Close closes the files. Closing twice is harmless.
func (c *Checkpoint) Close() error {
	var errs []error
	for _, f := range c.files {
		errs = append(errs, f.Close())
	}
	c.files = nil
	return errors.Join(errs...)
}

// Restore fills the tensors with the saved weights and moments. They must be those that were saved, by name and shape,
// no more and no fewer, but for moments of weights that are frozen now; nothing is filled before that is known.
func (c *Checkpoint) Restore(params, moments []Tensor) error {
	if err := agree(Weights{c.Moments}, moments, c.unusedMoments(params)); err != nil {
		return fmt.Errorf("%s: %w", filepath.Join(c.Path, optimizerFile), err)
	}
	if err := c.RestoreWeights(params); err != nil {
		return err
	}
	for _, t := range moments {
		if err := c.Moments.Read(t.Name, t.Data); err != nil {
			return fmt.Errorf("%s: %w", filepath.Join(c.Path, optimizerFile), err)
		}
	}
	return nil
}

// RestoreWeights is Restore for a run whose optimizer starts with an empty state.
func (c *Checkpoint) RestoreWeights(params []Tensor) error {
	err := agree(c.Weights, params, 0)
	for _, t := range params {
		if err == nil {
			err = c.Weights.Read(t.Name, t.Data)
		}
	}
	if err != nil {
		return fmt.Errorf("%s: %w", filepath.Join(c.Path, paramsFile), err)
	}
	return nil
}

// RestoreAverages fills the tensors with the saved averages of their names. The others, of weights that were frozen
// when the checkpoint was saved, keep what they hold.
func (c *Checkpoint) RestoreAverages(averages []Tensor) error {
	for _, t := range averages {
		if saved, ok := c.Averages.Tensor(t.Name); !ok || !t.Fits(saved) {
			continue
		}
		if err := c.Averages.Read(t.Name, t.Data); err != nil {
			return fmt.Errorf("%s: %w", filepath.Join(c.Path, averageFile), err)
		}
	}
	return nil
}

// unusedMoments counts the moments of weights that are frozen: version 1 has them for all weights, and a weight may
// have been frozen since the checkpoint was saved.
func (c *Checkpoint) unusedMoments(params []Tensor) int {
	frozen := map[string]bool{}
	for _, t := range params {
		frozen[t.Name] = t.Frozen
	}
	n := 0
	for _, saved := range c.Moments.Tensors() {
		if _, parameter, _ := strings.Cut(saved.Name, "."); frozen[parameter] {
			n++
		}
	}
	return n
}

// agree compares tensors with the saved ones, of which some may be left over.
func agree(saved Weights, tensors []Tensor, unused int) error {
	for _, t := range tensors {
		s, ok := saved.Tensor(t.Name)
		switch {
		case !ok:
			return fmt.Errorf("no tensor %q", t.Name)
		case !t.Fits(s):
			return fmt.Errorf("tensor %q is %s%v, not %s%v of %d bytes", t.Name, s.DType, s.Shape, t.stored(), t.Shape,
				len(t.Data))
		}
	}
	if n := len(saved.Tensors()) - unused; n != len(tensors) {
		return fmt.Errorf("%d tensors, want %d", n, len(tensors))
	}
	return nil
}
