package train

import (
	"strings"
	"testing"
	"unsafe"

	"github.com/xtts-host/xtts-host/gpu/kernels"
	"github.com/xtts-host/xtts-host/ortgraphs/ort"
	"github.com/xtts-host/xtts-host/shared/manifest"
)

// fakeWeighs are the kernels of gpu/kernels/weigh.cu on the CPU, with an error in each product.
func fakeWeighs(off float32) map[string]func([]uint64) {
	weigh := func(t manifest.DType) func(a []uint64) {
		return func(a []uint64) {
			// as addresses they are no numbers
			at := func(i int) unsafe.Pointer { return *(*unsafe.Pointer)(unsafe.Pointer(&a[i])) }
			grads, by := unsafe.Slice((*byte)(at(0)), int(a[2])*t.Size()), *(*float32)(at(1))
			if t == manifest.BF16 {
				all := widen(grads)
				for i, x := range all {
					all[i] = kernels.Weighed(x, by) + off
				}
				narrow(grads, all)
				return
			}
			for i, x := range ort.View[float32](grads) {
				ort.View[float32](grads)[i] = kernels.Weighed(x, by) + off
			}
		}
	}
	return map[string]func([]uint64){"weigh": weigh(manifest.F32), "weigh_bf16": weigh(manifest.BF16)}
}

// TestWeighKernelIsCompared: the kernel is used when its products are right, and only then.
func TestWeighKernelIsCompared(t *testing.T) {
	half := fakeWeighs(0)
	delete(half, "weigh_bf16")
	for name, c := range map[string]struct {
		kernels map[string]func([]uint64)
		fault   string // "" when it is used
	}{
		"right": {fakeWeighs(0), ""},
		"wrong": {fakeWeighs(1e-2), "the kernel weighs "},
		"half":  {half, "kernel "},
		"none":  {nil, "kernel "},
	} {
		t.Run(name, func(t *testing.T) {
			d, _ := fakeWith(t, c.kernels)
			m := newMemory(d)
			defer m.Close()
			k, fault, err := newWeighKernel(&m)
			if err != nil || (k != nil) != (c.fault == "") || (fault == nil) != (c.fault == "") {
				t.Fatalf("%v, %v, %v", k, fault, err)
			}
			if fault != nil && !strings.HasPrefix(fault.Error(), c.fault) {
				t.Errorf("%v, want %s", fault, c.fault)
			}
		})
	}
}
