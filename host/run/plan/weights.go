package plan

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"github.com/xtts-host/xtts-host/host/base/rundir"
	"github.com/xtts-host/xtts-host/host/base/units"
	"github.com/xtts-host/xtts-host/host/base/visible"
	"github.com/xtts-host/xtts-host/host/settings/config"
	"github.com/xtts-host/xtts-host/host/train/checkpoint"
	"github.com/xtts-host/xtts-host/ortgraphs"
	"github.com/xtts-host/xtts-host/ortgraphs/safetensors"
)

// Weights is a safetensors file with initial weights.
type Weights struct {
	checkpoint.Weights
	io.Closer
	Path    string
	damaged []checkpoint.Skipped // newer checkpoints of the same run
}

// openWeights opens a safetensors file, the folder of a checkpoint or bundle, or a run folder: then the newest
// checkpoint that is intact. It verifies a checkpoint as for a resumed run.
func openWeights(from string) (*Weights, error) {
	from, at := config.SplitRun(from)
	info, err := os.Stat(from)
	if err != nil {
		return nil, err
	}
	if info.IsDir() {
		if _, err := os.Stat(filepath.Join(from, rundir.Checkpoints)); err == nil {
			c, damaged, err := checkpoint.NewStore(from).Find(at)
			if err != nil {
				return nil, err
			}
			return &Weights{c.Weights, c, c.Path, damaged}, nil
		}
		if at != "" {
			return nil, fmt.Errorf("%s has no checkpoints, so there is no @%s", from, at)
		}
		c, err := checkpoint.Load(from)
		if err == nil {
			return &Weights{c.Weights, c, c.Path, nil}, nil
		}
		if !errors.Is(err, fs.ErrNotExist) { // otherwise it is not a checkpoint, because files are missing
			return nil, err
		}
		from = filepath.Join(from, ortgraphs.WeightsFile)
	}
	f, err := safetensors.Open(from)
	if err != nil {
		return nil, err
	}
	return &Weights{checkpoint.Weights{f.Reader}, f, from, nil}, nil
}

// Match lists the tensors by the result of loading them.
type Match struct {
	Taken, Reshaped, Missing, Unused []string
	damaged                          []checkpoint.Skipped
}

// Into loads the tensors that have the same name and shape; the others keep their values.
func (w *Weights) Into(tensors []checkpoint.Tensor) (Match, error) {
	m := Match{damaged: w.damaged}
	wanted := map[string]bool{}
	for _, t := range tensors {
		wanted[t.Name] = true
		from, ok := w.Tensor(t.Name)
		switch {
		case !ok:
			m.Missing = append(m.Missing, t.Name)
		case !t.Fits(from):
			m.Reshaped = append(m.Reshaped,
				fmt.Sprintf("%s (%s%v there, F32%v here)", t.Name, from.DType, from.Shape, t.Shape))
		default:
			if err := w.Read(t.Name, t.Data); err != nil {
				return m, err
			}
			m.Taken = append(m.Taken, t.Name)
		}
	}
	for _, t := range w.Tensors() {
		if !wanted[t.Name] {
			m.Unused = append(m.Unused, t.Name)
		}
	}
	return m, nil
}

// Text describes the match for the console. It shortens lists of names; log.jsonl has the complete lists.
func (m Match) Text(path string) string {
	const shown = 5
	var b strings.Builder
	visible.Fprintf(&b, "%-12s %s: %s loaded\n", "weights", path, units.Count(len(m.Taken), "tensor"))
	for _, d := range m.damaged {
		visible.Fprintf(&b, "%-12s %s is damaged and skipped: %v\n", "", d.Path, d.Err)
	}
	for _, l := range []struct {
		what  string
		names []string
	}{
		{"not loaded: other shape or type", m.Reshaped}, {"not in the file: the bundle's values are kept", m.Missing},
		{"in the file, but not in the bundle", m.Unused},
	} {
		if len(l.names) == 0 {
			continue
		}
		more := ""
		if n := len(l.names) - shown; n > 0 {
			more = fmt.Sprintf(" and %d more", n)
		}
		visible.Fprintf(&b, "%-12s %d %s: %s%s\n", "", len(l.names), l.what,
			strings.Join(l.names[:min(shown, len(l.names))], ", "), more)
	}
	return b.String()
}
