package ring

import (
	"encoding/binary"
	"math"
	"testing"

	"github.com/xtts-host/xtts-host/shared/manifest"
)

// TestNotFinite puts a value in each place of a tensor whose row size is not a multiple of 8 bytes.
func TestNotFinite(t *testing.T) {
	f64 := math.Float64bits
	f32 := func(v float64) uint64 { return uint64(math.Float32bits(float32(v))) }
	inf, nan := math.Inf(1), math.NaN()
	for _, tt := range []struct {
		dtype manifest.DType
		bits  uint64
		want  bool // whether it must be found
	}{
		{manifest.F32, f32(nan), true}, {manifest.F32, f32(inf), true}, {manifest.F32, f32(-inf), true},
		{manifest.F32, 0xff80_0001, true}, // a signalling NaN with a sign
		{manifest.F32, f32(math.MaxFloat32), false}, {manifest.F32, f32(-math.MaxFloat32), false},
		{manifest.F32, f32(math.Copysign(0, -1)), false}, {manifest.F64, f64(nan), true},
		{manifest.F64, f64(-inf), true}, {manifest.F64, f64(-math.MaxFloat64), false}, {manifest.BF16, 0x7fc0, true},
		{manifest.BF16, 0xff80, true}, {manifest.BF16, 0xff7f, false}, {manifest.F16, 0x7e00, true},
		{manifest.F16, 0xfc00, true}, {manifest.F16, 0xfbff, false}, {manifest.I32, f32(nan), false},
		{manifest.U8, 0xff, false},
	} {
		l := NewLayout([]Tensor{{Name: "t", DType: tt.dtype, Shape: []int{3, 7, 5}}}, nil)
		x, slot := l.Tensors[0], make([]byte, l.Size)
		size := tt.dtype.Size()
		for i := 0; i < x.Bytes(); i += size {
			var word [8]byte
			binary.LittleEndian.PutUint64(word[:], tt.bits)
			copy(slot[i:i+size], word[:])
			want := -1
			if tt.want {
				want = i / size / 35
			}
			if got := x.NotFinite(slot, 0); got != want {
				t.Fatalf("%s %#x at element %d: row %d, want %d", tt.dtype, tt.bits, i/size, got, want)
			}
			if got := x.NotFinite(slot, want+1); got != -1 {
				t.Fatalf("%s %#x at element %d: another one in row %d", tt.dtype, tt.bits, i/size, got)
			}
			clear(slot[i : i+size])
		}
	}
}

func BenchmarkNotFinite(b *testing.B) {
	l := NewLayout([]Tensor{{Name: "mel", DType: manifest.F32, Shape: []int{16, 500, 80}}}, nil)
	slot := make([]byte, l.Size)
	b.SetBytes(int64(l.Tensors[0].Bytes()))
	for b.Loop() {
		if row := l.Tensors[0].NotFinite(slot, 0); row >= 0 {
			b.Fatal(row)
		}
	}
}

func TestBeyond(t *testing.T) {
	l := NewLayout([]Tensor{{Name: "t", DType: manifest.F32, Shape: []int{3, 7}}}, nil)
	x, slot := l.Tensors[0], make([]byte, l.Size)
	for _, tt := range []struct {
		value float64
		want  bool
	}{
		{10, false}, {-10, false}, {10.001, true}, {-10.001, true}, {1e30, true}, {math.Inf(-1), true},
		{math.NaN(), true}, {1e-30, false},
	} {
		for i := range 21 {
			binary.LittleEndian.PutUint32(x.In(slot)[4*i:], math.Float32bits(float32(tt.value)))
			want := -1
			if tt.want {
				want = i / 7
			}
			if got := x.Beyond(slot, 10); got != want {
				t.Fatalf("%g at element %d: row %d, want %d", tt.value, i, got, want)
			}
			if x.Zero(slot, i/7) || !x.Zero(slot, (i/7+1)%3) {
				t.Fatalf("%g at element %d: which rows are zero is wrong", tt.value, i)
			}
			clear(x.In(slot)[4*i : 4*i+4])
		}
	}
}
