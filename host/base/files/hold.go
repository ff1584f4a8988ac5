package files

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"math/rand/v2"
	"strconv"

	"github.com/xtts-host/xtts-host/shared/hint"
)

// Held is a file, open to append, that keeps other processes out of its folder until it is closed.
type Held struct {
	*File
	// Instead says what keeps them out on a file system that has no locks; "" on others.
	Instead string

	owner *Path  // of the file that does
	claim []byte // its content
}

// Hold opens a file as Append does, and locks it. The error is an ErrLocked if another process holds it, and an
// fs.ErrNotExist if one has removed it in between. A copy by hard links shares the lock: only its holder makes it a
// file of its own.
func (p Path) Hold() (h *Held, err error) {
	f, err := p.openAppend()
	if err != nil {
		return nil, err
	}
	h = &Held{File: f}
	defer func() {
		if err != nil {
			err = errors.Join(err, h.Close())
		}
	}()
	err = f.Lock()
	switch {
	case errors.Is(err, ErrNoLocks):
		at := p.ownerFile()
		claim, err := at.claim()
		if err != nil {
			return h, err
		}
		h.owner, h.claim, h.Instead = &at, claim,
			fmt.Sprintf("%v; %s keeps other processes out of this folder instead", err, at)
	case err == nil:
		err = p.ownerFile().held()
	}
	if err != nil && !errors.Is(err, ErrNoLocks) {
		return h, err
	}
	// The folder may have been removed in between, and even made again: then the lock is on a file that no one else can
	// open.
	if err = f.Here(p); err != nil {
		return h, err
	}
	h.File, err = f.cut(p)
	return h, err
}

// Close lets other processes in.
func (h *Held) Close() error {
	if h.File == nil {
		return nil
	}
	err := h.File.Close()
	if errors.Is(err, fs.ErrClosed) {
		err = nil
	}
	if h.owner != nil {
		err = errors.Join(err, h.owner.release(h.claim))
		h.owner = nil
	}
	return err
}

// Held returns an ErrLocked if a process holds the file. It changes nothing.
func (p Path) Held() error {
	f, err := p.Open()
	if err != nil {
		return nil // no file, or one that cannot be read: Hold says which
	}
	defer f.Close()
	if err = f.Locked(); errors.Is(err, ErrLocked) {
		return err
	}
	return p.ownerFile().held()
}

// ownerFile is where the holder of p describes itself if there are no locks.
func (p Path) ownerFile() Path { return Path{p.root, p.name + ".owner"} }

// maxOwner bounds an owner's file, in bytes.
const maxOwner = 4 << 10

// held returns an ErrLocked if the process that an owner's file names holds it, or may do so.
func (p Path) held() error {
	data, err := p.Read(maxOwner)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	o, here := parseOwner(data), thisProcess()
	o.Hold = ""
	alive, known := o.lives(here)
	switch {
	case o == here, known && !alive:
		return nil
	case known:
		return &fs.PathError{Op: "lock", Path: p.String(), Err: ErrLocked}
	}
	return hint.Errorf("wait for that process; if it has ended, remove "+hint.Path(p.String()),
		"%w: %s, which cannot be seen from here", &fs.PathError{Op: "lock", Path: p.String(), Err: ErrLocked}, o)
}

// claim makes the owner's file of this process, in place of one of a process that has ended, and returns its content.
func (p Path) claim() ([]byte, error) {
	if err := p.held(); err != nil {
		return nil, err
	}
	before, err := p.Read(maxOwner)
	if err == nil {
		// Moved away, and looked at again: another process may have claimed it in between.
		away := p.away()
		if err := p.Rename(away); err != nil {
			return nil, err
		}
		if now, err := away.Read(maxOwner); err != nil || string(now) != string(before) {
			return nil, errors.Join(&fs.PathError{Op: "lock", Path: p.String(), Err: ErrLocked}, err, away.Rename(p))
		}
		if err := away.Remove(); err != nil {
			return nil, err
		}
	} else if !errors.Is(err, fs.ErrNotExist) {
		return nil, err
	}
	f, err := p.New()
	if errors.Is(err, fs.ErrExist) {
		return nil, &fs.PathError{Op: "lock", Path: p.String(), Err: ErrLocked}
	}
	if err != nil {
		return nil, err
	}
	o := thisProcess()
	o.Hold = strconv.FormatUint(rand.Uint64(), 36)
	content := o.format()
	_, err = f.Write(content)
	return content, errors.Join(err, f.Close())
}

// away is where the owner's file of a process that has ended is moved. After a kill, Sweep removes it.
func (p Path) away() Path { return p.Parent().Join(draftName(p.Base())) }

// release removes an owner's file if it still has what this hold wrote: after the folder was removed, this process may
// hold one that was made anew.
func (p Path) release(claim []byte) error {
	now, err := p.Read(maxOwner)
	if errors.Is(err, fs.ErrNotExist) || err == nil && !bytes.Equal(now, claim) {
		return nil
	}
	if err != nil {
		return err
	}
	return p.Remove()
}
