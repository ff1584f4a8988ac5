package featurecache

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"math/rand/v2"
	"slices"
	"strconv"
	"sync"
	"sync/atomic"
	"time"

	"github.com/xtts-host/xtts-host/host/base/cachedir"
	"github.com/xtts-host/xtts-host/host/base/disk"
	"github.com/xtts-host/xtts-host/host/base/files"
	"github.com/xtts-host/xtts-host/shared/hint"
)

// Key is a SHA-256 of everything that the data of an entry depend on.
type Key [sha256.Size]byte

// Result is the result of Get.
type Result int

// The results of Get.
const (
	Miss    Result = iota // there is no such entry
	Damaged               // the entry cannot be read, or its checksum is wrong
	Hit
)

// Config says which folder is opened, and for what.
type Config struct {
	Dir string
	// Flag names the folder, for messages.
	Flag string
	// Limit bounds the folder in bytes.
	Limit int64
	// Prepare marks the folder as prepared: from then on, no process removes an entry from it.
	Prepare bool
	// Failed receives the first failure to write an entry.
	Failed func(err error)
	// Full receives, once, the size of a prepared folder that has no room for more entries. It may be nil.
	Full func(bytes int64)
}

// Cache is an open folder. It is safe for concurrent use.
type Cache struct {
	Config

	bytes     atomic.Int64 // of the folder, as far as this process knows
	written   atomic.Int64 // bytes
	unswept   atomic.Int64 // bytes by which the folder has grown since the last sweep began
	sweeping  atomic.Bool
	closed    atomic.Bool
	tasks     sync.WaitGroup
	suspended atomic.Int64 // Unix time until which nothing is written, after a failure
	failed    sync.Once
	full      atomic.Bool // the folder is prepared and has no room: nothing is written
	filled    sync.Once
}

// incoming is the folder of files that are not complete, pattern the name of one.
const (
	incoming = "incoming"
	pattern  = "feature-*.tmp"
)

// Check returns an error if the folder that a flag names cannot be a cache. It changes nothing.
func Check(flag, dir string) error {
	if err := disk.CheckFolder(dir); err != nil {
		return hint.Errorf("name a folder that can be written with "+flag, "%s %s: %w", flag, dir, err)
	}
	if state, err := cachedir.Look(dir, Recognise); err != nil {
		return hint.Errorf("name a folder that can be read with "+flag, "%s %s: %w", flag, dir, err)
	} else if state == cachedir.Foreign {
		return foreign(flag, dir)
	}
	return nil
}

// foreign refuses a folder of others: the cache removes what it takes for its entries.
func foreign(flag, dir string) error {
	return hint.Errorf("name a folder of its own: "+flag+" "+hint.Path(cachedir.Below(dir)), "%s %s: %w", flag, dir,
		cachedir.ErrForeign)
}

// Open opens the cache in a folder, which it makes if necessary.
func Open(cfg Config) (*Cache, error) {
	if err := Check(cfg.Flag, cfg.Dir); err != nil {
		return nil, err
	}
	c := &Cache{Config: cfg}
	err := c.claim()
	if errors.Is(err, cachedir.ErrForeign) {
		return nil, foreign(cfg.Flag, cfg.Dir)
	}
	if err == nil {
		err = c.try()
	}
	if err == nil && cfg.Prepare {
		err = c.mark()
	}
	if err != nil {
		return nil, hint.Errorf("name another folder with "+cfg.Flag, "%s %s: %w", cfg.Flag, cfg.Dir,
			disk.Explain(err, cfg.Dir, 1))
	}
	c.startSweep()
	return c, nil
}

// claim makes the folders.
func (c *Cache) claim() error {
	if _, err := cachedir.Claim(c.Dir, Recognise); err != nil {
		return err
	}
	return files.In(c.Dir, incoming).MkdirAll()
}

// try writes a file, which fails on a read-only disk even where permissions allow it.
func (c *Cache) try() error {
	f, at, err := c.newFile()
	if err != nil {
		return err
	}
	_, err = f.Write([]byte{0})
	return errors.Join(err, f.Close(), at.Remove())
}

// newFile makes a file that is to become an entry.
func (c *Cache) newFile() (*files.File, files.Path, error) {
	for {
		at := files.In(c.Dir, incoming, "feature-"+strconv.FormatUint(rand.Uint64(), 36)+".tmp")
		f, err := at.New()
		if !errors.Is(err, fs.ErrExist) {
			return f, at, err
		}
	}
}

