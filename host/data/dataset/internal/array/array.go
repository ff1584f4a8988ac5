// Package array reads arrays from NumPy's .npy files and from .safetensors files, in the type that an input of a graph
// has.
//
//	r := array.NewReader()
//	f, err := r.Open("durations/1.npy", "")
//	...
//	defer f.Close()
//	data := make([]byte, f.Elements()*manifest.I32.Size())
//	err = f.Read(data, manifest.I32)
//
// Files may come from anywhere: nothing is allocated for what only a header claims, and Python objects are refused, not
// unpickled. The library for .npy, github.com/sbinet/npyio 0.6, allocates as many bytes as the length of the header
// says, up to 4 GiB, and panics on a header without a line end.
package array

import (
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"

	"github.com/xtts-host/xtts-host/host/base/files"
	"github.com/xtts-host/xtts-host/shared/hint"
)

// maxBytes is the largest array: a gigabyte for one clip is a mistake.
const maxBytes = 1 << 30

// File is an open array. Close it after use.
type File struct {
	Shape []int // without dimensions, a single value

	kind  kind
	data  *io.SectionReader
	close func() error
}

// Split separates the file from the tensor in a reference such as codes.safetensors#clip-1. It refuses other formats by
// the file's ending.
func Split(reference string) (path, tensor string, err error) {
	const takes = "an array is FILE.npy or FILE.safetensors#TENSOR"
	switch at := strings.Index(reference, ".safetensors#"); {
	case at >= 0:
		at += len(".safetensors")
		if path, tensor = reference[:at], reference[at+1:]; tensor == "" {
			return "", "", hint.Errorf(takes, "no tensor is named after #")
		}
		return path, tensor, nil
	case strings.HasSuffix(reference, ".safetensors"):
		return "", "", hint.Errorf(takes, "the tensor of the file is not named")
	case !strings.HasSuffix(reference, ".npy"):
		if ending := filepath.Ext(reference); ending != "" {
			return "", "", hint.Errorf(takes, "files that end in %.20q are not read", ending)
		}
		return "", "", hint.Errorf(takes, "the file has no ending")
	}
	return reference, "", nil
}

// Open opens an array and reads its header, of the tensor in a .safetensors file, or of a .npy file if tensor is empty.
// The error names the file only if it comes from the operating system.
func (r *Reader) Open(path, tensor string) (*File, error) {
	f, err := files.Open(path)
	if err != nil {
		return nil, err
	}
	var a *File
	if tensor == "" {
		a, err = npy(f, f.Size())
	} else {
		a, err = r.tensor(f, f.Size(), path, tensor)
	}
	if err == nil && a.data.Size() > maxBytes {
		err = fmt.Errorf("the array has %d bytes, more than %d", a.data.Size(), maxBytes)
	}
	if err != nil {
		f.Close()
		return nil, err
	}
	a.close = f.Close
	return a, nil
}

// Close closes the file. It is idempotent.
func (f *File) Close() error {
	if err := f.close(); !errors.Is(err, os.ErrClosed) {
		return err
	}
	return nil
}

// Elements counts the values.
func (f *File) Elements() int { return int(f.data.Size()) / f.kind.size }

// Type names the type of the values in the file: "int64", "float32".
func (f *File) Type() string { return f.kind.name }

// Data returns the bytes of the values, as they are in the file.
func (f *File) Data() io.Reader { return io.NewSectionReader(f.data, 0, f.data.Size()) }
