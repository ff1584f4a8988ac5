package archive

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"path"
	"path/filepath"
	"slices"

	"github.com/xtts-host/xtts-host/host/base/files"
)

// Record is the folder in an installed plugin's folder that has what it was installed from.
const Record = ".installed"

// The files of Record.
const (
	recordArchive = "archive.tar.gz"
	recordSign    = "archive.tar.gz.minisig"
	recordOrigin  = "origin"
)

// Kept is the path of the archive that the plugin in a folder was installed from.
func Kept(dir string) string { return filepath.Join(dir, Record, recordArchive) }

// Origin is where an archive came from, and its signature.
type Origin struct {
	Signature []byte // in the format of minisign; nil without one
	Address   string // https address; empty for a file
}

// Unpack writes the files of an archive into a new folder, and keeps the archive and its origin in Record. sum is that
// of the archive when it was checked. After an error, the caller removes the folder.
func Unpack(in io.Reader, size int64, sum string, from Origin, to files.Path) error {
	record := to.Join(Record)
	if err := record.Mkdir(); err != nil {
		return err
	}
	kept, err := record.Join(recordArchive).New()
	if err != nil {
		return err
	}
	content, err := Read(io.TeeReader(in, kept), size, func(f File, content io.Reader) error {
		return unpackFile(to.Join(f.Name), f, content)
	})
	if err == nil && content.Sum != sum {
		err = refuse("it has changed since it was checked")
	}
	if err == nil {
		err = kept.Sync()
	}
	if err = errors.Join(err, kept.Close()); err != nil {
		return err
	}
	if from.Signature != nil {
		err = record.Join(recordSign).Write(from.Signature)
	}
	if err == nil && from.Address != "" {
		err = record.Join(recordOrigin).Write([]byte(from.Address + "\n"))
	}
	return err
}

// unpackFile writes one file, and makes the folders above it.
func unpackFile(at files.Path, f File, content io.Reader) error {
	if err := at.Parent().MkdirAll(); err != nil {
		return err
	}
	out, err := at.New()
	if err != nil {
		return err
	}
	_, err = io.Copy(out, content)
	if err == nil && f.Executable {
		var info fs.FileInfo
		if info, err = out.Stat(); err == nil {
			mode := info.Mode().Perm()
			err = out.Chmod(mode | mode&0o444>>2) // who may read it may execute it
		}
	}
	if err == nil {
		err = out.Sync()
	}
	return errors.Join(err, out.Close())
}

// ErrNotInstalled means that a folder was not installed from an archive.
var ErrNotInstalled = errors.New("it was not installed from an archive")

// Installed is what a folder was installed from.
type Installed struct {
	Content
	Origin
	// Changes are the files that are missing, changed or not in the archive, each with what it is.
	Changes []string
}

// OpenRecord opens the archive that a folder was installed from, and returns its origin. The error is ErrNotInstalled
// if there is none. The caller closes the file.
func OpenRecord(dir string) (*files.File, Origin, error) {
	record := files.In(dir, Record)
	f, err := record.Join(recordArchive).Open()
	if errors.Is(err, fs.ErrNotExist) {
		return nil, Origin{}, ErrNotInstalled
	}
	if err != nil {
		return nil, Origin{}, err
	}
	var from Origin
	if from.Signature, err = optional(record.Join(recordSign)); err == nil {
		var text []byte
		text, err = optional(record.Join(recordOrigin))
		from.Address, _, _ = cutLine(text)
	}
	if err != nil {
		return nil, Origin{}, errors.Join(err, f.Close())
	}
	return f, from, nil
}

func cutLine(text []byte) (line string, rest []byte, found bool) {
	if i := slices.Index(text, '\n'); i >= 0 {
		return string(text[:i]), text[i+1:], true
	}
	return string(text), nil, false
}

// optional reads a small file that need not be there.
func optional(p files.Path) ([]byte, error) {
	data, err := p.Read(64 << 10)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	return data, err
}

// Check reads the archive that a folder was installed from, and compares all files with it.
func Check(dir string) (*Installed, error) {
	f, from, err := OpenRecord(dir)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	content, err := Read(f, f.Size(), nil)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", path.Join(Record, recordArchive), err)
	}
	changes, err := content.Index.changes(files.In(dir))
	if err != nil {
		return nil, err
	}
	return &Installed{*content, from, changes}, nil
}
