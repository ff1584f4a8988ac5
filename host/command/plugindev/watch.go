package plugindev

import (
	"cmp"
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/fsnotify/fsnotify"

	"github.com/xtts-host/xtts-host/host/base/files"
	"github.com/xtts-host/xtts-host/shared/manifest"
)

const (
	quiet   = 80 * time.Millisecond // without an event, after which a change is complete: editors write in bursts
	longest = time.Second           // of a burst
	// largest is the size of the largest file that is read to see whether it has changed.
	largest = 16 << 20
	// mostAlone is how many turns in a row a file starts that changes in builds alone.
	mostAlone = 3
)

// watcher watches the sources of a plugin: all files of its folder but hidden ones, caches, what editors leave for a
// moment, and what the build writes.
type watcher struct {
	dir     string
	notify  *fsnotify.Watcher
	changed chan struct{} // has room for one: something is pending
	ended   chan struct{}

	mu      sync.Mutex // guards the rest
	outputs map[string]bool
	seen    map[string][sha256.Size]byte // the content of each file that is there
	pending map[string]bool              // paths below dir that have changed
	during  map[string]bool              // paths whose last event was while the plugin was built, for the last build
	alone   map[string]int               // how many turns in a row a file has started that changed in builds alone
	err     error                        // why a folder is not watched
	builds  bool                         // now
	built   time.Time
}

// watch starts to watch a folder until ctx ends. Close is still required.
func watch(ctx context.Context, dir string) (*watcher, error) {
	notify, err := fsnotify.NewWatcher()
	if err != nil {
		return nil, err
	}
	w := &watcher{
		dir: dir, notify: notify, changed: make(chan struct{}, 1), ended: make(chan struct{}),
		outputs: map[string]bool{manifest.SumFile: true}, seen: map[string][sha256.Size]byte{},
		pending: map[string]bool{}, during: map[string]bool{}, alone: map[string]int{},
	}
	if _, err := files.At(filepath.Join(dir, "Cargo.toml")).Lstat(); err == nil {
		w.outputs["target"] = true
	}
	if _, err := w.look("."); err != nil {
		notify.Close()
		return nil, err
	}
	go w.run(ctx)
	return w, nil
}

func (w *watcher) close() {
	w.notify.Close()
	<-w.ended
}

// look watches the folders at a path and below it, and returns the files there whose content is another one than when
// they were last looked at, or that have gone. The error says which folders are not watched.
func (w *watcher) look(rel string) (changed []string, err error) {
	w.mu.Lock()
	below := map[string]bool{} // also those that have gone, maybe with their folder
	for file := range w.seen {
		if rel == "." || file == rel || strings.HasPrefix(file, rel+string(filepath.Separator)) {
			below[file] = true
		}
	}
	w.mu.Unlock()
	var failed []error
	filepath.WalkDir(filepath.Join(w.dir, rel), func(path string, entry fs.DirEntry, err error) error {
		rel, _ := filepath.Rel(w.dir, path)
		switch {
		case err != nil:
		case rel != "." && w.ignores(rel):
			if entry.IsDir() {
				return fs.SkipDir
			}
		case entry.IsDir():
			err = w.notify.Add(path)
		default:
			below[rel] = true
		}
		if err != nil && (rel == "." || !errors.Is(err, fs.ErrNotExist)) {
			failed = append(failed, fmt.Errorf("%s is not watched: %w", path, err))
		}
		return nil
	})
	for file := range below {
		if w.differs(file) {
			changed = append(changed, file)
		}
	}
	return changed, errors.Join(failed...)
}

// ignores reports whether a path below the folder is no source.
func (w *watcher) ignores(rel string) bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.outputs[rel] {
		return true
	}
	for _, name := range strings.Split(rel, string(filepath.Separator)) {
		switch {
		case strings.HasPrefix(name, "."), name == "__pycache__", name == "node_modules",
			strings.HasSuffix(name, "~"), strings.HasSuffix(name, ".pyc"), strings.HasSuffix(name, ".swp"),
			strings.HasSuffix(name, ".egg-info"), strings.HasPrefix(name, "#") && strings.HasSuffix(name, "#"),
			name == "4913": // vi tries whether it may write
			return true
		}
	}
	return false
}

