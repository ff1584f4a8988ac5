package checkpoint

import (
	"encoding/binary"
	"errors"
	"math"
	"math/rand/v2"
	"testing"

	"github.com/xtts-host/xtts-host/shared/manifest"
)

// filled returns a tensor of so many values of all magnitudes, each of them finite.
func filled(dtype manifest.DType, n int, random *rand.Rand) Tensor {
	t := Tensor{Name: "w", DType: dtype, Shape: []int{n}}
	for range n {
		bits := random.Uint32()
		if bits&0x7f800000 == 0x7f800000 {
			bits &^= 0x00800000 // the largest exponent of a finite value
		}
		if dtype == manifest.BF16 {
			t.Data = binary.LittleEndian.AppendUint16(t.Data, uint16(bits>>16))
		} else {
			t.Data = binary.LittleEndian.AppendUint32(t.Data, bits)
		}
	}
	return t
}

func (t Tensor) set(at int, v float32) {
	if bits := math.Float32bits(v); t.DType == manifest.BF16 {
		binary.LittleEndian.PutUint16(t.Data[2*at:], uint16(bits>>16))
	} else {
		binary.LittleEndian.PutUint32(t.Data[4*at:], bits)
	}
}

// TestFinite: one bad value at any place is found, and named by its first place; no finite one is taken for a bad one.
func TestFinite(t *testing.T) {
	random := rand.New(rand.NewPCG(1, 2))
	bad := []float32{float32(math.NaN()), float32(math.Inf(1)), float32(math.Inf(-1)), math.Float32frombits(0xffffffff)}
	for _, dtype := range []manifest.DType{manifest.F32, "", manifest.BF16} {
		for n := range 70 {
			tensor := filled(dtype, n, random)
			if err := Finite([]Tensor{tensor}); err != nil {
				t.Fatalf("%s, %d finite values: %v", dtype, n, err)
			}
			for at := range n {
				one := Tensor{tensor.Name, dtype, tensor.Shape, append([]byte{}, tensor.Data...), false, false}
				one.set(at, bad[at%len(bad)])
				found, ok := errors.AsType[*NotFiniteError](Finite([]Tensor{tensor}, []Tensor{tensor, one}))
				if !ok || found.Element != at {
					t.Fatalf("%s, %d values, bad at %d: %v", dtype, n, at, found)
				}
			}
		}
	}
	extreme := Tensor{Data: make([]byte, 64*4)}
	for i := range 64 {
		extreme.set(i, []float32{
			math.MaxFloat32, -math.MaxFloat32, math.SmallestNonzeroFloat32, float32(math.Copysign(0, -1)),
		}[i%4])
	}
	if err := Finite([]Tensor{extreme}, nil); err != nil {
		t.Error(err)
	}
	if err := Finite(); err != nil {
		t.Error(err)
	}
}

// TestNotFiniteIsNamed: the first of several bad values is named by its tensor and place, also of several tensors.
func TestNotFiniteIsNamed(t *testing.T) {
	random := rand.New(rand.NewPCG(3, 4))
	matrix, scalar := filled(manifest.F32, 6, random), filled(manifest.F32, 1, random)
	matrix.Shape, scalar.Shape, scalar.Name = []int{2, 3}, nil, "temperature"
	matrix.set(4, float32(math.Inf(-1)))
	matrix.set(5, float32(math.NaN()))
	scalar.set(0, float32(math.NaN()))
	for want, tensors := range map[string][]Tensor{
		"w[1, 1] is infinite (element 4 of 6, counted from 0)": {matrix, scalar},
		"temperature is NaN": {scalar, matrix},
	} {
		if err := Finite(tensors); err == nil || err.Error() != want {
			t.Errorf("%v, want %s", err, want)
		}
	}
}

func BenchmarkFinite(b *testing.B) {
	tensor := filled(manifest.F32, 16<<20, rand.New(rand.NewPCG(5, 6)))
	b.SetBytes(int64(len(tensor.Data)))
	for b.Loop() {
		if err := Finite([]Tensor{tensor}); err != nil {
			b.Fatal(err)
		}
	}
}
