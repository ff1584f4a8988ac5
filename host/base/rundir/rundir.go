// Package rundir names the checkpoints in a run folder. It reads no checkpoint, so that settings can name one.
package rundir

import (
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"github.com/xtts-host/xtts-host/host/base/files"
)

// Checkpoints is the name of the folder of checkpoints in a run folder.
const Checkpoints = "checkpoints"

// Names of checkpoints other than their steps.
const (
	Best = "best" // of the best evaluation
	Last = "last" // the newest that is intact
)

// Old ends the name of a checkpoint's folder while another state of the same step takes its place.
const Old = ".old"

// Step is the name of a folder for what belongs to a step.
func Step(step int64) string { return fmt.Sprintf("step-%06d", step) }

// ParseStep reads a folder's name. Only what Step writes is one.
func ParseStep(name string) (int64, bool) {
	digits, _ := strings.CutPrefix(name, "step-")
	step, err := strconv.ParseInt(digits, 10, 64)
	return step, err == nil && step >= 0 && Step(step) == name
}

// Steps returns the steps that have a folder in another one, in order. A folder that is not there has none.
func Steps(dir files.Path) (list []int64, err error) {
	entries, err := dir.ReadDir()
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	for _, e := range entries {
		if step, ok := ParseStep(e.Name()); ok && e.IsDir() {
			list = append(list, step)
		}
	}
	slices.Sort(list)
	return list, err
}

// RemoveAfter removes the folders of the steps after one.
func RemoveAfter(dir files.Path, step int64) error {
	all, err := Steps(dir)
	for _, later := range all {
		if later > step {
			err = errors.Join(err, dir.Join(Step(later)).RemoveAll())
		}
	}
	return err
}

// StepOf reads the name of a checkpoint's folder, also of one whose place another takes.
func StepOf(name string) (int64, bool) { return ParseStep(strings.TrimSuffix(name, Old)) }

// HasCheckpoints reports whether a run folder has a checkpoint, intact or not. A folder that is not there has none.
func HasCheckpoints(run string) (bool, error) {
	entries, err := files.In(run, Checkpoints).ReadDir()
	if errors.Is(err, fs.ErrNotExist) {
		return false, nil
	}
	for _, e := range entries {
		if _, ok := StepOf(e.Name()); ok {
			return true, err
		}
	}
	return false, err
}

// IsCheckpoint reports whether a name after RUN@ is that of a checkpoint: Best, Last or a step.
func IsCheckpoint(name string) bool {
	_, err := strconv.ParseUint(name, 10, 63)
	return err == nil || name == Best || name == Last
}

// SplitCheckpoint splits the path RUN/checkpoints/step-001200 into RUN and 1200. run is empty for another path.
func SplitCheckpoint(path string) (run, at string) {
	parent := filepath.Dir(filepath.Clean(path))
	step, ok := ParseStep(filepath.Base(path))
	if !ok || filepath.Base(parent) != Checkpoints {
		return "", ""
	}
	return filepath.Dir(parent), strconv.FormatInt(step, 10)
}
