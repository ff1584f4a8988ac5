package ort

/*
#include "kernelcall.h"
*/
import "C"

import (
	"fmt"

	"github.com/xtts-host/xtts-host/shared/manifest"
)

// ConvolutionPass is what a [Convolution] computes, and what its call reads.
type ConvolutionPass int

const (
	ConvolveForward   ConvolutionPass = iota // y of x and w
	ConvolveOfInput                          // the gradient of x, of that of y and w
	ConvolveOfWeights                        // the gradient of w, of x and that of y
)

// Convolution is a convolution over two dimensions, or one of its gradients; sums are f32. x is in memory as [Batch,
// Size, Channels], y as [Batch, ResultSize, Results], w as [Results, Kernel, Channels / Groups]. Zeros surround x. The
// call's two inputs are those of the pass, its only output is the result, and all of the scratch memory is the
// library's.
type Convolution struct {
	Pass                                                      ConvolutionPass
	DType                                                     manifest.DType // F32 or BF16, of all three
	Batch, Channels, Results, Groups                          int
	Size, ResultSize, Kernel, Stride, Dilation, Before, After [2]int
}

// Convolver is a library of convolutions. Only one session may run at a time, since its handle has one stream and one
// list of plans. The handle knows whether operands in f32 are rounded to TF32. gpu/cudnn has the signatures of the
// functions: Convolve queues a convolution, Check says whether it can.
type Convolver struct {
	Handle, Convolve, Check uintptr
}

func (c *Convolution) check(call KernelCall) error {
	smallest, fits := min(c.Batch, c.Channels, c.Results, c.Groups), true
	for i := range 2 {
		smallest = min(smallest, c.Size[i], c.ResultSize[i], c.Kernel[i], c.Stride[i], c.Dilation[i])
		left := c.Size[i] + c.Before[i] + c.After[i] - (c.Kernel[i]-1)*c.Dilation[i] - 1
		fits = fits && c.Before[i] >= 0 && c.After[i] >= 0 && left >= 0 && left/max(1, c.Stride[i])+1 == c.ResultSize[i]
	}
	switch {
	case c.DType != manifest.F32 && c.DType != manifest.BF16:
		return fmt.Errorf("a convolution of %q", string(c.DType))
	case smallest < 1 || !fits || c.Channels%c.Groups != 0 || c.Results%c.Groups != 0:
		return fmt.Errorf("the sizes of a convolution are %+v", *c)
	case call.Inputs != 2 || len(call.Outputs) != 1 || call.Scratch == 0:
		return fmt.Errorf("a convolution has %d inputs, %d outputs and %d bytes of scratch memory", call.Inputs,
			len(call.Outputs), call.Scratch)
	case call.Outputs[0].DType != c.DType || elements(call.Outputs[0].Shape) != c.elements():
		return fmt.Errorf("the result of a convolution has %d elements of %s, not %v of %q", c.elements(), c.DType,
			call.Outputs[0].Shape, string(call.Outputs[0].DType))
	}
	return nil
}

// elements is the number of elements of the result.
func (c *Convolution) elements() int {
	switch c.Pass {
	case ConvolveForward:
		return c.Batch * c.ResultSize[0] * c.ResultSize[1] * c.Results
	case ConvolveOfInput:
		return c.Batch * c.Size[0] * c.Size[1] * c.Channels
	}
	return c.Results * c.Kernel[0] * c.Kernel[1] * c.Channels / c.Groups
}

func elements(shape []int) int {
	n := 1
	for _, d := range shape {
		n *= d
	}
	return n
}

// form is the convolution as the library takes it.
func (c *Convolution) form() C.kernel_convolution {
	types := map[manifest.DType]int{manifest.F32: 0, manifest.BF16: 9} // cuDNN's numbers
	var f C.kernel_convolution
	list := []int{int(c.Pass), types[c.DType], c.Batch, c.Channels, c.Results, c.Groups}
	for _, pair := range [][2]int{c.Size, c.ResultSize, c.Kernel, c.Stride, c.Dilation, c.Before, c.After} {
		list = append(list, pair[:]...)
	}
	for i, n := range list {
		f.numbers[i] = C.int64_t(n)
	}
	return f
}

// convolution translates a convolution, or nil.
func (o *operators) convolution(c *Convolution) *C.kernel_convolution {
	if c == nil {
		return nil
	}
	return inC(o, []C.kernel_convolution{c.form()})
}

// convolver translates it, or nil.
func (o *operators) convolver(v *Convolver) *C.kernel_convolver {
	if v == nil {
		return nil
	}
	c := inC(o, []C.kernel_convolver{{}})
	C.kernel_set_convolver(c, C.uintptr_t(v.Handle), C.uintptr_t(v.Convolve), C.uintptr_t(v.Check))
	return c
}

// CanCompute returns an error if a call has a convolution that the convolver cannot compute on its device.
func (v *Convolver) CanCompute(call KernelCall) error {
	var o operators
	defer o.close()
	convolver := o.convolver(v)
	for _, l := range call.Launches {
		if l.Convolution == nil {
			continue
		}
		if s := C.kernel_check_convolution(convolver, o.convolution(l.Convolution), C.size_t(call.Scratch)); s != 0 {
			return fmt.Errorf("cuDNN has no algorithm for the convolution: failure %d", int(s))
		}
	}
	return nil
}
