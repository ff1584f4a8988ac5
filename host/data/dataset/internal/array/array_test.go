package array

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"

	"github.com/xtts-host/xtts-host/host/data/dataset/internal/array/arraytest"
	"github.com/xtts-host/xtts-host/ortgraphs/safetensors"
	"github.com/xtts-host/xtts-host/shared/hint"
	"github.com/xtts-host/xtts-host/shared/manifest"
)

func file(t testing.TB, name string, content []byte) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), name)
	if err := os.WriteFile(path, content, 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

// read opens a .npy file and converts it.
func read(t testing.TB, content []byte, to manifest.DType) (*File, []byte, error) {
	t.Helper()
	f, err := NewReader().Open(file(t, "a.npy", content), "")
	if err != nil {
		return nil, nil, err
	}
	defer f.Close()
	out := make([]byte, f.Elements()*to.Size())
	return f, out, f.Read(out, to)
}

func TestTypes(t *testing.T) {
	le := binary.LittleEndian
	f32 := func(v ...float32) (b []byte) {
		for _, x := range v {
			b = le.AppendUint32(b, math.Float32bits(x))
		}
		return b
	}
	i32 := func(v ...int32) (b []byte) {
		for _, x := range v {
			b = le.AppendUint32(b, uint32(x))
		}
		return b
	}
	for _, c := range []struct {
		descr string
		data  []byte
		to    manifest.DType
		want  []byte
	}{
		{"<f4", f32(1.5, -2), manifest.F32, f32(1.5, -2)},
		{"<f8", le.AppendUint64(nil, math.Float64bits(0.1)), manifest.F32, f32(0.1)},
		// 1, the largest, the least normal, the least subnormal, -0: IEEE 754-2019, table 3.5.
		{"<f2", []byte{0, 0x3c, 0xff, 0x7b, 0, 4, 1, 0, 0, 0x80}, manifest.F32, f32(
			1, 65504, 1.0/(1<<14), 1.0/(1<<24), float32(math.Copysign(0, -1)),
		)},
		{"|i1", []byte{0xff, 5}, manifest.I32, i32(-1, 5)},
		{"|u1", []byte{0xff, 5}, manifest.I32, i32(255, 5)},
		{"<i2", []byte{0xfe, 0xff}, manifest.I32, i32(-2)},
		{"<u2", []byte{0xfe, 0xff}, manifest.I32, i32(65534)},
		{"<i4", i32(-7), manifest.I32, i32(-7)},
		{"<u4", i32(7), manifest.I32, i32(7)},
		{"<i8", le.AppendUint64(nil, ^uint64(8)), manifest.I32, i32(-9)},
		{"<u8", le.AppendUint64(nil, 1<<31-1), manifest.I32, i32(1<<31 - 1)},
		{"<i8", le.AppendUint64(nil, 200), manifest.U8, []byte{200}},
		{"|b1", []byte{1, 0}, manifest.Bool, []byte{1, 0}},
	} {
		_, got, err := read(t,
			append([]byte(arraytest.Header(c.descr, fmt.Sprintf("(%d,)", len(c.want)/c.to.Size()))), c.data...), c.to)
		if err != nil || !bytes.Equal(got, c.want) {
			t.Errorf("%s as %s: %v, %v, want %v", c.descr, c.to, got, err, c.want)
		}
	}
	long := make([]int32, 5000) // more than is converted at once
	for i := range long {
		long[i] = int32(i)
	}
	if _, got, err := read(t, arraytest.Ints(long...), manifest.I32); err != nil || !bytes.Equal(got, i32(long...)) {
		t.Errorf("long array: %v", err)
	}
}

func TestHeaders(t *testing.T) {
	data := make([]byte, 24)
	for _, c := range []struct {
		name, header string
		shape        []int
	}{
		{"version 1", arraytest.Version(1, "{'descr': '<f4', 'fortran_order': False, 'shape': (2, 3), }"), []int{2, 3}},
		{"version 2", arraytest.Version(2, "{'descr': '<f4', 'fortran_order': False, 'shape': (6,), }"), []int{6}},
		{
			"version 3, other writers", arraytest.Version(3, `{"shape":(3L,2L),"fortran_order":False,"descr":"<f4"}`),
			[]int{3, 2},
		},
		{
			"one axis has no order", arraytest.Version(1, "{'descr': '<f4', 'fortran_order': True, 'shape': (6,), }"),
			[]int{6},
		},
		{"one value", arraytest.Version(1, "{'descr': '<f8', 'fortran_order': False, 'shape': (), }"), []int{}},
	} {
		size := len(data)
		if len(c.shape) == 0 {
			size = 8
		}
		f, _, err := read(t, append([]byte(c.header), data[:size]...), manifest.F32)
		if err != nil || !reflect.DeepEqual(f.Shape, c.shape) {
			t.Errorf("%s: %+v, %v", c.name, f, err)
		}
	}
}

func TestRefusals(t *testing.T) {
	six := make([]byte, 24)
	dictionary := func(text string) []byte { return append([]byte(arraytest.Version(1, text)), six...) }
	huge := []byte("\x93NUMPY\x02\x00\xff\xff\xff\xff{}")
	for _, c := range []struct {
		name    string
		content []byte
		want    string
	}{
		{
			"pickled objects", dictionary("{'descr': '|O', 'fortran_order': False, 'shape': (6,), }"),
			"the array has Python objects, which are not read",
		},
		{
			"fields", dictionary("{'descr': [('a', '<f4')], 'fortran_order': False, 'shape': (6,), }"),
			"the array has a structured type",
		},
		{
			"big-endian", dictionary("{'descr': '>f4', 'fortran_order': False, 'shape': (6,), }"),
			`the type is ">f4", big-endian`,
		},
		{
			"complex", dictionary("{'descr': '<c8', 'fortran_order': False, 'shape': (3,), }"),
			`the type is "<c8", which is not one of numbers`,
		},
		{"text", dictionary("{'descr': '<U3', 'fortran_order': False, 'shape': (2,), }"), `the type is "<U3"`},
		{"no type", dictionary("{'descr': '', 'fortran_order': False, 'shape': (2,), }"), `the type is ""`},
		{
			"Fortran order", dictionary("{'descr': '<f4', 'fortran_order': True, 'shape': (2, 3), }"),
			"the array is in Fortran order",
		},
		{
			"too large a shape", dictionary("{'descr': '<f4', 'fortran_order': False, 'shape': (7,), }"),
			"float32 of shape [7], which does not fill the 24 bytes",
		},
		{
			"too small a shape", dictionary("{'descr': '<f4', 'fortran_order': False, 'shape': (5,), }"),
			"does not fill the 24 bytes",
		},
		{
			"a shape that overflows",
			dictionary(
				"{'descr': '<f4', 'fortran_order': False, 'shape': (2305843009213693951, 2305843009213693951), }",
			),
			"does not fill the 24 bytes",
		},
		{
			"negative", dictionary("{'descr': '<f4', 'fortran_order': False, 'shape': (-6,), }"),
			"not that of a .npy file",
		},
		{
			"many axes",
			dictionary("{'descr': '<f4', 'fortran_order': False, 'shape': (" + strings.Repeat("1,", 40) + "), }"),
			"not that of a .npy file",
		},
		{
			"twice", dictionary("{'descr': '<f4', 'descr': '<f4', 'fortran_order': False, 'shape': (6,), }"),
			`the header has "descr" twice`,
		},
		{"lacks the order", dictionary("{'descr': '<f4', 'shape': (6,), }"), "the header lacks one of"},
		{
			"expression", dictionary("{'descr': '<f4', 'fortran_order': False, 'shape': eval('1'), }"),
			"not that of a .npy file",
		},
		{
			"key", dictionary("{'descr': '<f4', 'fortran_order': False, 'shape': (6,), 'x': 1}"),
			"not that of a .npy file",
		},
		{
			"more after it", dictionary("{'descr': '<f4', 'fortran_order': False, 'shape': (6,), } import os"),
			"not that of a .npy file",
		},
		{"huge header", huge, "a header of 4294967295 bytes, more than 65536"},
		{"version", []byte("\x93NUMPY\x09\x00\x00\x00\x00\x00\x00"), "version 9 of the .npy format"},
		{"cut", []byte(arraytest.Header("<f4", "(6,)"))[:40], "the file ends within the header"},
		{"short", []byte("\x93NUMPY\x01"), "the file ends within the header"},
		{"empty", nil, "not a .npy file"},
		{"a zip file", []byte("PK\x03\x04, as numpy.savez writes"), "not a .npy file"},
	} {
		if _, _, err := read(t, c.content, manifest.F32); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: %v, want %s", c.name, err, c.want)
		}
	}
	for _, c := range []struct {
		content []byte
		to      manifest.DType
		want    string
	}{
		{
			append([]byte(arraytest.Header("<i8", "(2,)")), 1, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1, 0, 0, 0),
			manifest.I32, "value 1 is 4294967296, which i32 cannot hold",
		},
		{
			append([]byte(arraytest.Header("<u8", "(1,)")), bytes.Repeat([]byte{255}, 8)...), manifest.I32,
			"value 0 is 18446744073709551615, which i32",
		},
		{
			append([]byte(arraytest.Header("<i2", "(1,)")), 0xff, 0xff), manifest.U8,
			"value 0 is -1, which u8 cannot hold",
		},
		{append([]byte(arraytest.Header("|b1", "(2,)")), 1, 2), manifest.Bool, "value 1 is 2, which bool cannot hold"},
		{
			append([]byte(arraytest.Header("<f2", "(2,)")), 0, 0, 0, 0x7e), manifest.F32,
			"value 1 is NaN, which a finite f32 cannot hold",
		},
		{
			append(
				[]byte(arraytest.Header("<f8", "(1,)")),
				binary.LittleEndian.AppendUint64(nil, math.Float64bits(1e39))...,
			),
			manifest.F32, "value 0 is 1e+39, which a finite f32",
		},
	} {
		if _, _, err := read(t, c.content, c.to); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%v, want %s", err, c.want)
		}
	}
}

