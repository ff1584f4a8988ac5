package fused

import (
	"slices"

	"google.golang.org/protobuf/proto"

	"github.com/xtts-host/xtts-host/ortgraphs/fuse"
	"github.com/xtts-host/xtts-host/ortgraphs/fuse/cudac"
	"github.com/xtts-host/xtts-host/ortgraphs/onnxpb"
	"github.com/xtts-host/xtts-host/ortgraphs/ort"
	"github.com/xtts-host/xtts-host/ortgraphs/shapes"
	"github.com/xtts-host/xtts-host/shared/manifest"
)

// newCall translates the kernel of a region. Its last output are the partial sums of its column sums, if it has any.
func (p *Plan) newCall(region int, programs Programs) (*ort.KernelCall, error) {
	k := p.kernels[region]
	call := &ort.KernelCall{Inputs: len(k.In), Scratch: k.Scratch}
	for _, t := range k.Out {
		call.Outputs = append(call.Outputs, p.output(region, t))
	}
	if len(k.Sums) > 0 {
		call.Outputs = append(call.Outputs, ort.KernelOutput{DType: manifest.F32, Shape: []int{k.PartialsLength}})
	}
	for _, l := range k.Launches {
		if l.Products != nil {
			call.Launches = append(call.Launches, ort.KernelLaunch{Products: products(l.Products)})
			continue
		}
		if l.Convolution != nil {
			call.Launches = append(call.Launches, ort.KernelLaunch{Convolution: convolution(l.Convolution)})
			continue
		}
		f, err := programs.Function(cudac.Prelude+k.Source, l.Function, l.Shared)
		if err != nil {
			return nil, err
		}
		call.Launches = append(call.Launches, ort.KernelLaunch{
			Function: f, Grid: [3]int{l.Blocks[0], l.Blocks[1], 1}, Block: l.Threads, Shared: l.Shared,
			Arguments: l.Arguments, Cooperative: l.Cooperative,
		})
	}
	return call, nil
}

// products translates a launch of the library.
func products(p *fuse.Products) *ort.Products {
	return &ort.Products{
		DType: dtypes[p.Type], Count: p.Count, Rows: p.Rows, Inner: p.Inner, Columns: p.Columns,
		Transposed: p.Transposed, Workspace: cudac.TablesBytes(p.Count), Planned: p.Planned, Bias: p.Bias,
		Residual: p.Residual, Gelu: p.Gelu != nil,
	}
}

// convolution translates a launch of the library.
func convolution(c *fuse.Convolution) *ort.Convolution {
	passes := map[fuse.ConvolutionPass]ort.ConvolutionPass{
		fuse.Forward: ort.ConvolveForward, fuse.OfInput: ort.ConvolveOfInput, fuse.OfWeights: ort.ConvolveOfWeights,
	}
	return &ort.Convolution{
		Pass: passes[c.Pass], DType: dtypes[c.Type], Batch: c.Batch, Channels: c.Channels, Results: c.Results,
		Groups: c.Groups, Size: c.Size, ResultSize: c.ResultSize, Kernel: c.Kernel, Stride: c.Stride,
		Dilation: c.Dilation, Before: c.Before, After: c.After,
	}
}

// output describes an output of a region.
func (p *Plan) output(region int, t *fuse.Tensor) ort.KernelOutput {
	return ort.KernelOutput{DType: dtypes[t.Type], Shape: p.shape(region, t)}
}

// shape is the shape in which a region writes a tensor.
func (p *Plan) shape(region int, t *fuse.Tensor) []int {
	r := p.regions[region]
	for i, o := range r.Out {
		if o == t {
			return r.Shapes[i]
		}
	}
	return t.Shape
}

// linking is a graph with kernel calls in the making.
type linking struct {
	plan    *Plan
	kernels *ort.Kernels
	// completed has the regions whose column sums are completed after a region.
	completed map[int][]int
	partials  map[int]*fuse.Tensor // by region
}

func newLinking(p *Plan) *linking {
	kernels := &ort.Kernels{
		Launch: p.launch, CooperativeLaunch: p.cooperative, Multiplier: p.library, Convolver: p.convolver,
	}
	return &linking{plan: p, kernels: kernels, completed: map[int][]int{}, partials: map[int]*fuse.Tensor{}}
}

