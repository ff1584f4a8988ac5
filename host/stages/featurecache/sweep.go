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
// Only one process at a time sweeps; the others count on it.
func (c *Cache) sweep() {
	state, err := cachedir.Look(c.dir, nil)
	if err != nil || state != cachedir.Own && state != cachedir.Adopted {
		return // the folder, or its marker, was removed or replaced under the run
	}
	lock, err := files.In(c.dir, "lock").Append()
	if err != nil {
		return
	}
	defer lock.Close()
	c.unswept.Store(0)
	if lock.Lock() != nil {
		return
	}
	entries, total := c.list(state == cachedir.Own)
	room := c.limit - 2*(c.limit/sweepShare)
	if total > room {
		slices.SortFunc(entries, func(a, b entry) int { return cmp.Compare(a.used, b.used) })
		for _, e := range entries {
			if total <= room || c.closed.Load() {
				break
			}
			if state == cachedir.Adopted && !isEntry(c.at(e.key), e.key) {
				continue // it has the name of an entry, and is not one
			}
			if c.at(e.key).Remove() == nil {
				total -= e.size
			}
		}
	}
	c.bytes.Store(total + c.unswept.Load())
}

// list finds the entries, and removes abandoned files from a folder that is all ours. Files with other names are not
// touched, and links to other folders are not followed.
func (c *Cache) list(own bool) (entries []entry, total int64) {
	if own {
		c.removeAbandoned()
	}
	for first := range 256 {
		if c.closed.Load() {
			return nil, total
		}
		prefix := hex.EncodeToString([]byte{byte(first)})
		found, err := files.In(c.dir, prefix).ReadDir()
		if err != nil {
			continue // it is not there, or no folder of ours
		}
		for _, f := range found {
			name, ok := keyOfName(prefix, f.Name())
			if !ok || !f.Type().IsRegular() {
				continue
			}
			info, err := f.Info()
			if err != nil {
				continue // another process has removed it
			}
			e := entry{name, onDisk(info.Size()), info.ModTime().UnixNano()}
			entries = append(entries, e)
			total += e.size
		}
	}
	return entries, total
}

// removeAbandoned removes the files that killed processes have not completed.
func (c *Cache) removeAbandoned() {
	folder := files.In(c.dir, incoming)
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
