package ort

import (
	"errors"
	"fmt"
	"math"
	"slices"
	"strings"

	"github.com/xtts-host/xtts-host/shared/manifest"
)

// A node that launches kernels has an operator of the domain KernelDomain, which [KernelCall.Op] names, and one
// attribute, the integer KernelAttribute: the index of its call in [Kernels].
const (
	KernelDomain    = "xtts.host"
	KernelAttribute = "call"
)

// Kernels are what the nodes of KernelDomain in a graph launch.
type Kernels struct {
	// Launch is the address of a C function with the signature of CUDA's cuLaunchKernel. On a GPU it is cuLaunchKernel.
	// On the CPU the stream is NULL, and the function must do the work before it returns.
	Launch uintptr
	// CooperativeLaunch is that of one with the signature of cuLaunchCooperativeKernel. It may be 0 without cooperative
	// launches.
	CooperativeLaunch uintptr
	// Fill, unless 0, is a kernel that is launched for each output before the launches of its call, in a proof. Its
	// arguments are the address of the output and the number of its bytes, 64 bits each.
	Fill uintptr
	// Multiplier computes the launches that have products. It may be nil without any.
	Multiplier *Multiplier
	// Convolver computes the launches that have a convolution. It may be nil without any.
	Convolver *Convolver
	// Calls are the calls of the graph's nodes. Nodes may share a call.
	Calls []KernelCall
}

// KernelCall computes the outputs of a node. It numbers pointers to memory: first the node's inputs, then its outputs,
// then the scratch memory, if there is any. The pointer to an empty tensor may be NULL.
type KernelCall struct {
	// Inputs is the number of the node's inputs, at least 1, which may be of any types.
	Inputs int
	// Outputs are all outputs of the node. Each must have a name in the graph.
	Outputs []KernelOutput
	// Scratch is the number of bytes of memory that is allocated for the duration of the call. Its content is
	// undefined.
	Scratch int
	// Launches are queued one after the other.
	Launches []KernelLaunch
}

// KernelOutput is the type and the shape of an output.
type KernelOutput struct {
	DType manifest.DType
	Shape []int
}

// KernelLaunch is one launch of a kernel whose arguments are pointers to the memory of the call.
type KernelLaunch struct {
	Function uintptr // the CUfunction, loaded in the device's primary context
	Grid     [3]int  // blocks
	Block    int     // threads
	Shared   int     // bytes of dynamic shared memory; more than 48 KB require an attribute of the function
	// Cooperative launches fail unless all blocks can run at the same time, because they wait for each other.
	Cooperative bool
	// Arguments are the numbers of the call's pointers. These stand one after another, so a kernel may take argument 0
	// as a structure of MaxKernelPointers pointers.
	Arguments []int
	// Products, unless nil, are computed by the multiplier instead of a function.
	Products *Products
	// Convolution, unless nil, is computed by the convolver instead of a function.
	Convolution *Convolution
	// Host, unless nil, is called instead: a run that captures a CUDA graph calls it, one that replays it does not. It
	// may queue work that reads and writes the memory of the call, on the stream of the run, or on another one that
	// waits for it. It is called on the thread of Run, and must not run the session.
	Host func() error `json:"-"`
}

// Products are matrix products of one form, A B, of matrices that are in memory row by row. The scratch memory of the
// call begins with the addresses of all A, of all B and of all results, 64 bits each. What follows is the library's,
// from Workspace bytes on.
//
// One product may be planned: the library chooses an algorithm for it. The call's first inputs are A and B, its first
// output is the result, and all of the scratch memory is the library's. It may add a bias and a residual, A B + bias +
// residual: the next inputs, in this order. A bias has Columns elements, a residual is a matrix as the result.
type Products struct {
	DType                manifest.DType // F32 or BF16, of all matrices; sums are f32
	Count                int
	Rows, Inner, Columns int // of A B: [Rows, Inner] [Inner, Columns]
	// Transposed says which of A and B are in memory with their dimensions exchanged.
	Transposed [2]bool
	Workspace  int
	Planned    bool
	Bias       bool
	Residual   bool
	// Gelu, with a bias and without a residual, makes the result GELU of the sum, by the formula with tanh. A second
	// output is the sum itself.
	Gelu bool
}

// Multiplier is a library of matrix products. Only one session may run at a time.
type Multiplier struct {
	Handle                               uintptr // of cublasCreate
	SetStream, SetWorkspace, GemmBatched uintptr // cublasSetStream, cublasSetWorkspace, cublasGemmBatchedEx
	// Linear is the address of a function that queues a planned product, Check that of one that says whether it can,
	// and Forget that of one that frees what it has planned; kernelcall.h has their signatures. LinearHandle is the
	// first argument of the first two.
	LinearHandle, Linear, Check, Forget uintptr
	// TF32 rounds the operands of products in f32, as [CUDA.TF32] does.
	TF32 bool
}

// Op returns the name of the call's operator, which depends only on the types of the outputs.
func (c KernelCall) Op() string {
	name := "KernelCall"
	for _, o := range c.Outputs {
		name += "_" + strings.ToUpper(string(o.DType))
	}
	return name
}

