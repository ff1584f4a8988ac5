package safetensors_test

import (
	"bytes"
	"encoding/binary"
	"errors"
	"io"
	"io/fs"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	nlp "github.com/nlpodyssey/safetensors"

	"github.com/xtts-host/xtts-host/ortgraphs/safetensors"
)

func floats(v ...float32) []byte {
	var b []byte
	for _, x := range v {
		b = binary.LittleEndian.AppendUint32(b, math.Float32bits(x))
	}
	return b
}

func write(t testing.TB, tensors []safetensors.Tensor, metadata map[string]string) []byte {
	t.Helper()
	var b bytes.Buffer
	if err := safetensors.Write(&b, tensors, metadata); err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}

// python.safetensors was written by the safetensors package 0.8.0 for Python from the tensors below.
var pythonTensors = []safetensors.Tensor{
	{Name: "scale", DType: safetensors.F32, Data: floats(3)},
	{Name: "b.weight", DType: safetensors.F32, Shape: []int{2, 3}, Data: floats(0, 1, 2, 3, 4, 5)},
	{Name: "n", DType: nlp.I64, Shape: []int{1}, Data: binary.LittleEndian.AppendUint64(nil, 7)},
	{Name: "a.bias", DType: safetensors.F32, Shape: []int{2}, Data: floats(1.5, -2)},
	{Name: "h", DType: safetensors.F16, Shape: []int{3}, Data: []byte{0, 0x3c, 0, 0x40, 0, 0x42}},
}

func TestReadsWhatPythonWrote(t *testing.T) {
	f, err := safetensors.Open("testdata/python.safetensors")
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	if got := f.Metadata()["format"]; got != "pt" {
		t.Errorf("metadata format = %q, want pt", got)
	}
	if got := len(f.Tensors()); got != len(pythonTensors) {
		t.Errorf("%d tensors, want %d", got, len(pythonTensors))
	}
	for _, want := range pythonTensors {
		info, ok := f.Tensor(want.Name)
		if !ok {
			t.Errorf("no tensor %q", want.Name)
			continue
		}
		if info.DType != want.DType || !slices.Equal(info.Shape, want.Shape) {
			t.Errorf("%s is %s%v, want %s%v", want.Name, info.DType, info.Shape, want.DType, want.Shape)
		}
		data := make([]byte, info.Bytes)
		if err := f.Read(want.Name, data); err != nil {
			t.Error(err)
		}
		if !bytes.Equal(data, want.Data) {
			t.Errorf("%s = %v, want %v", want.Name, data, want.Data)
		}
	}
	if err := f.Close(); err != nil {
		t.Error(err)
	}
	if err := f.Close(); err != nil {
		t.Errorf("second Close: %v", err)
	}
}

func TestWriteLaysOutDataAsPythonDoes(t *testing.T) {
	python, err := os.ReadFile("testdata/python.safetensors")
	if err != nil {
		t.Fatal(err)
	}
	ours := write(t, pythonTensors, map[string]string{"format": "pt"})
	data := func(b []byte) []byte { return b[8+binary.LittleEndian.Uint64(b):] }
	if !bytes.Equal(data(ours), data(python)) {
		t.Errorf("data\n got %v\nwant %v", data(ours), data(python))
	}
	if n := len(ours) - len(data(ours)); n%8 != 0 {
		t.Errorf("data begins at byte %d, not at a multiple of 8", n)
	}
}

func TestWriteIsDeterministic(t *testing.T) {
	want := write(t, pythonTensors, map[string]string{"a": "1", "b": "2"})
	turned := slices.Clone(pythonTensors)
	slices.Reverse(turned)
	for range 20 {
		if got := write(t, turned, map[string]string{"b": "2", "a": "1"}); !bytes.Equal(got, want) {
			t.Fatal("equal tensors gave other bytes")
		}
	}
}

// Weights have gigabytes: their bytes must be written without a copy.
func TestWriteDoesNotCopyData(t *testing.T) {
	data := make([]byte, 4<<20)
	var w aliasWriter
	w.want = &data[0]
	if err := safetensors.Write(
		&w, []safetensors.Tensor{{Name: "x", DType: safetensors.F32, Shape: []int{1 << 20}, Data: data}}, nil,
	); err != nil {
		t.Fatal(err)
	}
	if !w.seen {
		t.Error("the writer never got the tensor's own bytes")
	}
}

