// Package runfolder locks the run folder: only one process at a time writes to it.
package runfolder

import (
	"errors"
	"fmt"
	"io/fs"
	"math/rand/v2"
	"path/filepath"
	"slices"
	"strconv"
	"syscall"
	"time"

	"github.com/xtts-host/xtts-host/host/base/disk"
	"github.com/xtts-host/xtts-host/host/base/exit"
	"github.com/xtts-host/xtts-host/host/base/files"
	"github.com/xtts-host/xtts-host/host/base/rundir"
	"github.com/xtts-host/xtts-host/host/settings/config"
	"github.com/xtts-host/xtts-host/host/train/checkpoint"
	"github.com/xtts-host/xtts-host/shared/hint"
)

// Folder is the run folder. Only this process writes to it. The lock ends with the process, however that ends.
type Folder struct {
	Path string
	made bool        // by this process
	Log  *files.Held // log.jsonl
}

// Claim creates the folder of a new run, or takes the folder of the run to resume, and locks it. If the lock is taken,
// it changes nothing and returns an error.
func Claim(set *config.Set, now time.Time) (*Folder, error) {
	if err := checkWritable(set); err != nil {
		return nil, exit.Refused(err)
	}
	f, err := claim(set, now)
	_, _, advice := named(set)
	return f, exit.Refused(exit.Advise(err, advice))
}

func claim(set *config.Set, now time.Time) (*Folder, error) {
	switch {
	case set.Resume != "":
		return lock(filepath.Clean(set.Resume), false)
	case set.RunDir != "": // filepath.Dir takes the name before a slash at the end for the folder above
		return claimNamed(filepath.Clean(set.RunDir), set.ResumeOrStart != "")
	}
	return claimDated(filepath.Join(Dated, now.UTC().Format("20060102T150405Z")))
}

// ClaimRank creates the folder of a rank other than the first in that of the run, which rank 0 has claimed, and locks
// it.
func ClaimRank(run string, rank int) (*Folder, error) {
	dir := rundir.RankFolder(run, rank)
	made, err := makeFolder(dir)
	if err != nil && !errors.Is(err, fs.ErrExist) {
		return nil, exit.Refused(hint.Errorf("the run folder must be one that every rank can write",
			"folder of rank %d: %w", rank, err))
	}
	f, err := lock(dir, made)
	return f, exit.Refused(err)
}

// Check returns the error that Claim would return, and changes nothing. It does not notice a process that trains in the
// folder.
func Check(set *config.Set) error {
	if err := checkWritable(set); err != nil {
		return err
	}
	if set.RunDir == "" {
		return nil
	}
	return holdsRun(set.RunDir, set.ResumeOrStart != "")
}

// Dated is the folder of runs without a name.
const Dated = "runs"

// named returns the setting that names the run folder, the folder, and what to do if it cannot be written.
func named(set *config.Set) (setting, dir, advice string) {
	const resumes = "a run writes to its folder: make that possible, or start another run from its weights with --init"
	switch {
	case set.ResumeOrStart != "" && set.Resume != "":
		return "--resume-or-start " + set.ResumeOrStart, set.Resume, resumes
	case set.ResumeOrStart != "":
		return "--resume-or-start " + set.ResumeOrStart, set.RunDir, "name a folder that can be written"
	case set.Resume != "":
		return "--resume " + set.Resume, set.Resume, resumes
	case set.RunDir != "":
		return "--run-dir " + set.RunDir, set.RunDir, "name a folder that can be written"
	}
	return "run folder " + Dated, Dated, "name a folder that can be written with --run-dir"
}

// checkWritable returns an error that names the setting if files cannot be written to the run folder.
func checkWritable(set *config.Set) error {
	setting, dir, advice := named(set)
	if err := disk.CheckFolder(dir); err != nil {
		return hint.Errorf(advice, "%s: %w", setting, err)
	}
	return nil
}

// claimNamed takes the folder of --run-dir, which must not contain a run. With anew it may contain a run that ended
// before its first checkpoint, whose files the new run replaces.
func claimNamed(dir string, anew bool) (*Folder, error) {
	for {
		made, err := makeFolder(dir)
		if errors.Is(err, fs.ErrExist) {
			err = files.In(dir).MkdirAll() // an error if it is not a folder
		}
		if err != nil {
			return nil, fmt.Errorf("run folder: %w", err)
		}
		f, err := lock(dir, made)
		if errors.Is(err, fs.ErrNotExist) {
			continue // removed by another start, which had made it and was refused
		}
		if err != nil {
			return nil, err
		}
		// With the lock: the run of another start may have ended since this one began.
		if err := holdsRun(dir, anew); err != nil {
			f.Close(nil)
			return nil, exit.Refused(err)
		}
		return f, nil
	}
}

