package datafolder

import (
	"bytes"
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"math"
	"path/filepath"

	"github.com/xtts-host/xtts-host/host/base/files"
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

// cache keeps the records of a folder's files: the mark, the SHA-256 of the rest, and the records. It has no file that
// could not be used, which is read again at each start.
type cache struct {
	file  string // "": none
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
	c.file = filepath.Join(dir, "folder-"+hex.EncodeToString(name[:8])+".bin")
	data, err := c.at().Read(maxCache)
	if err != nil {
		if !errors.Is(err, fs.ErrNotExist) {
			c.err = err
		}
		return c
	}
	data, ok := bytes.CutPrefix(data, []byte(mark))
	if !ok || len(data) < sha256.Size || (len(data)-sha256.Size)%recordSize != 0 {
		return c
	}
	want, data := data[:sha256.Size], data[sha256.Size:]
	if sum := sha256.Sum256(data); !bytes.Equal(sum[:], want) {
		return c
	}
	for ; len(data) > 0; data = data[recordSize:] {
		r := record{seconds: math.Float64frombits(binary.LittleEndian.Uint64(data[recordSize-8:]))}
		copy(r.sum[:], data[copy(r.state[:], data):])
		c.was[r.state] = r
	}
	return c
}

// at is the cache file. The folder that it is in is in a cache folder, which may come from someone else: it is no link.
func (c *cache) at() files.Path { return files.At(filepath.Dir(c.file)).Join(filepath.Base(c.file)) }

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
	if c.file == "" || !c.fresh {
		return c.err
	}
	sum := sha256.Sum256(c.used)
	if err := c.at().Write([]byte(mark), sum[:], c.used); err != nil {
		return fmt.Errorf("index cache: %w", err)
	}
	return nil
}
