package fused

import (
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

// canConvolve says why the library cannot compute a convolution. In f32, it may need the memory of all three operands
// once more, to copy them into another order.
func (p *Plan) canConvolve(k *cudac.Kernel, call *ort.KernelCall) error {
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
// are in memory. It is the same plan if there are none.
func (p *Plan) Computable(programs Programs) (*Plan, error) {
	refused := maps.Clone(p.graph.Refused)
	if refused == nil {
		refused = map[fuse.ConvolutionForm]bool{}
	}
	lacks := p.findConvolver(programs)
	for i, k := range p.kernels {
		if !convolves(k) {
			continue
		}
		call, err := p.newCall(i, programs)
		if err == nil && lacks == nil {
			err = p.canConvolve(k, call)
		}
		if err != nil || lacks != nil {
			refused[k.Launches[0].Convolution.ConvolutionForm] = true
		}
	}
	if len(refused) == len(p.graph.Refused) {
		return p, nil
	}
	return p.again(refused)
}