func TestSafetensors(t *testing.T) {
	path := filepath.Join(t.TempDir(), "codes.safetensors")
	save := func(tensors ...safetensors.Tensor) {
		t.Helper()
		var content bytes.Buffer
		if err := safetensors.Write(&content, tensors, nil); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, content.Bytes(), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	save(safetensors.Tensor{
		Name: "a", DType: safetensors.I64, Shape: []int{2},
		Data: []byte{1, 0, 0, 0, 0, 0, 0, 0, 2, 0, 0, 0, 0, 0, 0, 0},
	},
		safetensors.Tensor{Name: "b", DType: safetensors.BF16, Shape: []int{1, 1}, Data: []byte{0x80, 0x3f}})
	r := NewReader()
	get := func(name string, to manifest.DType) ([]byte, error) {
		f, err := r.Open(path, name)
		if err != nil {
			return nil, err
		}
		defer f.Close()
		out := make([]byte, f.Elements()*to.Size())
		return out, f.Read(out, to)
	}
	if got, err := get("a", manifest.I32); err != nil || !bytes.Equal(got, []byte{1, 0, 0, 0, 2, 0, 0, 0}) {
		t.Errorf("%v, %v", got, err)
	}
	if got, err := get("b", manifest.F32); err != nil || !bytes.Equal(got, []byte{0, 0, 0x80, 0x3f}) {
		t.Errorf("%v, %v", got, err)
	}
	if _, err := get("c", manifest.F32); err == nil || err.Error() != `the file has no tensor "c", but 2 others` {
		t.Error(err)
	}
	// A new file of the name has another header.
	save(safetensors.Tensor{Name: "c", DType: safetensors.U8, Shape: []int{1}, Data: []byte{9}})
	if got, err := get("c", manifest.U8); err != nil || got[0] != 9 {
		t.Errorf("%v, %v", got, err)
	}
}

func TestSplit(t *testing.T) {
	for _, c := range []struct{ reference, path, tensor, err string }{
		{"a/b.npy", "a/b.npy", "", ""},
		{"a.safetensors#clip#1", "a.safetensors", "clip#1", ""},
		{"a.safetensors", "", "", "the tensor of the file is not named"},
		{"a.safetensors#", "", "", "no tensor is named after #"},
		{"a.pt", "", "", `files that end in ".pt" are not read`},
		{"a", "", "", "the file has no ending"},
	} {
		path, tensor, err := Split(c.reference)
		if path != c.path || tensor != c.tensor || c.err == "" && err != nil ||
			c.err != "" && (err == nil || err.Error() != c.err || hint.Of(err) == "") {
			t.Errorf("%s: %q, %q, %v", c.reference, path, tensor, err)
		}
	}
}

func FuzzNumPy(f *testing.F) {
	f.Add(arraytest.Ints(1, 2, 3))
	f.Add([]byte(arraytest.Version(2, `{"shape":(3L,2L),"fortran_order":False,"descr":"<f2"}`)))
	f.Add([]byte(arraytest.Header("|b1", "()") + "\x01"))
	f.Fuzz(func(t *testing.T, content []byte) {
		a, err := npy(bytes.NewReader(content), int64(len(content)))
		if err != nil {
			return
		}
		if a.data.Size() > int64(len(content)) {
			t.Fatalf("%d bytes of data in a file of %d", a.data.Size(), len(content))
		}
		for _, to := range []manifest.DType{manifest.F32, manifest.I32, manifest.U8, manifest.Bool} {
			if a.Fits(to) {
				_ = a.Read(make([]byte, a.Elements()*to.Size()), to)
			}
		}
	})
}
