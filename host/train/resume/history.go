package resume

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"
	"slices"
	"strings"

	"github.com/xtts-host/xtts-host/host/base/disk"
	"github.com/xtts-host/xtts-host/host/base/files"
	"github.com/xtts-host/xtts-host/host/base/rundir"
	"github.com/xtts-host/xtts-host/host/base/visible"
	"github.com/xtts-host/xtts-host/host/observe/report"
)

// maxHistory bounds what is read of the record, in bytes.
const maxHistory = 16 << 20

// ReadHistory reads the changes of a run: those of settings that --allow named.
func ReadHistory(folder string) ([]report.Change, error) {
	path := filepath.Join(folder, rundir.ChangesFile)
	data, err := files.At(path).Read(maxHistory)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	var out []report.Change
	for line := range bytes.Lines(data) {
		var c report.Change
		if err := json.Unmarshal(line, &c); err != nil {
			return nil, fmt.Errorf("%s: line %d: %w", path, len(out)+1, err)
		}
		out = append(out, c)
	}
	return out, nil
}

// merge adds the changes that are made at a step to those before it. A change of the same step stays when the run still
// has its value: it was made before a checkpoint of that step. Later ones are gone with the steps that followed them.
func merge(history []report.Change, d *Decision, now map[string]string) []report.Change {
	out := slices.DeleteFunc(slices.Clone(history), func(h report.Change) bool {
		again := slices.ContainsFunc(d.Changes, func(c Difference) bool { return c.Name == h.Name })
		return h.Step > d.Step || h.Step == d.Step && (again || valueOf(now, h.Name) != h.To)
	})
	for _, c := range d.Changes {
		out = append(out, c.at(d.Step))
	}
	return out
}

// Write replaces the record in a run's folder. A run that never changed has none.
func (d *Decision) Write(folder string) error {
	var b bytes.Buffer
	enc := json.NewEncoder(&b)
	enc.SetEscapeHTML(false)
	for _, c := range d.History {
		if err := enc.Encode(c); err != nil {
			return err
		}
	}
	path := filepath.Join(folder, rundir.ChangesFile)
	if _, err := files.At(path).Lstat(); b.Len() == 0 && errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	return disk.Replace(path, visible.JSON(b.Bytes()))
}

// Comment lists the changes of the run for the top of its config.yaml.
func (d *Decision) Comment() string {
	if len(d.History) == 0 {
		return ""
	}
	var b strings.Builder
	b.WriteString("# Changed during the run\n")
	for _, c := range d.History {
		fmt.Fprintf(&b, "#   at step %d: %s: %s -> %s\n", c.Step, shown(c.Name), shown(c.From), shown(c.To))
	}
	return b.String()
}

// Comparable reports whether the losses of the run can be compared with those before all of its changes. A nil Decision
// has none.
func (d *Decision) Comparable() bool {
	return d == nil || !slices.ContainsFunc(d.History, func(c report.Change) bool {
		name, _, _ := strings.Cut(c.Name, "/")
		return !slices.Contains([]string{"lr", "schedule", "warmup-steps", "min-lr", "weight-decay", "grad-clip"}, name)
	})
}
