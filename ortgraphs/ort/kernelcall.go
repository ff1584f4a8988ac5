package ort

/*
#cgo CFLAGS: -fexceptions
#include <stdlib.h>
#include "kernelcall.h"
*/
import "C"

import (
	"fmt"
	"runtime/cgo"
	"unsafe"

	onnx "github.com/yalue/onnxruntime_go"

	"github.com/xtts-host/xtts-host/shared/manifest"
)

// MaxKernelPointers is how many pointers a call may have, and a launch as arguments.
const MaxKernelPointers = C.KERNEL_POINTERS

// operators are the custom operators of a session, which refer to them until it is released. All is in C memory. The
// zero value has none.
type operators struct {
	domain   *C.OrtCustomOpDomain
	memory   []unsafe.Pointer
	products *C.kernel_multiplier
	plans    []*unsafe.Pointer // of planned products
	hosts    []cgo.Handle      // of Go functions that launches call
}

// newOperators creates the operators of a session at a place; k may be nil. Close them also after an error.
func newOperators(k *Kernels, place Place) (operators, error) {
	var o operators
	if k == nil {
		return o, nil
	}
	if err := k.check(); err != nil {
		return o, err
	}
	info, err := memoryInfo(place)
	if err != nil {
		return o, err
	}
	if err := check(C.kernel_new_domain(o.string(KernelDomain), &o.domain)); err != nil {
		return o, fmt.Errorf("operators of %s: %w", KernelDomain, err)
	}
	o.products = o.multiplier(k.Multiplier)
	set := inC(&o, []C.kernel_set{{
		launch: C.uintptr_t(k.Launch), cooperative_launch: C.uintptr_t(k.CooperativeLaunch),
		fill: C.uintptr_t(k.Fill), cuda: C.bool(place != Host), memory: info,
		multiplier: o.products, convolver: o.convolver(k.Convolver),
	}})
	calls := make([]C.kernel_call, len(k.Calls))
	byName := map[string]*C.kernel_op{}
	for i, call := range k.Calls {
		calls[i] = o.call(call)
		name := call.Op()
		if byName[name] == nil {
			if byName[name], err = o.add(name, set, &calls[i]); err != nil {
				return o, fmt.Errorf("operator %s: %w", name, err)
			}
		}
		calls[i].set, calls[i].index, calls[i].op = set, C.size_t(i), byName[name]
	}
	set.calls, set.call_count = inC(&o, calls), C.size_t(len(calls))
	return o, nil
}

// add creates the operator for calls with the output types of first.
func (o *operators) add(name string, set *C.kernel_set, first *C.kernel_call) (*C.kernel_op, error) {
	op := C.kernel_new_op(o.string(name), set, first)
	o.memory = append(o.memory, unsafe.Pointer(op))
	return op, check(C.kernel_add_op(o.domain, op))
}

// call translates a call, apart from its place among the others.
func (o *operators) call(call KernelCall) C.kernel_call {
	outputs := make([]C.kernel_output, len(call.Outputs))
	for i, out := range call.Outputs {
		shape := convert[C.int64_t](out.Shape)
		bytes := out.DType.Size()
		for _, d := range out.Shape {
			bytes *= d
		}
		outputs[i] = C.kernel_output{
			C.ONNXTensorElementDataType(elementTypes[out.DType]), inC(o, shape), C.size_t(len(shape)), C.size_t(bytes),
		}
	}
	launches := make([]C.kernel_launch, len(call.Launches))
	for i, l := range call.Launches {
		launches[i] = C.kernel_launch{
			function:       C.uintptr_t(l.Function),
			grid:           [3]C.uint{C.uint(l.Grid[0]), C.uint(l.Grid[1]), C.uint(l.Grid[2])},
			block:          C.uint(l.Block),
			shared:         C.uint(l.Shared),
			cooperative:    C.bool(l.Cooperative),
			arguments:      inC(o, convert[C.int32_t](l.Arguments)),
			argument_count: C.size_t(len(l.Arguments)),
			products:       o.product(l.Products),
			convolution:    o.convolution(l.Convolution),
			host:           o.host(l.Host),
		}
	}
	return C.kernel_call{
		inputs:       C.size_t(call.Inputs),
		scratch:      C.size_t(call.Scratch),
		outputs:      inC(o, outputs),
		output_count: C.size_t(len(outputs)),
		launches:     inC(o, launches),
		launch_count: C.size_t(len(launches)),
	}
}

