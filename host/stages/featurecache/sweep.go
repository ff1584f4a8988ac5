package featurecache

import (
	"cmp"
	"encoding/hex"
	"path"
	"slices"
	"time"

	"github.com/xtts-host/xtts-host/host/base/cachedir"
	"github.com/xtts-host/xtts-host/host/base/files"
)

// sweepShare is the part of the bound that a process writes between two sweeps: limit / sweepShare. A sweep leaves
// twice as much free, so that two processes together keep the bound.
const sweepShare = 20

// abandoned is the age of an incomplete file that no process writes any more.
const abandoned = time.Hour

// onDisk rounds the size of a file up to blocks.
func onDisk(size int64) int64 { return (size + 4095) &^ 4095 }

// startSweep sweeps in the background, unless a sweep is in progress.
func (c *Cache) startSweep() {
	if c.closed.Load() || !c.sweeping.CompareAndSwap(false, true) {
		return
	}
	c.tasks.Go(func() {
		defer c.sweeping.Store(false)
		c.sweep()
	})
}

// entry is a file of the cache.
type entry struct {
	key  Key
	size int64
	used int64 // Unix time in nanoseconds
}

// sweep measures the folder and removes the entries that were not used for the longest time, until there is room again.
// From a prepared folder it removes none. Only one process at a time sweeps; the others count on it.
func (c *Cache) sweep() {
	state, err := cachedir.Look(c.Dir, nil)
	if err != nil || state != cachedir.Own && state != cachedir.Adopted {
		return // the folder, or its marker, was removed or replaced under the run
	}
	lock, err := files.In(c.Dir, "lock").Append()
	if err != nil {
		return
	}
	defer lock.Close()
	c.unswept.Store(0)
	if lock.Lock() != nil {
		return
	}
	if state == cachedir.Own {
		c.removeAbandoned()
	}
	prepared := c.prepared()
	var entries []entry // none of a prepared folder, which may have millions
	total := int64(0)
	c.each(func(e entry) bool {
		if total += e.size; !prepared {
			entries = append(entries, e)
		}
		return true
	})
	room := c.Limit - 2*(c.Limit/sweepShare)
	full := total > room
	c.full.Store(full && prepared)
	switch {
	case full && prepared && c.Full != nil:
		c.filled.Do(func() { c.Full(total) })
	case full && !prepared:
		total -= c.evict(entries, total-room, state)
	}
	c.bytes.Store(total + c.unswept.Load())
}

// evict removes so many bytes of entries, and returns how many it has removed.
func (c *Cache) evict(entries []entry, much int64, state cachedir.State) (removed int64) {
	slices.SortFunc(entries, func(a, b entry) int { return cmp.Compare(a.used, b.used) })
	for _, e := range entries {
		if removed >= much || c.closed.Load() {
			break
		}
		if state == cachedir.Adopted && !isEntry(c.at(e.key), e.key) {
			continue // it has the name of an entry, and is not one
		}
		if c.at(e.key).Remove() == nil {
			removed += e.size
		}
	}
	return removed
}

// each finds the entries, until found returns false, and reports whether it has found all. Files with other names are
// left out, and links to other folders are not followed.
func (c *Cache) each(found func(entry) bool) bool {
	for first := range 256 {
		if c.closed.Load() {
			return false
		}
		prefix := hex.EncodeToString([]byte{byte(first)})
		all, err := files.In(c.Dir, prefix).ReadDir()
		if err != nil {
			continue // it is not there, or no folder of ours
		}
		for _, f := range all {
			name, ok := keyOfName(prefix, f.Name())
			if !ok || !f.Type().IsRegular() {
				continue
			}
			info, err := f.Info()
			if err == nil && !found(entry{name, onDisk(info.Size()), info.ModTime().UnixNano()}) {
				return false
			} // after an error, another process has removed it
		}
	}
	return true
}

// removeAbandoned removes the files that killed processes have not completed.
func (c *Cache) removeAbandoned() {
	folder := files.In(c.Dir, incoming)
	left, _ := folder.ReadDir()
	for _, e := range left {
		if ours, _ := path.Match(pattern, e.Name()); !ours {
			continue
		}
		at := folder.Join(e.Name())
		if info, err := at.Lstat(); err == nil && info.Mode().IsRegular() && time.Since(info.ModTime()) > abandoned {
			_ = at.Remove()
		}
	}
}
