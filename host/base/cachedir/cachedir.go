// Package cachedir makes and recognises the folders in which this program keeps what it can compute again. In no other
// folder does it remove what it finds.
//
//	made, err := cachedir.Claim(dir)
//	...
//	if made != cachedir.Foreign { ... } // the folder may be swept
//
// A claimed folder has a CACHEDIR.TAG (bford.info/cachedir, by which programs for backups leave caches out) with a line
// that says whose cache it is. A folder gets one when it is made or empty, or when it is a cache of a version that
// wrote none. A folder that has anything else is refused.
package cachedir

import (
	"bytes"
	"errors"
	"io/fs"
	"path/filepath"
	"strings"
	"time"

	"github.com/xtts-host/xtts-host/host/base/files"
)

// Marker is the name of the file that makes a folder a cache of this program.
const Marker = "CACHEDIR.TAG"

// The lines of a marker: that of the specification, ours, and one for folders that had entries before they had a
// marker.
const (
	standard = "Signature: 8a477f597d28d172789f06886806bc55\n"
	ours     = "# This folder is a cache of xtts-host. It may be deleted at any time.\n"
	older    = "# Entries may be older than this file: xtts-host removes none of them without checking that it wrote " +
		"it.\n"
)

// State is what a folder is.
type State int

// The states of a folder.
const (
	Foreign State = iota // it has files, but no marker: nothing in it may be removed
	Empty                // it is empty or not there, so it may be claimed
	Adopted              // a cache of this program, in which foreign files may be, too
	Own                  // a cache that was empty when it was claimed
)

// ErrForeign means that a folder has files of others and is no cache.
var ErrForeign = errors.New("the folder is not empty, and it is no cache of xtts-host")

// Recognise reports whether a folder without a marker is a cache of a version that wrote none.
type Recognise func(dir string) bool

// Look returns what a folder is, and changes nothing. The error is that of reading the folder.
func Look(dir string, known Recognise) (State, error) {
	for waited := time.Duration(0); ; waited += pause {
		state, err := look(dir, known)
		if state != unfinished || waited >= patience {
			if state == unfinished {
				state = Empty
			}
			return state, err
		}
		time.Sleep(pause)
	}
}

// unfinished is a folder with nothing but an empty marker: another process is writing it, or was killed.
const unfinished State = -1

// The time that another process may take to write a marker.
const (
	pause    = 10 * time.Millisecond
	patience = 500 * time.Millisecond
)

func look(dir string, known Recognise) (State, error) {
	text, missing := readMarker(dir)
	switch {
	case missing == nil && bytes.HasPrefix(text, []byte(standard+ours+older)):
		return Adopted, nil
	case missing == nil && bytes.HasPrefix(text, []byte(standard+ours)):
		return Own, nil
	}
	empty := missing == nil && len(text) == 0
	names, err := files.In(dir).ReadDir()
	switch {
	case errors.Is(err, fs.ErrNotExist), err == nil && len(names) == 0:
		return Empty, nil
	case err != nil:
		return Foreign, err
	case empty && len(names) == 1:
		return unfinished, nil
	case known != nil && known(dir):
		return Adopted, nil
	}
	// another process has claimed the folder since
	if now, err := readMarker(dir); err == nil && (missing != nil || !bytes.Equal(now, text)) {
		return look(dir, known)
	}
	return Foreign, nil
}

// readMarker reads the marker, which is never reached through a link.
func readMarker(dir string) ([]byte, error) { return files.In(dir, Marker).Read(4 << 10) }

// Claim makes a folder a cache: it makes the folder and the marker where they are missing. The error is ErrForeign for
// a folder that may not become one. Otherwise it is that of the file system; then nothing in the folder may be removed.
func Claim(dir string, known Recognise) (State, error) {
	state, err := Look(dir, known)
	switch {
	case err != nil:
		return Foreign, err
	case state == Foreign:
		return Foreign, ErrForeign
	case state == Own:
		return Own, nil
	}
	text := standard + ours
	if state == Adopted {
		if _, err := files.In(dir, Marker).Lstat(); err == nil {
			return Adopted, nil
		}
		text += older
	}
	if err := files.In(dir).MkdirAll(); err != nil {
		return Foreign, err
	}
	if err := writeMarker(dir, text); err != nil {
		return Foreign, err
	}
	// Another process may have claimed the folder at the same time, or put something else into it.
	state, err = Look(dir, nil)
	if err == nil && state == Foreign {
		err = ErrForeign
	}
	return state, err
}

// writeMarker makes the marker, unless it is there. An empty one is of a process that was killed.
func writeMarker(dir, text string) error {
	f, err := files.In(dir, Marker).Append()
	if err != nil {
		return err
	}
	if f.Size() == 0 {
		_, err = f.Write([]byte(text)) // of processes that do this at the same time, the text of the first counts
	}
	return errors.Join(err, f.Close())
}

// Named returns a Recognise for a folder whose entries all have known names, and at least one of which proves that this
// program made it.
func Named(expected func(name string) bool, proof func(dir string) bool) Recognise {
	return func(dir string) bool {
		entries, err := files.In(dir).ReadDir()
		if err != nil {
			return false
		}
		for _, e := range entries {
			if name := e.Name(); !expected(name) && !strings.HasPrefix(name, ".nfs") {
				return false
			}
		}
		return proof(dir)
	}
}

// Below names a folder in a foreign one that can become a cache.
func Below(dir string) string {
	for _, name := range []string{"xtts-host", "xtts-host-cache"} {
		path := filepath.Join(dir, name)
		if state, err := Look(path, nil); err == nil && state != Foreign {
			return path
		}
	}
	return filepath.Join(dir, "cache-of-xtts-host")
}
