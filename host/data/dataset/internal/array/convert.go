package array

import (
	"encoding/binary"
	"fmt"
	"io"
	"math"

	"github.com/xtts-host/xtts-host/ortgraphs/safetensors"
	"github.com/xtts-host/xtts-host/shared/manifest"
)

// class is what the values of a kind are.
type class int

const (
	boolean class = iota
	signed
	unsigned
	float
	brain // bfloat16
)

// kind is an element type of a file.
type kind struct {
	name  string
	class class
	size  int // bytes
}

var ofNumPy = map[string]kind{
	"b1": {"bool", boolean, 1},
	"i1": {"int8", signed, 1}, "i2": {"int16", signed, 2}, "i4": {"int32", signed, 4}, "i8": {"int64", signed, 8},
	"u1": {"uint8", unsigned, 1}, "u2": {"uint16", unsigned, 2}, "u4": {"uint32", unsigned, 4},
	"u8": {"uint64", unsigned, 8}, "f2": {"float16", float, 2}, "f4": {"float32", float, 4},
	"f8": {"float64", float, 8},
}

var ofSafetensors = map[safetensors.DType]kind{
	safetensors.Bool: ofNumPy["b1"], safetensors.U8: ofNumPy["u1"], safetensors.I32: ofNumPy["i4"],
	safetensors.I64: ofNumPy["i8"], safetensors.I8: ofNumPy["i1"], safetensors.I16: ofNumPy["i2"],
	safetensors.U16: ofNumPy["u2"], safetensors.U32: ofNumPy["u4"], safetensors.U64: ofNumPy["u8"],
	safetensors.F16: ofNumPy["f2"], safetensors.F32: ofNumPy["f4"], safetensors.F64: ofNumPy["f8"],
	safetensors.BF16: {"bfloat16", brain, 2},
}

// Fits reports whether Read can convert to a type: integers of any size to i32 and u8, floats of any size to f32, and
// truth values to bool.
func (f *File) Fits(to manifest.DType) bool {
	switch f.kind.class {
	case boolean:
		return to == manifest.Bool
	case signed, unsigned:
		return to == manifest.I32 || to == manifest.U8
	}
	return to == manifest.F32
}

// Read converts all values, little-endian, to a type that Fits. dst has room for exactly them. The error names the
// first value that the type cannot hold, or that is not finite.
func (f *File) Read(dst []byte, to manifest.DType) error {
	size, in := to.Size(), f.kind.size
	if len(dst) != f.Elements()*size {
		return fmt.Errorf("%d bytes for %d values of %s", len(dst), f.Elements(), to)
	}
	var buffer [8 << 10]byte
	for at := int64(0); at < f.data.Size(); at += int64(len(buffer)) {
		part := buffer[:min(int64(len(buffer)), f.data.Size()-at)]
		if n, err := f.data.ReadAt(part, at); n < len(part) {
			if err == io.EOF {
				err = io.ErrUnexpectedEOF
			}
			return err
		}
		for i := 0; i < len(part); i += in {
			n := (int(at) + i) / in
			if !f.kind.convert(dst[n*size:(n+1)*size], part[i:i+in], to) {
				return fmt.Errorf("value %d is %s, which %s cannot hold", n, f.kind.text(part[i:i+in]), limits[to])
			}
		}
	}
	return nil
}

var limits = map[manifest.DType]string{
	manifest.F32: "a finite f32", manifest.I32: "i32", manifest.U8: "u8", manifest.Bool: "bool",
}

// convert converts a value and reports whether the type can hold it.
func (k kind) convert(dst, src []byte, to manifest.DType) bool {
	switch to {
	case manifest.F32:
		v := float32(k.float(src))
		binary.LittleEndian.PutUint32(dst, math.Float32bits(v))
		return v-v == 0
	case manifest.I32:
		v, ok := k.integer(src)
		binary.LittleEndian.PutUint32(dst, uint32(int32(v)))
		return ok && v == int64(int32(v))
	}
	v, ok := k.integer(src)
	dst[0] = byte(v)
	return ok && v >= 0 && (v <= 1 || to == manifest.U8 && v <= math.MaxUint8)
}

// integer returns an integer or a truth value, or false for one beyond int64.
func (k kind) integer(b []byte) (int64, bool) {
	var word [8]byte
	copy(word[:], b)
	v := binary.LittleEndian.Uint64(word[:])
	if k.class != signed {
		return int64(v), v <= math.MaxInt64
	}
	unused := 64 - 8*k.size
	return int64(v<<unused) >> unused, true
}

func (k kind) float(b []byte) float64 {
	switch {
	case k.class == brain:
		return float64(math.Float32frombits(uint32(binary.LittleEndian.Uint16(b)) << 16))
	case k.size == 2:
		return half(binary.LittleEndian.Uint16(b))
	case k.size == 4:
		return float64(math.Float32frombits(binary.LittleEndian.Uint32(b)))
	}
	return math.Float64frombits(binary.LittleEndian.Uint64(b))
}

// half returns the value of an IEEE 754 binary16.
func half(h uint16) float64 {
	exponent, fraction := int(h>>10&31), float64(h&1023)
	v := math.Ldexp(1024+fraction, exponent-25)
	switch {
	case exponent == 0:
		v = math.Ldexp(fraction, -24)
	case exponent == 31 && fraction == 0:
		v = math.Inf(1)
	case exponent == 31:
		v = math.NaN()
	}
	if h>>15 != 0 {
		v = -v
	}
	return v
}

// text writes a value for a message.
func (k kind) text(b []byte) string {
	if k.class == float || k.class == brain {
		return fmt.Sprint(k.float(b))
	}
	v, ok := k.integer(b)
	if !ok {
		return fmt.Sprint(uint64(v))
	}
	return fmt.Sprint(v)
}
