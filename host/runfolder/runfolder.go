// Package runfolder locks the run folder: only one process at a time writes to it.
package runfolder

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"syscall"
	"time"

	"github.com/xtts-host/xtts-host/host/config"
	"github.com/xtts-host/xtts-host/host/exit"
	"github.com/xtts-host/xtts-host/host/report"
	"github.com/xtts-host/xtts-host/shared/hint"
)

// Folder is the folder of a run, which this process alone writes to. The lock goes with the process, however it ends.
type Folder struct {
	Path string
	made bool     // by this process
	Log  *os.File // log.jsonl, locked
}

// Claim makes the folder of a new run, or takes that of the run to go on with, and locks it. Whoever does not
// get the lock leaves the folder as it is.
func Claim(set *config.Set, now time.Time) (*Folder, error) {
	switch {
	case set.Resume != "":
		return lock(set.Resume, false)
	case set.RunDir != "":
		return claimNamed(set.RunDir)
	}
	return claimDated(filepath.Join("runs", now.UTC().Format("20060102T150405Z")))
}

// claimNamed takes the folder that --run-dir names, which must hold no run.
func claimNamed(dir string) (*Folder, error) {
	for {
		made, err := makeFolder(dir)
		if errors.Is(err, fs.ErrExist) {
			err = os.MkdirAll(dir, 0o777) // an error where it is no folder
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
		if _, err := os.Stat(filepath.Join(dir, report.MetricsFile)); err == nil {
			f.Close(false)
			return nil, exit.Refused(hint.Errorf("go on with it by --resume "+hint.Path(dir)+", or name another folder", "--run-dir %s: there is a run in it", dir))
		}
		return f, nil
	}
}

// claimDated makes a folder of that name, with a number after it when a run of the same second has it.
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

// makeFolder makes the folder and its parents. made is true for the one process that made the folder itself; the
// error for the others is fs.ErrExist.
func makeFolder(dir string) (made bool, err error) {
	if err = os.MkdirAll(filepath.Dir(dir), 0o777); err == nil {
		err = os.Mkdir(dir, 0o777)
	}
	return err == nil, err
}

// lock opens the log of a folder and locks it.
func lock(dir string, made bool) (*Folder, error) {
	path := filepath.Join(dir, report.LogFile)
	f, err := os.OpenFile(path, os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o666)
	if err != nil {
		return nil, fmt.Errorf("log: %w", err)
	}
	if err := syscall.Flock(int(f.Fd()), syscall.LOCK_EX|syscall.LOCK_NB); err != nil {
		f.Close()
		return nil, exit.Refused(hint.Errorf("wait for it, or stop it with Ctrl-C", "%s: another process is training in this folder", dir))
	}
	// The folder may have been removed between the two, and even made anew: then the lock is that of a file which no
	// one else can open.
	locked, err := f.Stat()
	if err == nil {
		var there fs.FileInfo
		if there, err = os.Stat(path); err == nil && !os.SameFile(locked, there) {
			err = fs.ErrNotExist
		}
	}
	if err != nil {
		f.Close()
		return nil, fmt.Errorf("log: %w", err)
	}
	return &Folder{Path: dir, made: made, Log: f}, nil
}

// Close gives the folder up. With remove, a folder that this process made is removed, before its lock.
func (f *Folder) Close(remove bool) error {
	var err error
	if remove && f.made {
		err = removeFolder(f.Path)
	}
	return errors.Join(err, f.Log.Close())
}

// removeFolder first moves the folder to a name of its own: from then on another start makes a folder anew, and no
// file of that start is removed with this one.
func removeFolder(dir string) error {
	away, err := os.MkdirTemp(filepath.Dir(dir), ".removed-")
	if err != nil {
		return err
	}
	err = os.Rename(dir, filepath.Join(away, filepath.Base(dir)))
	// A start that found the folder before the move may still make its log there, see that it has been moved, and try
	// again.
	for range 10 {
		removed := os.RemoveAll(away)
		if !errors.Is(removed, syscall.ENOTEMPTY) {
			return errors.Join(err, removed)
		}
	}
	return errors.Join(err, fmt.Errorf("%s: other processes write to it", away))
}