// product translates products, or nil.
func (o *operators) product(p *Products) *C.kernel_products {
	if p == nil {
		return nil
	}
	turned := [2]C.int{}
	for i, t := range p.Transposed {
		if t {
			turned[i] = 1
		}
	}
	var plan *unsafe.Pointer
	if p.Planned {
		plan = inC(o, []unsafe.Pointer{nil})
		o.plans = append(o.plans, plan)
	}
	return inC(o, []C.kernel_products{{
		count: C.int(p.Count), rows: C.int(p.Rows), inner: C.int(p.Inner), columns: C.int(p.Columns),
		transposed: turned, bf16: p.DType == manifest.BF16, bias: C.bool(p.Bias), residual: C.bool(p.Residual),
		gelu: C.bool(p.Gelu), workspace: C.size_t(p.Workspace), plan: plan,
	}})
}

// host returns the handle of a function that a launch calls, or 0 for nil.
func (o *operators) host(f func() error) C.uintptr_t {
	if f == nil {
		return 0
	}
	h := cgo.NewHandle(f)
	o.hosts = append(o.hosts, h)
	return C.uintptr_t(h)
}

//export kernelHost
func kernelHost(handle C.uintptr_t) *C.char {
	if err := cgo.Handle(handle).Value().(func() error)(); err != nil {
		return C.CString(err.Error())
	}
	return nil
}

// multiplier translates it, or nil.
func (o *operators) multiplier(m *Multiplier) *C.kernel_multiplier {
	if m == nil {
		return nil
	}
	c := inC(o, []C.kernel_multiplier{{tf32: C.bool(m.TF32)}})
	// The addresses are numbers in Go, which cannot be converted to pointers there.
	C.kernel_set_functions(c, C.uintptr_t(m.Handle), C.uintptr_t(m.SetStream), C.uintptr_t(m.SetWorkspace),
		C.uintptr_t(m.GemmBatched))
	C.kernel_set_linear(c, C.uintptr_t(m.LinearHandle), C.uintptr_t(m.Linear), C.uintptr_t(m.Check),
		C.uintptr_t(m.Forget))
	return c
}

// CanCompute returns an error if a call has a planned product that the multiplier cannot compute on its device.
func (m *Multiplier) CanCompute(call KernelCall) error {
	var o operators
	defer o.close()
	o.products = o.multiplier(m)
	for _, l := range call.Launches {
		if l.Products == nil || !l.Products.Planned {
			continue
		}
		if status := C.kernel_check(
			o.products, o.product(l.Products), len(call.Outputs) > 1, C.size_t(call.Scratch),
		); status != 0 {
			return fmt.Errorf("cuBLAS has no algorithm for the product: failure %d", int(status))
		}
	}
	return nil
}

// inC copies a list to C memory.
func inC[T any](o *operators, list []T) *T {
	if len(list) == 0 {
		return nil
	}
	p := C.malloc(C.size_t(len(list)) * C.size_t(unsafe.Sizeof(list[0])))
	o.memory = append(o.memory, p)
	copy(unsafe.Slice((*T)(p), len(list)), list)
	return (*T)(p)
}

func (o *operators) string(s string) *C.char {
	c := C.CString(s)
	o.memory = append(o.memory, unsafe.Pointer(c))
	return c
}

func convert[T C.int32_t | C.int64_t](list []int) []T {
	converted := make([]T, len(list))
	for i, n := range list {
		converted[i] = T(n)
	}
	return converted
}

// addTo makes the operators known to a session. The options' C struct is their only field: see layout_test.go.
func (o *operators) addTo(options *onnx.SessionOptions) error {
	if o.domain == nil {
		return nil
	}
	return check(C.kernel_add_domain(*(**C.OrtSessionOptions)(unsafe.Pointer(options)), o.domain))
}

func (o *operators) close() {
	if o.domain != nil {
		C.kernel_release_domain(o.domain)
	}
	for _, p := range o.plans {
		C.kernel_forget(o.products, p)
	}
	for _, p := range o.memory {
		C.free(p)
	}
	for _, h := range o.hosts {
		h.Delete()
	}
	*o = operators{}
}
