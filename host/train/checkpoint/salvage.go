package checkpoint

import (
	"errors"
	"fmt"
	"path/filepath"
	"strings"

	"github.com/xtts-host/xtts-host/ortgraphs/safetensors"
	"github.com/xtts-host/xtts-host/shared/hint"
)

// salvage says what can still be used of a damaged checkpoint: a file of weights from which a new run can start. It
// returns "" if there is none. shown is the path as the user has it.
func salvage(fsys fileSystem, path, shown string) string {
	_, want, unknown := readManifest(fsys, path)
	for _, f := range []struct{ name, what string }{
		{paramsFile, "its weights are"}, {averageFile, "the average of its weights is"},
	} {
		file, state := filepath.Join(path, f.name), "intact"
		r, err := fsys.Open(file)
		if err != nil {
			continue
		}
		if _, err = safetensors.NewReader(r, r.Size()); err == nil {
			if unknown == nil {
				err = verify(r, r.Size(), want.files[f.name])
			} else {
				state = "readable, though nothing proves that they are what was saved"
			}
		}
		r.Close()
		if err != nil {
			continue
		}
		text := fmt.Sprintf("%s %s: a new run starts from them with --init %s", f.what, state,
			hint.Path(filepath.Join(shown, f.name)))
		if f.name == averageFile {
			text = fmt.Sprintf("%s %s: a new run starts from it with --init %s", f.what, state,
				hint.Path(filepath.Join(shown, f.name)))
		}
		if want.frozen != nil {
			text += " (it has those that were trained; the others are the bundle's)"
		}
		return text
	}
	return ""
}

// mend adds to the error about a damaged checkpoint what can still be used: other checkpoints of its run by name, and
// its weights.
func mend(s *Store, path, shown string, err error) error {
	if !errors.Is(err, ErrDamaged) {
		return err
	}
	var advice []string
	if step, ok := s.intact(path); ok {
		name := fmt.Sprintf("%s@%d", filepath.Dir(filepath.Dir(shown)), step)
		advice = append(advice, "the newest intact checkpoint of the run is "+hint.Path(name))
	}
	if text := salvage(s.fs, path, shown); text != "" {
		advice = append(advice, text)
	}
	if len(advice) == 0 {
		advice = append(advice, "copy an intact checkpoint into that folder, or start a new run")
	}
	return hint.Errorf(strings.Join(advice, "; "), "%w", err)
}

// intact returns the step of the newest intact checkpoint other than that of a path.
func (s *Store) intact(path string) (step int64, ok bool) {
	found, err := s.list()
	if err != nil {
		return 0, false
	}
	for _, other := range found {
		if other == path {
			continue
		}
		if c, err := read(s.fs, other); err == nil {
			defer c.Close()
			return c.State.Step, true
		}
	}
	return 0, false
}
