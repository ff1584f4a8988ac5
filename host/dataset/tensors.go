package dataset

import (
	"encoding/binary"
	"fmt"
	"math"

	"github.com/xtts-host/xtts-host/shared/manifest"
)

// Specs declares the dataset tensors: everything that a Filler can produce, by name. Integers are i32. Waveforms are in
// [-1,1) at the index's sample rate. An empty row has 0 in every lengths tensor.
func Specs() map[string]manifest.TensorSpec {
	specs := map[string]manifest.TensorSpec{}
	vector := func(name string) {
		specs[name] = manifest.TensorSpec{Name: name, DType: manifest.I32, Origin: "dataset", Shape: manifest.Shape{manifest.Sym(manifest.BatchSymbol)}}
	}
	matrix := func(name string, dtype manifest.DType, symbol, lengths string) {
		specs[name] = manifest.TensorSpec{Name: name, DType: dtype, Origin: "dataset", Lengths: lengths,
			Shape: manifest.Shape{manifest.Sym(manifest.BatchSymbol), manifest.Sym(symbol)}}
		vector(lengths)
	}
	matrix("text_sequences", manifest.I32, manifest.SymbolText, "text_lengths")
	matrix("waveform", manifest.F32, manifest.SymbolWav, "waveform_lengths")
	matrix("reference_waveform", manifest.F32, symbolRef, "reference_lengths")
	vector("speaker_ids")
	vector("language_ids")
	return specs
}

// Tensor is a dataset tensor in memory that the caller owns, such as a ring slot.
type Tensor struct {
	Name  string
	DType manifest.DType
	Shape []int   // [B] or [B,T]
	Pad   float64 // the value after the end of each row, and of empty rows
	Data  []byte  // B*T elements of 4 bytes, little-endian
}

// check compares the tensor with what the data set can produce.
func (t *Tensor) check(spec manifest.TensorSpec, rows int) error {
	n := 1
	for _, d := range t.Shape {
		n *= d
	}
	switch {
	case spec.Name == "":
		return fmt.Errorf("tensor %q is not one that the data set can produce", t.Name)
	case t.DType != spec.DType:
		return fmt.Errorf("tensor %s is %s, but the data set produces %s", t.Name, t.DType, spec.DType)
	case len(t.Shape) != len(spec.Shape) || t.Shape[0] != rows:
		return fmt.Errorf("tensor %s has the shape %v, but the data set produces %s with %d rows", t.Name, t.Shape, spec.Shape, rows)
	case len(t.Data) != n*spec.DType.Size():
		return fmt.Errorf("tensor %s of shape %v has %d bytes, not %d", t.Name, t.Shape, len(t.Data), n*spec.DType.Size())
	}
	return nil
}

// width returns the number of elements of one row.
func (t *Tensor) width() int { return len(t.Data) / 4 / t.Shape[0] }

// row returns the bytes of one row.
func (t *Tensor) row(i int) []byte {
	n := 4 * t.width()
	return t.Data[i*n : (i+1)*n]
}

// padBits returns the bits of the padding element.
func (t *Tensor) padBits() uint32 {
	if t.DType == manifest.F32 {
		return math.Float32bits(float32(t.Pad))
	}
	return uint32(int32(t.Pad))
}

func (t *Tensor) putInts(i int, values []int32) {
	b := t.row(i)
	for k, v := range values {
		binary.LittleEndian.PutUint32(b[4*k:], uint32(v))
	}
	pad(b[4*len(values):], t.padBits())
}

func (t *Tensor) putFloats(i int, values []float32) {
	b := t.row(i)
	for k, v := range values {
		binary.LittleEndian.PutUint32(b[4*k:], math.Float32bits(v))
	}
	pad(b[4*len(values):], t.padBits())
}

func (t *Tensor) putInt(i, value int) {
	binary.LittleEndian.PutUint32(t.row(i), uint32(int32(value)))
}

func pad(b []byte, bits uint32) {
	if bits == 0 {
		clear(b)
		return
	}
	for ; len(b) >= 4; b = b[4:] {
		binary.LittleEndian.PutUint32(b, bits)
	}
}
