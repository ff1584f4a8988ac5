package train

import (
	"strings"
	"testing"
	"unsafe"
)

// fakeSums are the kernels of gpu/kernels/squares.cu on the CPU, with an error in each sum of squares: one thread adds
// up everything, and the others nothing.
func fakeSums(off float32) map[string]func([]uint64) {
	add := func(a []uint64, square func(at unsafe.Pointer, i int) float32) {
		// as addresses they are no numbers
		at := func(i int) unsafe.Pointer { return *(*unsafe.Pointer)(unsafe.Pointer(&a[i])) }
		sum := float64(0)
		for i := range int(a[2]) {
			sum += float64(square(at(0), i))
		}
		*(*float32)(at(1)) = float32(sum)
	}
	return map[string]func([]uint64){
		"squares_bf16": func(a []uint64) {
			add(a, func(at unsafe.Pointer, i int) float32 {
				x := widen(unsafe.Slice((*byte)(at), 2*(i+1))[2*i:])[0]
				return x*x + off
			})
		},
		"fold": func(a []uint64) {
			add(a, func(at unsafe.Pointer, i int) float32 { return unsafe.Slice((*float32)(at), i+1)[i] })
		},
	}
}

// TestSquaresKernelIsCompared: the kernel is used when its sums are right, and only then.
func TestSquaresKernelIsCompared(t *testing.T) {
	for name, c := range map[string]struct {
		kernels map[string]func([]uint64)
		fault   string // "" when it is used
	}{
		"right": {fakeSums(0), ""},
		"wrong": {fakeSums(1e-3), "the kernel sums up squares to "},
		"none":  {nil, "kernel "},
	} {
		t.Run(name, func(t *testing.T) {
			d, _ := fakeWith(t, c.kernels)
			m := newMemory(d)
			defer m.Close()
			k, fault, err := newSquaresKernel(&m)
			if err != nil || (k != nil) != (c.fault == "") || (fault == nil) != (c.fault == "") {
				t.Fatalf("%v, %v, %v", k, fault, err)
			}
			if fault != nil && !strings.HasPrefix(fault.Error(), c.fault) {
				t.Errorf("%v, want %s", fault, c.fault)
			}
		})
	}
}
