package array

import (
	"fmt"
	"io"
	"os"
	"sync"

	"github.com/xtts-host/xtts-host/host/base/files"
	"github.com/xtts-host/xtts-host/ortgraphs/safetensors"
	"github.com/xtts-host/xtts-host/shared/hint"
)

// maxTensors bounds the tensors of the headers that are kept.
const maxTensors = 500_000

// Reader opens arrays. It keeps the headers of .safetensors files, because one file may have the tensors of many clips.
// It is safe for concurrent use.
type Reader struct {
	mu      sync.Mutex // guards the fields below
	headers map[string]kept
	tensors int // of all headers
}

// kept is the header of a file in a state.
type kept struct {
	state   os.FileInfo
	tensors map[string]safetensors.Info
}

// NewReader returns a reader that knows no header.
func NewReader() *Reader { return &Reader{headers: map[string]kept{}} }

// tensor finds a tensor of an open file.
func (r *Reader) tensor(f *files.File, size int64, path, name string) (*File, error) {
	header, err := r.header(f, size, path)
	if err != nil {
		return nil, err
	}
	t, ok := header[name]
	if !ok {
		return nil, fmt.Errorf("the file has no tensor %.80q, but %d others", name, len(header))
	}
	k, ok := ofSafetensors[t.DType]
	if !ok {
		return nil, hint.Errorf("save f32 or i32", "the tensor is %s, which is not read", t.DType)
	}
	return &File{Shape: t.Shape, kind: k, data: io.NewSectionReader(f, t.Offset, t.Bytes)}, nil
}

func (r *Reader) header(f *files.File, size int64, path string) (map[string]safetensors.Info, error) {
	state, err := f.Stat()
	if err != nil {
		return nil, err
	}
	r.mu.Lock()
	defer r.mu.Unlock() // during the reading, too: others usually want the same file
	known, ok := r.headers[path]
	if ok && os.SameFile(known.state, state) && known.state.Size() == size &&
		known.state.ModTime().Equal(state.ModTime()) {
		return known.tensors, nil
	}
	file, err := safetensors.NewReader(f, size)
	if err != nil {
		return nil, err
	}
	tensors := make(map[string]safetensors.Info, len(file.Tensors()))
	for _, t := range file.Tensors() {
		tensors[t.Name] = t
	}
	r.tensors += len(tensors) - len(known.tensors)
	if r.tensors > maxTensors {
		clear(r.headers)
		r.tensors = len(tensors)
	}
	r.headers[path] = kept{state, tensors}
	return tensors, nil
}
