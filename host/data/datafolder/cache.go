package datafolder

import (
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"fmt"
	"math"
	"path/filepath"

	"github.com/xtts-host/xtts-host/host/data/dataset"
)

// mark starts a cache file. It changes with the format of a record, and when the host computes other lengths.
const mark = "xtts-host folder of data 1\n"

// maxCache bounds the cache of a folder, in bytes.
const maxCache = 64 << 20

// state is that of dataset.StateOf.
type state = [sha256.Size / 2]byte

// record is what is known of a file in a state.
type record struct {
	state   state
	sum     [sha256.Size]byte
	seconds float64 // of a recording
}

// recordSize is the size of a record in bytes.
const recordSize = len(state{}) + sha256.Size + 8

// cache keeps the records of a folder's files. It has no file that could not be used, which is read again at each
// start.
type cache struct {
	file  dataset.RecordFile // without a path: none
	was   map[state]record
	used  []byte
	fresh bool  // the file has other records
	err   error // of reading it
}

// loadCache reads the cache of a folder. A damaged file is like none.
func loadCache(dir, folder, kind string) *cache {
	c := &cache{was: map[state]record{}}
	if dir == "" {
		return c
	}
	name := sha256.Sum256([]byte(kind + "\x00" + folder))
	c.file = dataset.RecordFile{
		Path: filepath.Join(dir, "folder-"+hex.EncodeToString(name[:8])+".bin"), Mark: mark, Size: recordSize,
		Most: maxCache,
	}
	var data []byte
	for data, _, c.err = c.file.Read(); len(data) > 0; data = data[recordSize:] {
		r := record{seconds: math.Float64frombits(binary.LittleEndian.Uint64(data[recordSize-8:]))}
		copy(r.sum[:], data[copy(r.state[:], data):])
		c.was[r.state] = r
	}
	return c
}

// find returns what is known of a file.
func (c *cache) find(s state) (record, bool) {
	r, ok := c.was[s]
	return r, ok
}

// add has store write a record.
func (c *cache) add(r record) {
	if _, known := c.was[r.state]; !known {
		c.fresh = true
	}
	c.used = append(append(c.used, r.state[:]...), r.sum[:]...)
	c.used = binary.LittleEndian.AppendUint64(c.used, math.Float64bits(r.seconds))
}

// store writes the records of the files that are used, if there are new ones.
func (c *cache) store() error {
	if c.file.Path == "" || !c.fresh {
		return c.err
	}
	if err := c.file.Write(c.used); err != nil {
		return fmt.Errorf("index cache: %w", err)
	}
	return nil
}