// check returns an error if ONNX Runtime or CUDA could not execute the calls.
func (k *Kernels) check() error {
	if k.Launch == 0 {
		return errors.New("kernels without a launch function")
	}
	for i, c := range k.Calls {
		if k.Multiplier == nil &&
			slices.ContainsFunc(c.Launches, func(l KernelLaunch) bool { return l.Products != nil }) {
			return fmt.Errorf("kernel call %d: products without a multiplier", i)
		}
		if k.Convolver == nil &&
			slices.ContainsFunc(c.Launches, func(l KernelLaunch) bool { return l.Convolution != nil }) {
			return fmt.Errorf("kernel call %d: a convolution without a convolver", i)
		}
		if k.CooperativeLaunch == 0 &&
			slices.ContainsFunc(c.Launches, func(l KernelLaunch) bool { return l.Cooperative }) {
			return fmt.Errorf("kernel call %d: a cooperative launch without a function for it", i)
		}
		if err := c.check(); err != nil {
			return fmt.Errorf("kernel call %d: %w", i, err)
		}
	}
	return nil
}

func (c KernelCall) check() error {
	switch pointers := c.pointers(); {
	case c.Inputs < 1:
		return fmt.Errorf("%d inputs, but a node of ONNX Runtime has at least one", c.Inputs)
	case len(c.Outputs) == 0:
		return errors.New("no outputs")
	case c.Scratch < 0:
		return fmt.Errorf("%d bytes of scratch memory", c.Scratch)
	case pointers > MaxKernelPointers:
		return fmt.Errorf("%d pointers, at most %d are possible", pointers, MaxKernelPointers)
	case len(c.Launches) == 0:
		return errors.New("no launches")
	}
	for i, o := range c.Outputs {
		if _, ok := elementTypes[o.DType]; !ok {
			return fmt.Errorf("output %d: unknown element type %q", i, string(o.DType))
		}
		for _, d := range o.Shape {
			if d < 0 {
				return fmt.Errorf("output %d: dimension %d is negative", i, d)
			}
		}
	}
	for i, l := range c.Launches {
		check := func() error { return l.check(c.pointers()) }
		switch {
		case l.Products != nil:
			check = func() error { return l.Products.check(c) }
		case l.Convolution != nil:
			check = func() error { return l.Convolution.check(c) }
		case l.Host != nil:
			check = func() error { return nil }
		}
		if err := check(); err != nil {
			return fmt.Errorf("launch %d: %w", i, err)
		}
	}
	return nil
}

func (p *Products) check(c KernelCall) error {
	switch scratch := c.Scratch; {
	case p.DType != manifest.F32 && p.DType != manifest.BF16:
		return fmt.Errorf("products of %q", string(p.DType))
	case min(p.Count, p.Rows, p.Inner, p.Columns) < 1 || max(p.Count, p.Rows, p.Inner, p.Columns) > math.MaxInt32:
		return fmt.Errorf("%d products of %d x %d and %d x %d", p.Count, p.Rows, p.Inner, p.Inner, p.Columns)
	case p.Gelu && (!p.Bias || p.Residual):
		return errors.New("GELU of products without a bias, or with a residual")
	case (p.Bias || p.Residual) && !p.Planned:
		return errors.New("a bias or a residual of a product that is not planned")
	case p.Planned && p.Count > 1:
		return fmt.Errorf("%d planned products", p.Count)
	case p.Planned && (c.Inputs != p.inputs() || scratch == 0):
		return fmt.Errorf("a planned product has %d inputs and %d bytes of scratch memory", c.Inputs, scratch)
	case p.Planned && len(c.Outputs) != 1 && !(p.Gelu && len(c.Outputs) == 2):
		return fmt.Errorf("a planned product has %d outputs", len(c.Outputs))
	case p.Planned:
	case p.Workspace < 3*8*p.Count || scratch < p.Workspace:
		return fmt.Errorf("%d bytes of scratch memory, %d of them before the workspace, for %d products", scratch,
			p.Workspace, p.Count)
	}
	return nil
}

// inputs is how many inputs the call of a planned product has.
func (p *Products) inputs() int {
	n := 2
	if p.Bias {
		n++
	}
	if p.Residual {
		n++
	}
	return n
}

// pointers returns how many pointers the call numbers.
func (c KernelCall) pointers() int {
	n := c.Inputs + len(c.Outputs)
	if c.Scratch > 0 {
		n++
	}
	return n
}

func (l KernelLaunch) check(pointers int) error {
	const x, yz = math.MaxInt32, math.MaxUint16 // CUDA's limits of a grid
	switch g := l.Grid; {
	case l.Function == 0:
		return errors.New("no function")
	case g[0] < 1 || g[0] > x || g[1] < 1 || g[1] > yz || g[2] < 1 || g[2] > yz:
		return fmt.Errorf("the grid %v is not between 1 and [%d %d %d]", g, x, yz, yz)
	case l.Block < 1 || l.Block > 1024:
		return fmt.Errorf("a block of %d threads is not between 1 and 1024", l.Block)
	case l.Shared < 0 || l.Shared > math.MaxInt32:
		return fmt.Errorf("%d bytes of shared memory", l.Shared)
	case len(l.Arguments) > MaxKernelPointers:
		return fmt.Errorf("%d arguments, at most %d are possible", len(l.Arguments), MaxKernelPointers)
	}
	for i, a := range l.Arguments {
		if a < 0 || a >= pointers {
			return fmt.Errorf("argument %d is pointer %d, but the call has only %d pointers", i, a, pointers)
		}
	}
	return nil
}
