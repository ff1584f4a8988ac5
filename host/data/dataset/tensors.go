package dataset

import (
	"encoding/binary"
	"fmt"
	"math"

	"github.com/xtts-host/xtts-host/shared/manifest"
)

// Specs declares the tensors that a Filler can produce from any list, by name. Integers are i32. Waveforms are in
// [-1,1) at the index's sample rate. An empty row has 0 in every lengths tensor.
func Specs() map[string]manifest.TensorSpec {
	specs := map[string]manifest.TensorSpec{}
	vector := func(name string) {
		specs[name] = manifest.TensorSpec{Name: name, DType: manifest.I32, Origin: "dataset", Shape: manifest.Shape{
			manifest.Sym(manifest.BatchSymbol),
		}}
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
	Shape []int   // [B], [B,T] or longer
	Pad   float64 // the value after the end of each row, and of empty rows
	Data  []byte  // the elements, little-endian
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
		return fmt.Errorf("tensor %s has the shape %v, but the data set produces %s with %d rows", t.Name, t.Shape,
			spec.Shape, rows)
	case len(t.Data) != n*spec.DType.Size():
		return fmt.Errorf("tensor %s of shape %v has %d bytes, not %d", t.Name, t.Shape, len(t.Data),
			n*spec.DType.Size())
	}
	return nil
}

// width returns the number of elements of one row.
func (t *Tensor) width() int { return len(t.row(0)) / t.DType.Size() }

// row returns the bytes of one row.
func (t *Tensor) row(i int) []byte {
	n := len(t.Data) / t.Shape[0]
	return t.Data[i*n : (i+1)*n]
}

// pad fills the rest of a row with the padding element.
func (t *Tensor) pad(b []byte) {
	if t.Pad == 0 {
		clear(b)
		return
	}
	bits := uint32(int32(t.Pad))
	switch t.DType {
	case manifest.F32:
		bits = math.Float32bits(float32(t.Pad))
	case manifest.U8, manifest.Bool:
		for i := range b {
			b[i] = byte(bits)
		}
		return
	}
	for ; len(b) >= 4; b = b[4:] {
		binary.LittleEndian.PutUint32(b, bits)
	}
}

func (t *Tensor) putInts(i int, values []int32) {
	b := t.row(i)
	for k, v := range values {
		binary.LittleEndian.PutUint32(b[4*k:], uint32(v))
	}
	t.pad(b[4*len(values):])
}

func (t *Tensor) putFloats(i int, values []float32) {
	b := t.row(i)
	for k, v := range values {
		binary.LittleEndian.PutUint32(b[4*k:], math.Float32bits(v))
	}
	t.pad(b[4*len(values):])
}

func (t *Tensor) putInt(i, value int) {
	binary.LittleEndian.PutUint32(t.row(i), uint32(int32(value)))
}