type aliasWriter struct {
	want *byte
	seen bool
}

func (w *aliasWriter) Write(p []byte) (int, error) {
	w.seen = w.seen || &p[0] == w.want
	return len(p), nil
}

func TestWriteRefuses(t *testing.T) {
	one := safetensors.Tensor{Name: "a", DType: safetensors.F32, Shape: []int{1}, Data: floats(1)}
	for name, tensors := range map[string][]safetensors.Tensor{
		"a name twice":     {one, one},
		"too little data":  {{Name: "a", DType: safetensors.F32, Shape: []int{2}, Data: floats(1)}},
		"negative size":    {{Name: "a", DType: safetensors.F32, Shape: []int{-1}, Data: floats(1)}},
		"overflow":         {{Name: "a", DType: safetensors.F32, Shape: []int{1 << 40, 1 << 40}}},
		"the metadata key": {{Name: "__metadata__", DType: safetensors.F32, Data: floats(1)}},
		"broken UTF-8":     {{Name: "a\xff", DType: safetensors.F32, Data: floats(1)}},
	} {
		if err := safetensors.Write(io.Discard, tensors, nil); err == nil {
			t.Errorf("%s: no error", name)
		}
	}
	if err := safetensors.Write(failing{}, []safetensors.Tensor{one}, nil); !errors.Is(err, errFull) {
		t.Errorf("a failing writer gave %v", err)
	}
}

var errFull = errors.New("full")

type failing struct{}

func (failing) Write([]byte) (int, error) { return 0, errFull }

func file(header string, data int) []byte {
	b := binary.LittleEndian.AppendUint64(nil, uint64(len(header)))
	return append(append(b, header...), make([]byte, data)...)
}

var hostile = map[string][]byte{
	"empty file":          {},
	"no header":           make([]byte, 8),
	"huge header":         binary.LittleEndian.AppendUint64(nil, 1<<60),
	"header past the end": file("{}", 0)[:9],
	"header is a list":    file(`[]`, 0),
	"header is null":      file(`null`, 0),
	"leading space":       file(` {}`, 0),
	"two values":          file(`{}{}`, 0),
	"not JSON":            file(`{"a":`, 0),
	"deep nesting":        file(`{"a":`+strings.Repeat("[", 1000)+strings.Repeat("]", 1000)+`}`, 0),
	"too many elements":   file(`{"a":{"dtype":"F32","shape":[4294967296,4294967296],"data_offsets":[0,4]}}`, 4),
	"negative offsets":    file(`{"a":{"dtype":"F32","shape":[1],"data_offsets":[-4,0]}}`, 4),
	"hole":                file(`{"a":{"dtype":"F32","shape":[1],"data_offsets":[4,8]}}`, 8),
	"overlap": file(
		`{"a":{"dtype":"F32","shape":[1],"data_offsets":[0,4]},"b":{"dtype":"F32","shape":[1],"data_offsets":[0,4]}}`,
		4),
	"negative shape":   file(`{"a":{"dtype":"F32","shape":[-1],"data_offsets":[0,4]}}`, 4),
	"fractional shape": file(`{"a":{"dtype":"F32","shape":[1.0],"data_offsets":[0,4]}}`, 4),
	"a name twice": file(
		`{"a":{"dtype":"F32","shape":[1],"data_offsets":[0,4]},"a":{"dtype":"F32","shape":[1],"data_offsets":[0,4]}}`,
		4),
	"a key twice":       file(`{"a":{"dtype":"F64","dtype":"F32","shape":[1],"data_offsets":[0,4]}}`, 4),
	"a key too many":    file(`{"a":{"dtype":"F32","shape":[1],"data_offsets":[0,4],"x":1}}`, 4),
	"unknown dtype":     file(`{"a":{"dtype":"F31","shape":[1],"data_offsets":[0,4]}}`, 4),
	"bytes after":       file(`{"a":{"dtype":"F32","shape":[1],"data_offsets":[0,4]}}`, 8),
	"data missing":      file(`{"a":{"dtype":"F32","shape":[1],"data_offsets":[0,4]}}`, 3),
	"reversed":          file(`{"a":{"dtype":"F32","shape":[1],"data_offsets":[4,0]}}`, 4),
	"one offset":        file(`{"a":{"dtype":"F32","shape":[1],"data_offsets":[0]}}`, 4),
	"tensor is null":    file(`{"a":null}`, 0),
	"metadata not text": file(`{"__metadata__":{"a":1}}`, 0),
}

