package train

import (
	"math"
	"strings"
	"testing"
	"unsafe"
)

// fakeAdamW is gpu/kernels/adamw.cu on the CPU, with an error in every new weight.
func fakeAdamW(f forms, off float32) func([]uint64) {
	return func(arguments []uint64) {
		// as addresses they are no numbers
		at := func(i int) unsafe.Pointer { return *(*unsafe.Pointer)(unsafe.Pointer(&arguments[i])) }
		n := 4 // vectors
		if f.copies {
			n++
		}
		elements := int(arguments[n])
		vector := func(i int) []float32 { return unsafe.Slice((*float32)(at(i)), elements) }
		narrowed := func(i int) []byte { return unsafe.Slice((*byte)(at(i)), 2*elements) }
		param, m, v := vector(0), vector(2), vector(3)
		f32 := func(i int) float32 { return math.Float32frombits(uint32(arguments[n+i])) }
		if *(*uint8)(at(n + 3)) == 0 {
			return
		}
		norm, scale, clip := float64(*(*float32)(at(n + 1))), float64(*(*float32)(at(n + 2))), 1.0
		if most := math.Float64frombits(arguments[n+4]); most > 0 {
			clip = min(most/(norm+1e-6), 1)
		}
		grad := func(i int) float32 { return vector(1)[i] }
		if f.gradients {
			wide := widen(narrowed(1))
			grad = func(i int) float32 { return wide[i] }
		}
		by := float32(scale * clip)
		rest1, decay2, rest2, root2, eps, stepSize, keep := f32(5), f32(6), f32(7), f32(8), f32(9), f32(10), f32(11)
		for i := range param { // float32() keeps a compiler from joining a product and a sum
			g := grad(i) * by
			m[i] += float32((g - m[i]) * rest1)
			v[i] = float32(v[i]*decay2) + float32(float32(g*g)*rest2)
			root := float32(math.Sqrt(float64(v[i])))
			param[i] = float32(param[i]*keep) - float32(m[i]/(root/root2+eps)*stepSize) + off
		}
		if f.copies {
			narrow(narrowed(4), param)
		}
	}
}

// fakeKernels has all of them.
func fakeKernels() map[string]func([]uint64) {
	kernels := map[string]func([]uint64){}
	for _, f := range []forms{{}, {copies: true}, {gradients: true, copies: true}} {
		kernels[kernelName("adamw", f)] = fakeAdamW(f, 0)
	}
	return kernels
}

var always uint8 = 1 // of the program's data, which does not move

// TestUpdateKernelIsCompared: a kernel is used when it gives what the graph gives, and only then.
func TestUpdateKernelIsCompared(t *testing.T) {
	for _, c := range []struct {
		name   string
		kernel func([]uint64)
		fault  string // "" when it is used
	}{
		{"right", fakeAdamW(forms{}, 0), ""},
		{"wrong", fakeAdamW(forms{}, 1e-4), "the kernel computes "},
		{"takes what is not finite", func(a []uint64) {
			a[7] = uint64(uintptr(unsafe.Pointer(&always)))
			fakeAdamW(forms{}, 0)(a)
		}, "the kernel computes "},
		{"none", nil, "kernel adamw: no kernel for this GPU"},
	} {
		t.Run(c.name, func(t *testing.T) {
			kernels := map[string]func([]uint64){}
			if c.kernel != nil {
				kernels["adamw"] = c.kernel
			}
			d, _ := fakeWith(t, kernels)
			m, g, _ := picoOn(t, d)
			o := newOptimizer(t, m, g.Optimizer, false)
			inKernel, fault := o.InKernel()
			if inKernel != (c.fault == "") || (fault == nil) != inKernel || (len(o.updates) == 0) != inKernel {
				t.Fatalf("inKernel %v, %d updates by the graph, %v", inKernel, len(o.updates), fault)
			}
			if err := m.Drain(); err != nil { // what is queued names memory that the test's end closes
				t.Error(err)
			}
			if fault != nil && !strings.HasPrefix(fault.Error(), c.fault) {
				t.Errorf("%v, want %s", fault, c.fault)
			}
		})
	}
}
