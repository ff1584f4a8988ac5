package safetensors

import (
	"bytes"
	"cmp"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"math"
	"math/bits"
	"slices"

	nlp "github.com/nlpodyssey/safetensors"

	"github.com/xtts-host/xtts-host/host/base/files"
)

// maxHeader bounds the header, in bytes. The format's own limit of 100 MB (https://github.com/huggingface/safetensors,
// README, "Format") allows files whose header takes gigabytes of memory. A tensor takes about 150 bytes of header, so
// this is enough for 50000.
const maxHeader = 8 << 20

// maxRank is the maximum number of dimensions of a tensor. PyTorch has 64.
const maxRank = 64

// maxDepth is the maximum nesting of the header's objects and arrays: all tensors, one tensor, its shape.
const maxDepth = 3

// DType is the element type of a tensor. Its String method returns the name in the file.
type DType = nlp.DType

// The element types of the format.
const (
	F64  = nlp.F64
	F32  = nlp.F32
	F16  = nlp.F16
	BF16 = nlp.BF16
	I64  = nlp.I64
	I32  = nlp.I32
	I16  = nlp.I16
	I8   = nlp.I8
	U64  = nlp.U64
	U32  = nlp.U32
	U16  = nlp.U16
	U8   = nlp.U8
	Bool = nlp.BOOL
)

// ErrFormat is wrapped by every error about an invalid safetensors file.
var ErrFormat = errors.New("not a valid safetensors file")

// Info describes one tensor of a file. A scalar has an empty shape.
type Info struct {
	Name  string
	DType DType
	Shape []int
	// Bytes is the size of the tensor's data, and Offset its place from the start of the file.
	Bytes, Offset int64
}

// Reader reads the tensors of one file. It is safe for concurrent use.
type Reader struct {
	src      io.ReaderAt
	tensors  []Info
	index    map[string]int
	metadata map[string]string
}

// File is a Reader that owns an open file.
type File struct {
	*Reader
	f *files.File
}

// Open opens a file and reads its header. Its errors name the file. The caller closes it.
func Open(path string) (*File, error) {
	f, err := files.Open(path)
	if err != nil {
		return nil, err
	}
	r, err := NewReader(f, f.Size())
	if err != nil {
		f.Close()
		return nil, fmt.Errorf("%s: %w", path, err)
	}
	return &File{Reader: r, f: f}, nil
}

// Close closes the file. It may be called twice.
func (f *File) Close() error {
	if err := f.f.Close(); err != nil && !errors.Is(err, fs.ErrClosed) {
		return err
	}
	return nil
}

// NewReader reads the header of a file of size bytes. The tensors stay in src, which must outlive the Reader.
func NewReader(src io.ReaderAt, size int64) (*Reader, error) {
	if size < 8 {
		return nil, fmt.Errorf("%w: %d bytes, shorter than the length of a header", ErrFormat, size)
	}
	var length [8]byte
	if err := readAt(src, length[:], 0); err != nil {
		return nil, fmt.Errorf("header: %w", err)
	}
	n := binary.LittleEndian.Uint64(length[:])
	if n > uint64(size-8) {
		return nil, fmt.Errorf("%w: header of %d bytes in a file of %d", ErrFormat, n, size)
	}
	if n > maxHeader {
		return nil, fmt.Errorf("%w: header of %d bytes, more than the limit of %d", ErrFormat, n, maxHeader)
	}
	header := make([]byte, n)
	if err := readAt(src, header, 8); err != nil {
		return nil, fmt.Errorf("header: %w", err)
	}
	if n == 0 || header[0] != '{' {
		return nil, fmt.Errorf("%w: the header does not begin with '{'", ErrFormat)
	}
	if err := refuseDuplicates(header); err != nil {
		return nil, fmt.Errorf("%w: header: %w", ErrFormat, err)
	}
	var meta nlp.Metadata
	if err := json.Unmarshal(header, &meta); err != nil {
		return nil, fmt.Errorf("%w: header: %w", ErrFormat, err)
	}
	r := &Reader{src: src, index: map[string]int{}, metadata: meta.Metadata()}
	if err := r.place(meta.Tensors(), 8+int64(n), size); err != nil {
		return nil, fmt.Errorf("%w: %w", ErrFormat, err)
	}
	return r, nil
}

