package dataset

import (
	"bytes"
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"syscall"

	"github.com/xtts-host/xtts-host/shared/regular"
)

// contentsMark starts a file of known contents.
const contentsMark = "xtts-host contents 1\n"

// half is half a SHA-256: enough to tell files from one another.
type half [sha256.Size / 2]byte

// known is the content of a file in a state: its path, size, times and inode. A write to the file changes the state, also
// one that restores the time of the last change.
type known struct{ state, content half }

// ReadContents sets Contents, from the bytes of all recordings. It reads each file once: cacheDir keeps what is known of
// files that have not changed since. Empty means no cache.
func (ix *Index) ReadContents(ctx context.Context, cacheDir string) error {
	files, of := ix.recordings()
	before := loadContents(ix.contentsFile(cacheDir))
	s := &scan{cfg: Config{Workers: 8}, entries: make([]entry, len(files))}
	found := make([]known, len(files))
	news := make([]bool, len(files))
	err := s.each(ctx, func(i int) (err error) {
		found[i].state = ix.states[files[i]]
		if n, ok := slices.BinarySearchFunc(before, found[i], compareStates); ok {
			found[i] = before[n]
			return nil
		}
		found[i].content, err = contentOf(ix.Rows[files[i]].Path)
		news[i] = err == nil
		return hostTrouble(err) // clips of a file that cannot be read are left out when they are decoded
	})
	if err != nil {
		return err
	}
	h := sha256.New()
	for _, file := range of {
		h.Write(found[file].content[:])
	}
	ix.Contents = hex.EncodeToString(h.Sum(nil))
	if slices.Contains(news, true) {
		if err := storeContents(ix.contentsFile(cacheDir), found); err != nil {
			ix.CacheError = cmp.Or(ix.CacheError, err)
		}
	}
	return nil
}

// recordings lists the files by their first rows, and gives the file of each row.
func (ix *Index) recordings() (files, of []int32) {
	numbers := make(map[half]int32, len(ix.Rows))
	of = make([]int32, len(ix.Rows))
	for i, state := range ix.states {
		n, ok := numbers[state]
		if !ok {
			n = int32(len(files))
			numbers[state] = n
			files = append(files, int32(i))
		}
		of[i] = n
	}
	return files, of
}

func (ix *Index) contentsFile(cacheDir string) string {
	if cacheDir == "" {
		return ""
	}
	sum := sha256.Sum256(appendField(appendField(nil, ix.Dir), ix.List))
	return filepath.Join(cacheDir, "contents-"+hex.EncodeToString(sum[:8])+".bin")
}

func compareStates(a, b known) int { return bytes.Compare(a.state[:], b.state[:]) }

func stateOf(path string, info fs.FileInfo) half {
	b := appendField(nil, path)
	b = appendInt(b, info.Size())
	b = appendInt(b, info.ModTime().UnixNano())
	if s, ok := info.Sys().(*syscall.Stat_t); ok {
		b = appendInt(b, s.Ctim.Nano())
		b = appendInt(b, int64(s.Ino))
	}
	sum := sha256.Sum256(b)
	return half(sum[:])
}

func contentOf(path string) (content half, err error) {
	f, _, err := regular.Open(path)
	if err != nil {
		return content, err
	}
	defer f.Close()
	h := sha256.New()
	if _, err := io.Copy(h, f); err != nil {
		return content, err
	}
	return half(h.Sum(nil)), nil
}

// loadContents returns what is known, ordered by state: nothing where the file is missing or damaged.
func loadContents(file string) []known {
	data, err := os.ReadFile(file)
	data, ok := bytes.CutPrefix(data, []byte(contentsMark))
	if err != nil || !ok || len(data) < sha256.Size {
		return nil
	}
	sum, data := data[:sha256.Size], data[sha256.Size:]
	if want := sha256.Sum256(data); !bytes.Equal(sum, want[:]) || len(data)%sha256.Size != 0 {
		return nil
	}
	all := make([]known, len(data)/sha256.Size)
	for i := range all {
		record := data[i*sha256.Size:]
		all[i] = known{half(record), half(record[len(half{}):])}
	}
	return all
}

// storeContents keeps what is known of files that could be read.
func storeContents(file string, found []known) error {
	if file == "" {
		return nil
	}
	found = slices.DeleteFunc(slices.Clone(found), func(k known) bool { return k.content == half{} })
	slices.SortFunc(found, compareStates)
	data := make([]byte, 0, len(found)*sha256.Size)
	for _, k := range found {
		data = append(append(data, k.state[:]...), k.content[:]...)
	}
	sum := sha256.Sum256(data)
	return writeFile(file, []byte(contentsMark), sum[:], data)
}