// holdsRun returns an error with a hint to resume the run if the folder contains one. With anew, a run without a
// checkpoint does not count.
func holdsRun(dir string, anew bool) error {
	steps, err := checkpoint.NewStore(dir).Steps()
	if err != nil {
		return fmt.Errorf("run folder: %w", err)
	}
	if len(steps) > 0 {
		return hint.Errorf("continue it with --resume "+hint.Path(dir)+", or name another folder",
			"--run-dir %s: there is a run in it", dir)
	}
	if _, err := files.In(dir, rundir.MetricsFile).Lstat(); errors.Is(err, fs.ErrNotExist) || anew {
		return nil
	}
	return hint.Errorf(
		"start it again with --resume-or-start "+hint.Path(dir)+" and the flags that it had, or name another folder",
		"--run-dir %s: there is a run in it that ended before its first checkpoint", dir)
}

// claimDated creates a folder with that name, and appends a number if a run of the same second has it.
func claimDated(name string) (*Folder, error) {
	dir := name
	for n := 2; ; n++ {
		_, err := makeFolder(dir)
		if err == nil {
			return lock(dir, true)
		}
		if !errors.Is(err, fs.ErrExist) {
			return nil, fmt.Errorf("run folder: %w", err)
		}
		dir = fmt.Sprintf("%s-%d", name, n)
	}
}

// makeFolder creates the folder and its parents. made is true for the one process that created the folder itself; the
// others get fs.ErrExist.
func makeFolder(dir string) (made bool, err error) {
	if err = files.In(filepath.Dir(dir)).MkdirAll(); err == nil {
		err = files.At(dir).Mkdir()
	}
	return err == nil, err
}

// lock opens the log of a folder and locks it.
func lock(dir string, made bool) (*Folder, error) {
	log, err := files.In(dir, rundir.LogFile).Hold()
	if errors.Is(err, files.ErrLocked) {
		return nil, exit.Refused(taken(dir+": ", err))
	}
	if err != nil {
		return nil, fmt.Errorf("log: %w", err)
	}
	return &Folder{Path: dir, made: made, Log: log}, nil
}

// taken says that another process trains in a folder. Of one that cannot be seen from here, err has a hint.
func taken(where string, err error) error {
	const text = "%sanother process is training in this folder"
	if advice := hint.Of(err); advice != "" {
		return hint.Errorf(advice, text+": %w", where, err)
	}
	return hint.Errorf("wait for it, or stop it with Ctrl-C", text, where)
}

// Taken returns an error, which does not name the folder, if another process is training in it. It changes nothing.
func Taken(dir string) error {
	if err := files.In(dir, rundir.LogFile).Held(); errors.Is(err, files.ErrLocked) {
		return taken("", err)
	}
	return nil // Claim says what else is wrong
}

// Remake makes the folder and its log anew after they were removed or moved away, and locks them.
func (f *Folder) Remake() error {
	if err := files.In(f.Path).MkdirAll(); err != nil {
		return fmt.Errorf("run folder: %w", err)
	}
	anew, err := lock(f.Path, f.made)
	if err != nil {
		return err
	}
	err = f.Log.Close()
	f.Log = anew.Log
	return err
}

// Close releases the folder of a run that ended with that error. A run that was refused, or stopped before its first
// step, leaves no folder that this process created; it is removed before its lock. The last lines of a plugin and a
// list of bad clips stay.
func (f *Folder) Close(outcome error) error {
	removing := []int{exit.StatusRefused, exit.StatusMemory, exit.StatusRank, exit.StatusInterrupted}
	code := exit.Code(outcome)
	var err error
	if f.made && exit.IsRefusal(outcome) && slices.Contains(removing, code) {
		err = removeFolder(f.Path)
	}
	return errors.Join(err, f.Log.Close())
}

// removeFolder first moves the folder to a unique name: after that, another start creates a new folder, and no file of
// that start is removed.
func removeFolder(dir string) error {
	away := files.In(filepath.Dir(dir), ".removed-"+strconv.FormatUint(rand.Uint64(), 36))
	if err := away.Mkdir(); err != nil {
		return err
	}
	err := files.At(dir).Rename(files.In(filepath.Dir(dir), away.Base(), filepath.Base(dir)))
	// A start that found the folder before the move may still create its log there, notice the move, and try again.
	for range 10 {
		removed := away.RemoveAll()
		if !errors.Is(removed, syscall.ENOTEMPTY) {
			return errors.Join(err, removed)
		}
	}
	return errors.Join(err, fmt.Errorf("%s: other processes write to it", away))
}