// place checks that the tensors fill the file without a gap or an overlap, each with the number of bytes that its type
// and shape require.
func (r *Reader) place(tensors map[string]*nlp.TensorInfo, start, end int64) error {
	for name, t := range tensors {
		room := uint64(end - start)
		first, last := t.DataOffsets[0], t.DataOffsets[1]
		if first > last || last > room {
			return fmt.Errorf("tensor %q: bytes %d to %d of %d", name, first, last, room)
		}
		shape, size, err := dimensions(t)
		if err != nil {
			return fmt.Errorf("tensor %q: %w", name, err)
		}
		if size != last-first {
			return fmt.Errorf("tensor %q: %s%v needs %d bytes, has %d", name, t.DType, t.Shape, size, last-first)
		}
		r.tensors = append(r.tensors,
			Info{Name: name, DType: t.DType, Shape: shape, Bytes: int64(size), Offset: start + int64(first)})
	}
	slices.SortFunc(r.tensors, func(a, b Info) int {
		switch {
		case a.Offset != b.Offset:
			return cmp.Compare(a.Offset, b.Offset)
		case a.Bytes != b.Bytes: // an empty tensor starts where the next one starts
			return cmp.Compare(a.Bytes, b.Bytes)
		}
		return cmp.Compare(a.Name, b.Name)
	})
	at := start
	for i, t := range r.tensors {
		if t.Offset != at {
			return fmt.Errorf("tensor %q begins at byte %d, but the one before ends at %d", t.Name, t.Offset-start,
				at-start)
		}
		at += t.Bytes
		r.index[t.Name] = i
	}
	if at != end {
		return fmt.Errorf("%d bytes after the last tensor", end-at)
	}
	return nil
}

// dimensions returns the shape and the size in bytes.
func dimensions(t *nlp.TensorInfo) ([]int, uint64, error) {
	if len(t.Shape) > maxRank {
		return nil, 0, fmt.Errorf("%d dimensions, more than %d", len(t.Shape), maxRank)
	}
	size := t.DType.Size()
	shape := make([]int, len(t.Shape))
	for i, d := range t.Shape {
		hi, lo := bits.Mul64(size, d)
		if hi != 0 || d > math.MaxInt || lo > math.MaxInt64 {
			return nil, 0, fmt.Errorf("shape %v is too large", t.Shape)
		}
		shape[i], size = int(d), lo
	}
	return shape, size, nil
}

// refuseDuplicates reads the header's tokens and fails on an object with a duplicate key.
func refuseDuplicates(header []byte) error {
	dec := json.NewDecoder(bytes.NewReader(header))
	type level struct {
		keys map[string]bool // nil in an array
		key  bool            // the next token of an object is a key
	}
	var stack []level
	for {
		token, err := dec.Token()
		if err == io.EOF {
			return nil
		}
		if err != nil {
			return err
		}
		if len(stack) > maxDepth {
			return errors.New("nested too deep")
		}
		switch token {
		case json.Delim('{'):
			stack = append(stack, level{keys: map[string]bool{}, key: true})
			continue
		case json.Delim('['):
			stack = append(stack, level{})
			continue
		case json.Delim('}'), json.Delim(']'):
			stack = stack[:len(stack)-1]
		}
		if len(stack) == 0 || stack[len(stack)-1].keys == nil {
			continue
		}
		top := &stack[len(stack)-1]
		if name, ok := token.(string); ok && top.key {
			if top.keys[name] {
				return fmt.Errorf("%q occurs twice", name)
			}
			top.keys[name], top.key = true, false
		} else {
			top.key = true // a value, or the end of a nested one
		}
	}
}

// Tensors returns the tensors in the order of the file. The caller must not modify them.
func (r *Reader) Tensors() []Info { return r.tensors }

// Tensor returns the tensor of that name, or false.
func (r *Reader) Tensor(name string) (Info, bool) {
	i, ok := r.index[name]
	if !ok {
		return Info{}, false
	}
	return r.tensors[i], true
}

// Metadata returns the texts in the file's metadata. The caller must not modify them.
func (r *Reader) Metadata() map[string]string { return r.metadata }

// Read copies the data of a tensor to dst, which must have exactly its size.
func (r *Reader) Read(name string, dst []byte) error {
	t, ok := r.Tensor(name)
	if !ok {
		return fmt.Errorf("tensor %q: %w", name, fs.ErrNotExist)
	}
	if int64(len(dst)) != t.Bytes {
		return fmt.Errorf("tensor %q: %d bytes for a tensor of %d", name, len(dst), t.Bytes)
	}
	if err := readAt(r.src, dst, t.Offset); err != nil {
		return fmt.Errorf("tensor %q: %w", name, err)
	}
	return nil
}

// readAt fills p. A file that ends too early has shrunk since it was opened.
func readAt(src io.ReaderAt, p []byte, off int64) error {
	n, err := src.ReadAt(p, off)
	if n == len(p) {
		return nil
	}
	if err == io.EOF {
		return io.ErrUnexpectedEOF
	}
	return err
}