// Close waits for the work in the background, which ends early.
func (c *Cache) Close() {
	if c != nil {
		c.closed.Store(true)
		c.tasks.Wait()
	}
}

// longestLook bounds how long Bytes looks through a folder, which may have millions of files on another machine.
const longestLook = 2 * time.Second

// Bytes returns the size of the entries of the folder, those of other processes included. Of a folder that is looked
// through for too long, and after Close, it is what this process knows.
func (c *Cache) Bytes() int64 { return c.measure(longestLook) }

func (c *Cache) measure(limit time.Duration) int64 {
	total, end := int64(0), time.Now().Add(limit)
	if c.each(func(e entry) bool { total += e.size; return time.Now().Before(end) }) {
		return total
	}
	return c.bytes.Load()
}

// Written returns the bytes that this process has written.
func (c *Cache) Written() int64 { return c.written.Load() }

// at returns the place of an entry, which no link leads to: the folder may come from someone else. 256 folders keep
// each of them small.
func (c *Cache) at(key Key) files.Path {
	name := hex.EncodeToString(key[:])
	return files.In(c.Dir, name[:2], name[2:])
}

// maxEntry bounds an entry in bytes, so that no file makes a reader ask for more memory.
const maxEntry = 1 << 30

// Get appends the data of an entry to buf, if the result is Hit. Otherwise it returns buf.
func (c *Cache) Get(key Key, buf []byte) ([]byte, Result) {
	at := c.at(key)
	f, err := at.Open()
	if errors.Is(err, fs.ErrNotExist) {
		return buf, Miss
	}
	if err != nil {
		return buf, Damaged
	}
	defer f.Close()
	size := f.Size()
	if size < sha256.Size || size > maxEntry {
		return buf, Damaged
	}
	from := len(buf)
	all := slices.Grow(buf, int(size))[:from+int(size)]
	if _, err := io.ReadFull(f, all[from:]); err != nil {
		return buf, Damaged
	}
	end := len(all) - sha256.Size
	if checksum(key, all[from:end]) != [sha256.Size]byte(all[end:]) {
		return all[:from], Damaged
	}
	_ = at.Touch() // the time of its last use; an entry that was just removed has none
	return all[:end], Hit
}

func checksum(key Key, data []byte) (sum [sha256.Size]byte) {
	h := sha256.New()
	h.Write(key[:])
	h.Write(data)
	h.Sum(sum[:0])
	return sum
}

// pause is the time without writing after a failure.
const pause = time.Minute

// Put keeps the data under the key, or replaces a damaged entry. It reports whether they were written: after a failure,
// nothing is written for a minute.
func (c *Cache) Put(key Key, data []byte) bool {
	size := onDisk(int64(len(data)) + sha256.Size)
	if c.Prepare && size > maxEntry {
		c.failed.Do(func() { c.Failed(fmt.Errorf("a row of %d bytes cannot be kept", size)) })
		return false
	}
	if size > min(c.Limit/4, maxEntry) || c.full.Load() || time.Now().Unix() < c.suspended.Load() {
		return false
	}
	before := int64(0) // of the entry that is replaced, a damaged one or one of another process
	if info, err := c.at(key).Lstat(); err == nil {
		before = onDisk(info.Size())
	}
	if err := c.write(key, data); err != nil {
		c.suspended.Store(time.Now().Add(pause).Unix())
		c.failed.Do(func() { c.Failed(disk.Explain(err, files.In(c.Dir, incoming).String(), size)) })
		return false
	}
	c.bytes.Add(size - before)
	c.written.Add(size)
	if c.unswept.Add(size-before) > c.Limit/sweepShare {
		c.startSweep()
	}
	return true
}

func (c *Cache) write(key Key, data []byte) (err error) {
	f, temp, err := c.newFile()
	if errors.Is(err, fs.ErrNotExist) { // the folder was removed
		if err = c.claim(); err != nil {
			return err
		}
		f, temp, err = c.newFile()
	}
	if err != nil {
		return err
	}
	defer func() {
		if err != nil {
			temp.Remove()
		}
	}()
	sum := checksum(key, data)
	_, err = f.Write(data)
	if err == nil {
		_, err = f.Write(sum[:])
	}
	if err == nil {
		err = f.Chmod(0o644) // for the runs of other users
	}
	if err = errors.Join(err, f.Close()); err != nil {
		return err
	}
	at := c.at(key)
	if err = temp.Rename(at); errors.Is(err, fs.ErrNotExist) {
		if err = at.Parent().MkdirAll(); err == nil {
			err = temp.Rename(at)
		}
	}
	return err
}
