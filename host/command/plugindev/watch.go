package plugindev

import (
	"context"
	"crypto/sha256"
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
	// mostAlone is how many turns in a row may be started by what the build alone writes.
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
	seen    map[string][sha256.Size]byte // the content of each file
	pending map[string]bool              // paths below dir that have changed
	during  map[string]bool              // paths below dir that have had events while the plugin was built
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
		pending: map[string]bool{}, during: map[string]bool{},
	}
	if _, err := files.At(filepath.Join(dir, "Cargo.toml")).Lstat(); err == nil {
		w.outputs["target"] = true
	}
	if err := w.add(dir); err != nil {
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

// add watches a folder and those below it, and remembers the content of their files.
func (w *watcher) add(dir string) error {
	return filepath.WalkDir(dir, func(path string, entry fs.DirEntry, err error) error {
		rel, _ := filepath.Rel(w.dir, path)
		switch {
		case err != nil && path == w.dir:
			return err
		case err != nil:
			return nil // it has gone
		case rel != "." && w.ignores(rel):
			if entry.IsDir() {
				return fs.SkipDir
			}
		case entry.IsDir():
			return w.notify.Add(path)
		default:
			w.differs(rel)
		}
		return nil
	})
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

// differs reports whether a file has another content than when it was last looked at.
func (w *watcher) differs(rel string) bool {
	var sum [sha256.Size]byte // of no file
	data, err := files.At(filepath.Join(w.dir, rel)).Read(largest)
	if err == nil {
		sum = sha256.Sum256(data)
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	was, known := w.seen[rel]
	w.seen[rel] = sum
	return sum != was || !known && err == nil
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

// note remembers an event while the plugin is built.
func (w *watcher) note(rel string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.builds || time.Since(w.built) < lateEvents {
		w.during[rel] = true
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

// byBuild reports whether a file had an event during the last build.
func (w *watcher) byBuild(rel string) bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.during[rel]
}

// settle looks at what a burst of events is about.
func (w *watcher) settle(burst map[string]bool) {
	var changed []string
	for rel := range burst {
		path := filepath.Join(w.dir, rel)
		info, err := files.At(path).Lstat()
		switch {
		case err == nil && info.IsDir():
			before := w.known()
			w.add(path) // a new folder: its files have no events
			for _, file := range w.known() {
				if !slices.Contains(before, file) {
					changed = append(changed, file)
				}
			}
		case w.differs(rel):
			changed = append(changed, rel)
		}
	}
	if changed == nil {
		return
	}
	w.mu.Lock()
	for _, rel := range changed {
		w.pending[rel] = true
	}
	w.mu.Unlock()
	select {
	case w.changed <- struct{}{}:
	default:
	}
}

// known returns the files that were seen.
func (w *watcher) known() []string {
	w.mu.Lock()
	defer w.mu.Unlock()
	return slices.Collect(maps.Keys(w.seen))
}

// take returns what has changed since it was last called, sorted.
func (w *watcher) take() []string {
	w.mu.Lock()
	defer w.mu.Unlock()
	paths := slices.Sorted(maps.Keys(w.pending))
	clear(w.pending)
	return paths
}
