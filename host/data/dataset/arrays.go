package dataset

import (
	"crypto/sha256"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"path/filepath"
	"slices"
	"strings"

	"github.com/xtts-host/xtts-host/host/base/files"
	"github.com/xtts-host/xtts-host/host/data/dataset/internal/array"
	"github.com/xtts-host/xtts-host/shared/manifest"
)

// arrayOf separates the path from the tensor of a reference, which array.Split has accepted. The path is that of the
// file on this machine.
func arrayOf(dir string, v Value) (path, tensor string) {
	path, tensor, _ = strings.Cut(v.data, ".safetensors#")
	if tensor != "" {
		path += ".safetensors"
	}
	if path = filepath.FromSlash(path); !filepath.IsAbs(path) {
		path = filepath.Join(dir, path)
	}
	return path, tensor
}

// findArray finds the array of a column and returns its length, and its place in Index.recordings or -1 for a new one.
// It reads the header only of a new one.
func (s *scan) findArray(c *column, v *Value) (place int32, r recording, err error) {
	path, tensor := arrayOf(s.dir, *v)
	info, err := files.Stat(path)
	if errors.Is(err, fs.ErrNotExist) {
		return -1, r, fmt.Errorf("there is no %s", v.data)
	}
	if err != nil {
		return -1, r, err
	}
	r.state = arrayState(StateOf(path, info), tensor, c)
	if place = s.finder.recordings.find(r.state); place >= 0 {
		r = s.finder.known[place]
	} else {
		length, err := c.arrayLength(s.cfg.Columns.arrays, path, tensor)
		if err != nil {
			return -1, r, err
		}
		r.frames = int64(length)
	}
	v.Length = int(r.frames)
	return place, r, nil
}

// arrayState is the state of an array as a column: what is checked depends on the column's type and shape.
func arrayState(file half, tensor string, c *column) half {
	b := appendField(nil, string(file[:]))
	b = appendField(b, tensor)
	b = appendField(b, string(c.spec.DType))
	b = appendField(b, c.spec.Shape.String())
	sum := sha256.Sum256(b)
	return half(sum[:])
}

// arrayLength opens an array, checks its type and shape, and returns the length of axis 1, 0 if it is fixed.
func (c *column) arrayLength(from *array.Reader, path, tensor string) (int, error) {
	f, err := from.Open(path, tensor)
	if err != nil {
		return 0, err
	}
	defer f.Close()
	return c.lengthOf(f)
}

func (c *column) lengthOf(f *array.File) (int, error) {
	if !f.Fits(c.spec.DType) {
		return 0, fmt.Errorf("the array is %s, which does not become the %s of the input", f.Type(), c.spec.DType)
	}
	inner, length := f.Shape, 0
	if c.spec.Lengths != "" && len(inner) > 0 {
		inner, length = inner[1:], inner[0]
	}
	switch {
	case len(f.Shape) != len(c.spec.Shape)-1 || !slices.Equal(inner, c.inner):
		return 0, fmt.Errorf("the array has the shape %v, but a row of the input %s", f.Shape, c.spec.Shape[1:])
	case c.spec.Lengths != "" && length == 0:
		return 0, errors.New("the array is empty")
	}
	return length, nil
}

// readArray reads the array of a row, as a row of the tensor without padding, into buffer if it is large enough.
func (c *column) readArray(from *array.Reader, dir string, v Value, buffer []byte) ([]byte, error) {
	path, tensor := arrayOf(dir, v)
	f, err := from.Open(path, tensor)
	if err != nil {
		return buffer, err
	}
	defer f.Close()
	if n, err := c.lengthOf(f); err != nil || n != v.Length {
		return buffer, errors.Join(fmt.Errorf("changed since it was indexed: it had the length %d", v.Length), err)
	}
	buffer = grow(buffer, f.Elements()*c.spec.DType.Size())
	if err := f.Read(buffer, c.spec.DType); err != nil {
		return buffer, err
	}
	return buffer, c.checkArray(buffer)
}

// CheckArrays reads the arrays of a row. reason says why a run leaves it out. An error means that the machine is out of
// files or memory. CheckArrays uses the memory of buffer if it is large enough, and returns it.
func (ix *Index) CheckArrays(buffer []byte, row *Row) (_ []byte, reason string, err error) {
	for i, v := range row.Values {
		c := &ix.Columns.all[i]
		if c.spec.Origin != manifest.OriginFile {
			continue
		}
		buffer, err = c.readArray(ix.Columns.arrays, ix.Dir, v, buffer)
		if trouble := hostTrouble(err); trouble != nil {
			return buffer, "", trouble
		}
		if err != nil {
			return buffer, c.unreadable(v, err), nil
		}
	}
	return buffer, "", nil
}

// unreadable says why the array of a row cannot be used.
func (c *column) unreadable(v Value, err error) string {
	return reasonOf(fmt.Errorf("%s: %s: %w", c.spec.Column, v.data, err))
}

// hashArray hashes the bytes of an array.
func hashArray(from *array.Reader, dir string, v Value) (content half, err error) {
	path, tensor := arrayOf(dir, v)
	f, err := from.Open(path, tensor)
	if err != nil {
		return content, err
	}
	defer f.Close()
	h := sha256.New()
	if _, err := io.Copy(h, f.Data()); err != nil {
		return content, err
	}
	return half(h.Sum(nil)), nil
}
