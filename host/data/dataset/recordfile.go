package dataset

import (
	"bytes"
	"crypto/sha256"
	"errors"
	"io/fs"
	"path/filepath"
	"strings"

	"github.com/xtts-host/xtts-host/host/base/files"
)

// RecordFile is a file of a cache folder with what is known of other files: the mark, the SHA-256 of the rest, and
// records of one size.
type RecordFile struct {
	Path string
	// Mark is the first line. Its last word is the version: it changes with the format of a record.
	Mark string
	Size int   // of a record, in bytes
	Most int64 // bytes of the file, at most
}

// at is the file. The folder that it is in is in a cache folder, which may come from someone else: it is no link.
func (f RecordFile) at() files.Path {
	return files.At(filepath.Dir(f.Path)).Join(filepath.Base(f.Path))
}

// Read returns the records, none if there is no file or one of another version. damaged means that it is not what was
// written.
func (f RecordFile) Read() (records []byte, damaged bool, err error) {
	data, err := f.at().Read(f.Most)
	if err != nil {
		if errors.Is(err, fs.ErrNotExist) {
			err = nil
		}
		return nil, false, err
	}
	records, ok := bytes.CutPrefix(data, []byte(f.Mark))
	if !ok {
		name := f.Mark[:strings.LastIndexByte(f.Mark, ' ')+1]
		return nil, !bytes.HasPrefix(data, []byte(name)), nil
	}
	if len(records) < sha256.Size {
		return nil, true, nil
	}
	want, records := records[:sha256.Size], records[sha256.Size:]
	if sum := sha256.Sum256(records); !bytes.Equal(sum[:], want) || len(records)%f.Size != 0 {
		return nil, true, nil
	}
	return records, false, nil
}

// Write replaces the file.
func (f RecordFile) Write(records []byte) error {
	sum := sha256.Sum256(records)
	return f.at().Write([]byte(f.Mark), sum[:], records)
}