func TestRefusesHostileFiles(t *testing.T) {
	for name, b := range hostile {
		_, err := safetensors.NewReader(bytes.NewReader(b), int64(len(b)))
		if !errors.Is(err, safetensors.ErrFormat) {
			t.Errorf("%s: %v, want ErrFormat", name, err)
		}
	}
}

func TestOpenErrors(t *testing.T) {
	dir := t.TempDir()
	if _, err := safetensors.Open(filepath.Join(dir, "none")); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("a missing file gave %v", err)
	}
	if _, err := safetensors.Open(dir); err == nil || !strings.Contains(err.Error(), dir) {
		t.Errorf("a folder gave %v", err)
	}
	bad := filepath.Join(dir, "bad.safetensors")
	if err := os.WriteFile(bad, []byte("no"), 0o644); err != nil {
		t.Fatal(err)
	}
	if _, err := safetensors.Open(bad); !errors.Is(err, safetensors.ErrFormat) || !strings.Contains(err.Error(), bad) {
		t.Errorf("a broken file gave %v", err)
	}
}

func TestReadErrors(t *testing.T) {
	b := write(t, pythonTensors, nil)
	r, err := safetensors.NewReader(bytes.NewReader(b), int64(len(b)))
	if err != nil {
		t.Fatal(err)
	}
	if err := r.Read("other", nil); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("an unknown name gave %v", err)
	}
	if err := r.Read("scale", make([]byte, 8)); err == nil {
		t.Error("a buffer of the wrong size was taken")
	}
	shrunk, err := safetensors.NewReader(shrinking{bytes.NewReader(b), int64(len(b) - 4)}, int64(len(b)))
	if err != nil {
		t.Fatal(err)
	}
	last := shrunk.Tensors()[len(pythonTensors)-1]
	if err := shrunk.Read(last.Name, make([]byte, last.Bytes)); !errors.Is(err, io.ErrUnexpectedEOF) {
		t.Errorf("a file that shrank gave %v", err)
	}
}

// shrinking is a file that was truncated after its size was read.
type shrinking struct {
	io.ReaderAt
	end int64
}

func (s shrinking) ReadAt(p []byte, off int64) (int, error) {
	return io.NewSectionReader(s.ReaderAt, 0, s.end).ReadAt(p, off)
}

func FuzzNewReader(f *testing.F) {
	for _, b := range hostile {
		f.Add(b)
	}
	f.Add(write(f, pythonTensors, map[string]string{"format": "pt"}))
	f.Add(file(
		`{"a":{"dtype":"F32","shape":[0],"data_offsets":[0,0]},"b":{"dtype":"F32","shape":[1],"data_offsets":[0,4]}}`,
		4))
	f.Fuzz(func(t *testing.T, b []byte) {
		r, err := safetensors.NewReader(bytes.NewReader(b), int64(len(b)))
		if err != nil {
			return
		}
		var tensors []safetensors.Tensor
		for _, info := range r.Tensors() {
			data := make([]byte, info.Bytes)
			if err := r.Read(info.Name, data); err != nil {
				t.Fatal(err)
			}
			tensors = append(tensors,
				safetensors.Tensor{Name: info.Name, DType: info.DType, Shape: info.Shape, Data: data})
		}
		// An accepted file can be written and read again.
		again := write(t, tensors, r.Metadata())
		if _, err := safetensors.NewReader(bytes.NewReader(again), int64(len(again))); err != nil {
			t.Fatal(err)
		}
	})
}
