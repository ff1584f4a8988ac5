package files

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"io/fs"
	"math/rand/v2"
	"path/filepath"
	"strconv"
	"strings"
)

// ending is that of files that are not complete.
const ending = ".xtts-partial"

// longestBase is as much of a name as leaves room for the rest of a draft's: names have at most 255 bytes.
const longestBase = 255 - len("..-") - 13 - 8 - len(ending)

// draftName is the name of a file that is to become base. Its last part is a sum of the rest, which no file of another
// program has by chance: only such files are removed.
func draftName(base string) string {
	tag := strconv.FormatUint(rand.Uint64(), 36)
	if len(base) > longestBase {
		base = strings.ToValidUTF8(base[:longestBase], "") // a file system may refuse half a letter
	}
	return "." + base + "." + tag + "-" + draftSum(base, tag) + ending
}

func draftSum(base, tag string) string {
	sum := sha256.Sum256([]byte("draft of xtts-host\n" + base + "\n" + tag))
	return hex.EncodeToString(sum[:4])
}

// isDraft reports whether a name is one of draftName.
func isDraft(name string) bool {
	rest, hidden := strings.CutPrefix(name, ".")
	rest, partial := strings.CutSuffix(rest, ending)
	dot, dash := strings.LastIndexByte(rest, '.'), strings.LastIndexByte(rest, '-')
	return hidden && partial && dot > 0 && dash > dot && rest[dash+1:] == draftSum(rest[:dot], rest[dot+1:dash])
}

// Draft is a file that has another name until Commit: a reader sees the old content or the new one, and after an error
// or a kill the old one stays. Its errors name the file that it is to become.
//
//	d, err := files.At(path).Create()
//	...
//	defer d.Discard() // without effect after Commit
//	... // write to d
//	err = d.Commit()
type Draft struct {
	*File
	at, to Path
	over   bool
}

// Create opens a file that is to replace p, or to become it, in the same folder. It removes what killed processes have
// left there.
func (p Path) Create() (*Draft, error) {
	if info, err := p.Lstat(); err == nil && !info.IsDir() { // in place of a link, the file comes itself
		if err := Check(info); err != nil {
			return nil, &fs.PathError{Op: "open", Path: p.String(), Err: err}
		}
	}
	dir := p.Parent()
	dir.Sweep(func(name string) bool {
		if !isDraft(name) {
			return false
		}
		info, err := dir.Join(name).Lstat()
		return err == nil && info.Mode().IsRegular()
	})
	for {
		at := dir.Join(draftName(filepath.Base(p.name)))
		f, err := at.New()
		if errors.Is(err, fs.ErrExist) {
			continue
		}
		if err != nil {
			return nil, named(err, p.String())
		}
		if err := f.lockHere(at); errors.Is(err, ErrLocked) || errors.Is(err, fs.ErrNotExist) {
			f.Close() // another process has taken it for one that was left, and removes it
			continue
		}
		f.name = p.String()
		return &Draft{File: f, at: at, to: p}, nil // on a file system without locks, Sweep does not remove it either
	}
}

// named makes an error name the file that the caller knows, in place of the temporary one.
func named(err error, name string) error {
	if of, ok := errors.AsType[*fs.PathError](err); ok {
		return &fs.PathError{Op: of.Op, Path: name, Err: of.Err}
	}
	return err
}

// Commit makes the content durable, closes the file and gives it its name. Some file systems report only then that the
// content could not be written, and after the rename that would be too late.
func (d *Draft) Commit() error {
	if err := d.Sync(); err != nil {
		return errors.Join(err, d.Discard())
	}
	f, err := d.Keep()
	if err != nil {
		return err
	}
	return f.Close()
}

// Keep gives the file its name, and returns it, still open and locked.
func (d *Draft) Keep() (*File, error) {
	if err := d.at.Rename(d.to); err != nil {
		return nil, errors.Join(named(err, d.name), d.Discard())
	}
	d.over = true
	return d.File, nil
}

// Discard closes and removes the file, unless Commit or Discard has been called.
func (d *Draft) Discard() error {
	if d.over {
		return nil
	}
	d.over = true
	return errors.Join(d.at.Remove(), d.Close())
}

// Write writes a file with the parts as its content, and makes its folder.
func (p Path) Write(parts ...[]byte) error {
	if err := p.Parent().MkdirAll(); err != nil {
		return err
	}
	d, err := p.Create()
	if err != nil {
		return err
	}
	for _, p := range parts {
		if _, err := d.Write(p); err != nil {
			return errors.Join(err, d.Discard())
		}
	}
	return d.Commit()
}

// Sweep removes the temporary files and folders in p, those of which left returns true, that killed processes have
// left: those that no process has locked. Nothing depends on it, so its errors are not reported.
func (p Path) Sweep(left func(name string) bool) {
	f, err := p.openDir()
	if err != nil {
		return
	}
	defer f.Close()
	names, _ := f.Readdirnames(-1)
	for _, name := range names {
		if !left(name) {
			continue
		}
		at := p.Join(name)
		lock, err := at.LockEntry()
		if err == nil {
			_ = at.RemoveAll()
		}
		if lock != nil {
			lock.Close()
		}
	}
}
