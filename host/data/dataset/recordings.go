package dataset

import (
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"fmt"
	"io/fs"
	"path/filepath"
	"slices"
	"syscall"

	"github.com/xtts-host/xtts-host/shared/manifest"
)

// recordingsMark starts a cache file. It changes with the format of a record, and when the host computes other lengths.
const recordingsMark = "xtts-host recordings 3\n"

// half is half a SHA-256: enough to distinguish files.
type half [sha256.Size / 2]byte

// recording is what is known of a file in a state: its path, size, times and inode. A write to the file changes the
// state, also one that restores the time of the last change. An array is recorded as well: its length as frames.
type recording struct {
	state    half
	content  half  // of its bytes; zero before they are read
	frames   int64 // samples per channel
	rate     int32 // Hz
	channels int16
	remarks  uint16 // what is wrong with it, a remark.Set
}

// recordingSize is the size of a record in bytes.
const recordingSize = 48

func (r *recording) append(b []byte) []byte {
	b = append(append(b, r.state[:]...), r.content[:]...)
	b = binary.LittleEndian.AppendUint64(b, uint64(r.frames))
	b = binary.LittleEndian.AppendUint32(b, uint32(r.rate))
	b = binary.LittleEndian.AppendUint16(b, uint16(r.channels))
	return binary.LittleEndian.AppendUint16(b, r.remarks)
}

func recordingOf(b []byte) recording {
	le := binary.LittleEndian
	return recording{
		half(b), half(b[16:]), int64(le.Uint64(b[32:])), int32(le.Uint32(b[40:])), int16(le.Uint16(b[44:])),
		le.Uint16(b[46:]),
	}
}

// recordings are the files of an index. The cache stores them in one file per list: the mark, the SHA-256 of the rest,
// and the records. It has no file that could not be used, which is read again at each start.
type recordings struct {
	file    RecordFile // without a path: no cache
	all     []recording
	known   map[half]int32 // places in all of those of the cache, while the list is read
	added   map[half]int32 // and of the others
	uses    []int32        // places of the recording and of the arrays of each row
	perRow  int            // uses of a row
	changed bool           // the cache file is to be written
}

// maxRecordings bounds the cache of a list, in bytes.
const maxRecordings = 4 << 30

// loadRecordings reads the cache of a list. A damaged file is an error without further consequences.
func loadRecordings(cacheDir, dir, list string, columns *Columns) (*recordings, error) {
	r := &recordings{added: map[half]int32{}, perRow: 1}
	for _, c := range columns.list() {
		if c.spec.Origin == manifest.OriginFile {
			r.perRow++
		}
	}
	if cacheDir == "" {
		return r, nil
	}
	name := sha256.Sum256(appendField(appendField(nil, dir), list))
	r.file = RecordFile{
		Path: filepath.Join(cacheDir, "recordings-"+hex.EncodeToString(name[:8])+".bin"), Mark: recordingsMark,
		Size: recordingSize, Most: maxRecordings,
	}
	data, damaged, err := r.file.Read()
	switch {
	case err != nil:
		return r, fmt.Errorf("index cache: %w", err)
	case damaged:
		return r, fmt.Errorf("index cache %s is damaged", r.file.Path)
	}
	r.all = make([]recording, len(data)/recordingSize)
	r.known = make(map[half]int32, len(r.all))
	for i := range r.all {
		r.all[i] = recordingOf(data[i*recordingSize:])
		r.known[r.all[i].state] = int32(i)
	}
	return r, nil
}

// find returns the place of a recording that the cache knows, or -1. It is safe for concurrent use with add.
func (r *recordings) find(state half) int32 {
	if n, ok := r.known[state]; ok {
		return n
	}
	return -1
}

// add adds the recording of the next row, and then each of its arrays. It is at place n, or new if n is -1.
func (r *recordings) add(n int32, rec *recording) {
	if n < 0 {
		place, ok := r.added[rec.state]
		if !ok {
			place = int32(len(r.all))
			r.added[rec.state] = place
			r.all = append(r.all, *rec)
			r.changed = true
		}
		n = place
	}
	r.uses = append(r.uses, n)
}

// first returns the first use of each recording, as an index into uses, -1 for one that no row uses.
func (r *recordings) first() []int {
	uses := slices.Repeat([]int{-1}, len(r.all))
	for use, n := range slices.Backward(r.uses) {
		uses[n] = use
	}
	return uses
}

// store writes the recordings that rows use to the cache, if there are new ones.
func (r *recordings) store() error {
	if r.file.Path == "" || !r.changed {
		return nil
	}
	var data []byte
	for n, use := range r.first() {
		if use >= 0 {
			data = r.all[n].append(data)
		}
	}
	if err := r.file.Write(data); err != nil {
		return fmt.Errorf("index cache: %w", err)
	}
	r.changed = false
	return nil
}

// StateOf identifies a file and its state: its path, size, times and inode.
func StateOf(path string, info fs.FileInfo) [sha256.Size / 2]byte {
	b := appendField(make([]byte, 0, 256), path)
	b = appendInt(b, info.Size())
	b = appendInt(b, info.ModTime().UnixNano())
	if s, ok := info.Sys().(*syscall.Stat_t); ok {
		b = appendInt(b, s.Ctim.Nano())
		b = appendInt(b, int64(s.Ino))
	}
	sum := sha256.Sum256(b)
	return [sha256.Size / 2]byte(sum[:])
}
