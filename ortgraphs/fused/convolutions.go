package fused

import (
	"cmp"
	"fmt"
	"maps"
	"slices"

	"github.com/xtts-host/xtts-host/ortgraphs/fuse"
	"github.com/xtts-host/xtts-host/ortgraphs/fuse/cudac"
	"github.com/xtts-host/xtts-host/ortgraphs/onnxpb"
	"github.com/xtts-host/xtts-host/ortgraphs/ort"
)

// findConvolver opens the library of convolutions if a region is one. The error says why there is none.
func (p *Plan) findConvolver(programs Programs) (err error) {
	p.convolver = nil
	if slices.ContainsFunc(p.kernels, convolves) {
		p.convolver, err = programs.Convolver()
	}
	return err
}

// convolves reports whether a kernel is a convolution that a library computes.
func convolves(k *cudac.Kernel) bool {
	return k != nil && slices.ContainsFunc(k.Launches, func(l cudac.Launch) bool { return l.Convolution != nil })
}

// reserve gives a call the memory with which the library computes its convolution, or says why it cannot. In f32, it
// may need the memory of all three operands once more, to copy them into another order.
func (p *Plan) reserve(k *cudac.Kernel, call *ort.KernelCall) error {
	err := p.convolver.CanCompute(*call)
	if err == nil || k.Out[0].Type != onnxpb.TensorProto_FLOAT {
		return err
	}
	for _, t := range slices.Concat(k.In, k.Out) {
		call.Scratch += t.Bytes()
	}
	return p.convolver.CanCompute(*call)
}

// Computable returns a plan without those convolutions that the library of the programs cannot compute: their windows
// are in memory. It is the same plan if there are none. The programs need not be those of the plan.
func (p *Plan) Computable(programs Programs) (*Plan, error) {
	for { // a new plan may have convolutions of other forms
		refused, err := p.refuse(programs)
		if err != nil || len(refused) == len(p.graph.Refused) {
			return p, err
		}
		if p, err = p.again(refused); err != nil {
			return nil, err
		}
	}
}

// Refused says why the library does not compute convolutions of the graph: the reason for each form. Their windows are
// in memory, or the gradients of the windows.
func (p *Plan) Refused() (list []string) {
	for form, err := range p.graph.Refused {
		list = append(list, fmt.Sprintf("%s: %v", form.Describe(), err))
	}
	slices.Sort(list)
	return list
}

// refuse returns the forms that the plan leaves out, and those of its convolutions that the library cannot compute.
func (p *Plan) refuse(programs Programs) (map[fuse.ConvolutionForm]error, error) {
	refused := map[fuse.ConvolutionForm]error{}
	maps.Copy(refused, p.graph.Refused)
	lacks := p.findConvolver(programs)
	for i, k := range p.kernels {
		if !convolves(k) {
			continue
		}
		call, err := p.newCall(i, programs)
		if err == nil && lacks == nil {
			err = p.reserve(k, call)
		}
		if err = cmp.Or(lacks, err); err != nil {
			refused[k.Launches[0].Convolution.ConvolutionForm] = err
		}
	}
	return refused, nil
}
