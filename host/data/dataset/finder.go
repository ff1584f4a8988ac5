package dataset

import (
	"errors"
	"io/fs"
	"sync"
)

// maxFiles bounds the files that are remembered: few lists alternate between more recordings.
const maxFiles = 4096

// finder finds the recordings of a list. It reads each header once, although a list may have thousands of clips of a
// recording.
type finder struct {
	recordings *recordings
	known      []recording // those of the cache
	folders    folders

	mu   sync.Mutex
	seen map[string]*found // by the path in the list
}

// found is the recording at a path.
type found struct {
	once      sync.Once // guards the rest
	path      string    // where it is
	place     int32     // in Index.recordings, -1 for a new one
	recording recording
	err       error
}

func newFinder(r *recordings) *finder {
	return &finder{recordings: r, known: r.all, seen: map[string]*found{}}
}

// find returns the recording at a path, or of another ending if others is set, as it is for all paths of a list or for
// none. It is safe for concurrent use.
func (f *finder) find(path string, others bool) *found {
	f.mu.Lock()
	to, ok := f.seen[path]
	if !ok {
		if len(f.seen) == maxFiles {
			clear(f.seen)
		}
		to = new(found)
		f.seen[path] = to
	}
	f.mu.Unlock()
	to.once.Do(func() { f.look(to, path, others) })
	return to
}

func (f *finder) look(to *found, path string, others bool) {
	var info fs.FileInfo
	if to.path, info, to.err = statAudio(path, others, &f.folders); to.err != nil {
		if errors.Is(to.err, fs.ErrNotExist) {
			f.folders.Missing(path)
		}
		return
	}
	state := StateOf(to.path, info)
	if to.place = f.recordings.find(state); to.place >= 0 {
		to.recording = f.known[to.place]
	} else {
		to.recording, to.err = readHeader(to.path, state)
	}
}