// Limits of the sums that one launch completes: their partial sums stay in memory until then.
const (
	maxPartialBytes = 32 << 20
	maxSumsPointers = 200
)

// The program Sums reads all pointers of a call, used or not.
var _ = [1]struct{}{}[cudac.SumsPointers-ort.MaxKernelPointers]

// groupSums decides where the column sums of regions are completed: many by one launch, but before any node reads them.
func (l *linking) groupSums(run []int) {
	read := l.plan.graph.Read()
	var open []int
	bytes, pointers := 0, 0
	flush := func(after int) {
		if len(open) > 0 {
			l.completed[after] = open
		}
		open, bytes, pointers = nil, 0, 0
	}
	last := 0
	for _, i := range run {
		k := l.plan.kernels[i]
		if len(k.Sums) == 0 {
			continue
		}
		if pointers+1+len(k.Sums) > maxSumsPointers || bytes+4*k.PartialsLength > maxPartialBytes {
			flush(last)
		}
		open, bytes, pointers, last = append(open, i), bytes+4*k.PartialsLength, pointers+1+len(k.Sums), i
		if slices.ContainsFunc(k.Sums, func(s cudac.Sum) bool { return read[s.Out] }) {
			flush(i)
		}
	}
	flush(last)
}

// calls returns the calls that compute a region, and those that complete sums after it.
func (l *linking) calls(region int) []*fuse.Call {
	k, call := l.plan.kernels[region], l.plan.calls[region]
	node := l.node(*call, k.In, k.Out)
	if len(k.Sums) > 0 {
		partials := &fuse.Tensor{Name: "partials", Type: onnxpb.TensorProto_FLOAT, Shape: []int{k.PartialsLength}}
		l.partials[region] = partials
		node.Out = append(node.Out[:len(node.Out):len(node.Out)], partials)
	}
	list := []*fuse.Call{node}
	if regions := l.completed[region]; len(regions) > 0 {
		list = append(list, l.sums(regions))
	}
	return list
}

// node is the node of a call.
func (l *linking) node(call ort.KernelCall, in, out []*fuse.Tensor) *fuse.Call {
	l.kernels.Calls = append(l.kernels.Calls, call)
	c := &fuse.Call{Op: call.Op(), Domain: ort.KernelDomain, In: in, Out: out, Attributes: []*onnxpb.AttributeProto{{
		Name: proto.String(ort.KernelAttribute), Type: onnxpb.AttributeProto_INT.Enum(),
		I: proto.Int64(int64(len(l.kernels.Calls) - 1)),
	}}}
	for _, o := range call.Outputs {
		c.Shapes = append(c.Shapes, o.Shape)
	}
	return c
}

// sums is the call that completes the column sums of regions.
func (l *linking) sums(regions []int) *fuse.Call {
	table := &fuse.Tensor{Name: "table", Type: onnxpb.TensorProto_INT64, Constant: true}
	in, out := []*fuse.Tensor{table}, []*fuse.Tensor(nil)
	call := ort.KernelCall{}
	var jobs []cudac.Job
	for i, region := range regions {
		in = append(in, l.partials[region])
		for _, s := range l.plan.kernels[region].Sums {
			jobs = append(jobs, cudac.Job{Sum: s, Source: 1 + i, Result: 1 + len(regions) + len(out)})
			out = append(out, s.Out)
			call.Outputs = append(call.Outputs, l.plan.output(region, s.Out))
		}
	}
	var blocks int
	table.Data, blocks = cudac.SumsTable(jobs)
	table.Shape = []int{len(table.Data)}
	call.Inputs = len(in)
	call.Launches = []ort.KernelLaunch{
		{Function: l.plan.sums, Grid: [3]int{blocks, 1, 1}, Block: cudac.SumsThreads, Arguments: []int{0}},
	}
	return l.node(call, in, out)
}

// dtypes are the element types of kernels.
var dtypes = map[shapes.Type]manifest.DType{
	onnxpb.TensorProto_FLOAT: manifest.F32, onnxpb.TensorProto_BFLOAT16: manifest.BF16,
	onnxpb.TensorProto_DOUBLE: manifest.F64,
	onnxpb.TensorProto_INT32:  manifest.I32, onnxpb.TensorProto_INT64: manifest.I64,
	onnxpb.TensorProto_BOOL: manifest.Bool,
}