// ignore makes paths below the folder no sources.
func (w *watcher) ignore(paths ...string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, path := range paths {
		w.outputs[filepath.Clean(path)] = true
		delete(w.pending, filepath.Clean(path))
	}
}

// differs reports whether a file has another content than when it was last looked at. That of a large file is taken for
// another one when it is written.
func (w *watcher) differs(rel string) bool {
	var sum [sha256.Size]byte // of no file
	path := files.At(filepath.Join(w.dir, rel))
	data, err := path.Read(largest)
	if errors.Is(err, files.ErrTooLarge) {
		var info fs.FileInfo
		if info, err = path.Lstat(); err == nil {
			data = fmt.Append(nil, info.Size(), info.ModTime())
		}
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	was := w.seen[rel]
	if err != nil {
		delete(w.seen, rel)
	} else {
		sum = sha256.Sum256(data)
		w.seen[rel] = sum
	}
	return sum != was
}

// run collects events until there are no more.
func (w *watcher) run(ctx context.Context) {
	defer close(w.ended)
	burst := map[string]bool{}
	var began time.Time
	timer := time.NewTimer(time.Hour)
	defer timer.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case e, ok := <-w.notify.Events:
			if !ok {
				return
			}
			rel, err := filepath.Rel(w.dir, e.Name)
			if err != nil || rel == "." || w.ignores(rel) || e.Op == fsnotify.Chmod {
				continue
			}
			if len(burst) == 0 {
				began = time.Now()
			}
			burst[rel] = true
			w.note(rel)
			timer.Reset(max(0, min(quiet, time.Until(began.Add(longest)))))
		case _, ok := <-w.notify.Errors: // events were lost: look at everything
			if !ok {
				return
			}
			burst["."] = true
			timer.Reset(quiet)
		case <-timer.C:
			w.settle(burst)
			clear(burst)
		}
	}
}

// lateEvents is how long after a build its events may arrive.
const lateEvents = 50 * time.Millisecond

// note remembers whether a file is written while the plugin is built.
func (w *watcher) note(rel string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.builds || time.Since(w.built) < lateEvents {
		w.during[rel] = true
	} else {
		delete(w.during, rel)
	}
}

// building says that a build begins or ends.
func (w *watcher) building(now bool) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.builds = now; now {
		clear(w.during)
	} else {
		w.built = time.Now()
	}
}

// settle looks at what a burst of events is about.
func (w *watcher) settle(burst map[string]bool) {
	var changed []string
	var failed error
	for rel := range burst {
		some, err := w.look(rel)
		changed, failed = append(changed, some...), errors.Join(failed, err)
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	w.err = cmp.Or(w.err, failed)
	for _, rel := range changed {
		if !w.during[rel] || w.alone[rel] < mostAlone {
			w.pending[rel] = true
		}
	}
	if len(w.pending) == 0 && w.err == nil {
		return
	}
	select {
	case w.changed <- struct{}{}:
	default:
	}
}

// take returns what has changed since it was last called, sorted. learned are those of the files that each build seems
// to write: they have changed in the last builds, for which nothing else was the reason. From now on they start a turn
// only when they change between builds, and are sources again when they do. Otherwise there were turns for ever.
func (w *watcher) take() (changed, learned []string, err error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	changed = slices.Sorted(maps.Keys(w.pending))
	edited := slices.ContainsFunc(changed, func(path string) bool { return !w.during[path] })
	maps.DeleteFunc(w.alone, func(path string, turns int) bool {
		return turns < mostAlone && (edited || !w.pending[path]) || w.pending[path] && !w.during[path]
	})
	for _, path := range changed {
		if edited {
			break
		}
		if w.alone[path]++; w.alone[path] == mostAlone {
			learned = append(learned, path)
		}
	}
	clear(w.pending)
	err, w.err = w.err, nil
	return changed, learned, err
}
