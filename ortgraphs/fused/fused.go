// Package fused makes graphs that run their regions as kernels: package fuse finds the regions, package cudac writes
// their programs, and ONNX Runtime launches them from nodes of the graph.
//
//	p, err := fused.NewPlan(file, map[string]int{"B": 16, "T_text": 128, "T_mel": 448}, fused.Form{})
//	...
//	programs, err := compiler.Compile(p.Sources())
//	...
//	failed := p.Load(programs)
//	...
//	model, kernels, err := p.Link(nil)
//	...
//	session, err := ort.NewSession(ort.SessionConfig{Model: model, Kernels: kernels, ...})
//
// A plan is for one batch size and one bucket. It needs no GPU.
package fused

import (
	"cmp"
	"fmt"
	"math"
	"slices"

	"google.golang.org/protobuf/proto"

	"github.com/xtts-host/xtts-host/ortgraphs/fuse"
	"github.com/xtts-host/xtts-host/ortgraphs/fuse/cudac"
	"github.com/xtts-host/xtts-host/ortgraphs/onnxpb"
	"github.com/xtts-host/xtts-host/ortgraphs/ort"
	"github.com/xtts-host/xtts-host/ortgraphs/shapes"
)

// Plan is a graph with fixed sizes that is divided into regions, with a program for each.
type Plan struct {
	graph       *fuse.Graph
	regions     []*fuse.Region
	kernels     []*cudac.Kernel // nil for a region that stays plain
	launch      uintptr         // as in Programs
	cooperative uintptr         // the function that launches kernels whose blocks wait for each other
	sums        uintptr         // the function that completes column sums
	proof       proofFunctions
	library     *ort.Multiplier   // of products that regions are
	convolver   *ort.Convolver    // of convolutions that regions are
	calls       []*ort.KernelCall // by region, of loaded programs; nil for a region that stays plain
	keys        []string          // of loaded kernels, by region, as far as they are known
	// Narrowed is the number of attentions whose matrices are rounded to bf16 because the form says so.
	Narrowed int
	// Left says why regions stay plain: the reason for each.
	Left    []string
	reasons map[int]string // by region
	lower   func() (*fuse.Graph, error)
	again   func(refused map[fuse.ConvolutionForm]error) (*Plan, error)
}

// Form says how a graph may differ from the file, and which GPU it is for.
type Form struct {
	// BF16Attention rounds the matrices of attention in f32 to bf16, so that it gets kernels of its own.
	BF16Attention bool
	// Capability is the compute capability of the GPU that runs the programs, times ten, or 0 for any that fused graphs
	// can run on.
	Capability int
	// WindowBytes is [fuse.Graph.WindowBytes].
	WindowBytes int
	// Multiprocessors are those of the GPU that runs the programs.
	Multiprocessors cudac.Multiprocessors
}

// NewPlan divides the graph of an ONNX file into regions and writes their programs. sizes are those of the graph's
// symbols.
func NewPlan(file []byte, sizes map[string]int, form Form) (*Plan, error) {
	model := &onnxpb.ModelProto{}
	if err := proto.Unmarshal(file, model); err != nil {
		return nil, err
	}
	return PlanOf(model, sizes, form)
}

// PlanOf is NewPlan for a graph that has been read.
func PlanOf(model *onnxpb.ModelProto, sizes map[string]int, form Form) (*Plan, error) {
	r, err := shapes.Infer(model, sizes)
	if err != nil {
		return nil, err
	}
	return planOf(r, form, nil)
}

// planOf plans a graph with windows in memory for some convolutions.
func planOf(r *shapes.Result, form Form, refused map[fuse.ConvolutionForm]error) (*Plan, error) {
	g, err := fuse.Lower(r)
	if err != nil {
		return nil, err
	}
	target := cudac.TargetOf(form.Capability, form.Multiprocessors)
	g.WindowBytes, g.Refused = form.WindowBytes, refused
	g.Unsupported = func(r *fuse.Region) error {
		_, err := kernelOf(r, target)
		return err
	}
	narrowed := 0
	if form.BF16Attention {
		narrowed = fuse.NarrowAttention(g)
	}
	p := &Plan{Narrowed: narrowed, graph: g, regions: fuse.Partition(g)}
	p.lower = func() (*fuse.Graph, error) { return fuse.Lower(r) }
	p.again = func(refused map[fuse.ConvolutionForm]error) (*Plan, error) { return planOf(r, form, refused) }
	p.calls = make([]*ort.KernelCall, len(p.regions))
	p.reasons = map[int]string{}
	for i, r := range p.regions {
		k, err := kernelOf(r, target)
		if err != nil {
			p.reasons[i] = err.Error()
			p.Left = append(p.Left, fmt.Sprintf("%s: %v", r.Ops(), err))
		}
		p.kernels = append(p.kernels, k)
	}
	return p, nil
}

// kernelOf writes the program of a region, or says why the region stays plain.
func kernelOf(r *fuse.Region, target cudac.Target) (*cudac.Kernel, error) {
	k, err := cudac.Generate(r, target)
	if err == nil {
		err = fits(r, k)
	}
	if err != nil {
		return nil, err
	}
	return k, nil
}

// Kernels returns the names of the functions that compute a region, in the order in which they run. A profiler shows
// the same names, except on GPUs of compute capability 9.0. [cudac.SumsFunction] completes sums over columns, for many
// regions at once. The error says why the region stays plain.
func Kernels(r *fuse.Region) (names []string, err error) {
	k, err := kernelOf(r, cudac.Target{})
	if err != nil {
		return nil, err
	}
	for _, l := range k.Launches {
		if l.Products == nil && l.Convolution == nil {
			names = append(names, l.Function)
		}
	}
	return names, nil
}

// fits returns an error if a node of ONNX Runtime cannot launch the kernel.
func fits(r *fuse.Region, k *cudac.Kernel) error {
	switch n := len(k.In) + len(r.Out) + 1; { // and the scratch memory; Out has a tensor more if there are partial sums
	case len(k.In) == 0:
		return fmt.Errorf("it reads nothing")
	case n > ort.MaxKernelPointers:
		return fmt.Errorf("it has %d inputs and outputs", n-1)
	}
	for _, l := range k.Launches {
		if l.Blocks[0] > math.MaxInt32 || l.Blocks[1] > math.MaxUint16 {
			return fmt.Errorf("its grid is %v", l.Blocks)
		}
	}
	return nil
}

// Regions is the number of regions. The other methods number them from 0.
func (p *Plan) Regions() int { return len(p.regions) }

// Compiled reports whether a region has a program.
func (p *Plan) Compiled(region int) bool { return p.kernels[region] != nil }

// Describe returns what a region computes, for messages.
func (p *Plan) Describe(region int) string {
	r := p.regions[region]
	return fmt.Sprintf("%s over %v, which computes %s", r.Ops(), r.Domain, r.Out[0].Name)
}

// Unfused is how many bytes more a step moves through memory if regions run without their kernels: those that have
// none, and those that plain accepts.
func (p *Plan) Unfused(plain func(region int) bool) (bytes int) {
	for i, r := range p.regions {
		if p.kernels[i] == nil || plain(i) {
			bytes += max(0, r.Plain()-r.Read-r.Written)
		}
	}
	return bytes
}

// Sources returns the different programs, complete.
func (p *Plan) Sources() []string {
	seen := map[string]bool{}
	var list []string
	for _, k := range p.kernels {
		if k != nil && k.Source != "" && !seen[k.Source] {
			seen[k.Source] = true
			list = append(list, cudac.Prelude+k.Source)
		}
	}
	if slices.ContainsFunc(p.kernels, func(k *cudac.Kernel) bool { return k != nil && len(k.Sums) > 0 }) {
		list = append(list, cudac.Prelude+cudac.Sums)
	}
	return append(list, cudac.Prelude+cudac.Proof)
}

// Source is the program of a region without the prelude, or "" if it stays plain.
func (p *Plan) Source(region int) string {
	if k := p.kernels[region]; k != nil {
		return k.Source
	}
	return ""
}

// Load finds the functions of the plan's programs. Its result says for which regions a function is missing, and why:
// these stay plain.
func (p *Plan) Load(programs Programs) (failed map[int]error) {
	p.launch, p.cooperative, failed, p.keys = programs.Launch(), programs.CooperativeLaunch(), map[int]error{}, nil
	var refused error
	p.sums, refused = programs.Function(cudac.Prelude+cudac.Sums, cudac.SumsFunction, 0)
	p.proof = findProof(programs)
	var lacks error
	p.library, lacks = programs.Multiplier()
	noConvolver := p.findConvolver(programs)
	for i, k := range p.kernels {
		if p.calls[i] = nil; k == nil {
			continue
		}
		call, err := p.newCall(i, programs)
		if len(k.Sums) > 0 {
			err = cmp.Or(err, refused)
		}
		if slices.ContainsFunc(k.Launches, func(l cudac.Launch) bool { return l.Products != nil }) {
			if err = cmp.Or(err, lacks); err == nil && p.library != nil { // a draft has none
				err = p.library.CanCompute(*call)
			}
		}
		if convolves(k) {
			if err = cmp.Or(err, noConvolver); err == nil && p.convolver != nil { // a draft has none
				err = p.reserve(k, call)
			}
		}
		if err != nil {
			failed[i] = err
			continue
		}
		p.calls[i] = call
	}
	return failed
}

// Draft returns the graph as Link writes it if all programs can be loaded, for what looks at its nodes. It cannot run.
// Programs that were loaded before are no longer used.
func (p *Plan) Draft() (*onnxpb.ModelProto, error) {
	p.Load(unloaded{})
	model, _, err := p.link(nil, nil)
	return model, err
}

// Link writes the graph with a kernel call for each region whose program is loaded, except those that plain accepts;
// plain may be nil. The graph calls the hooks one after the other.
func (p *Plan) Link(plain func(region int) bool, hooks ...Hook) (model []byte, kernels *ort.Kernels, err error) {
	m, kernels, err := p.link(plain, hooks)
	if err != nil {
		return nil, nil, err
	}
	model, err = proto.MarshalOptions{Deterministic: true}.Marshal(m)
	return model, kernels, err
}

// suppliers are the regions of run whose kernels compute what a region reads and only kernels compute. It is complete
// if there is one for each such tensor.
func (p *Plan) suppliers(region int, run []int) (list []int, complete bool) {
	complete = true
	for _, t := range p.regions[region].In {
		if !t.OfKernels() {
			continue
		}
		at := slices.IndexFunc(run, func(i int) bool { return slices.Contains(p.regions[i].Out, t) })
		if at < 0 {
			complete = false
			continue
		}
		list = append(list, run[at])
	}
	return list, complete
}

// supplied reports whether what only other kernels compute, and a region reads, is computed by those of run.
func (p *Plan) supplied(region int, run []int) bool {
	_, complete := p.suppliers(region, run)
	return complete
}

func (p *Plan) link(plain func(region int) bool, hooks []Hook) (*onnxpb.ModelProto, *ort.Kernels, error) {
	l := newLinking(p)
	var run []int
	for i, c := range p.calls {
		if c != nil && (plain == nil || !plain(i)) && p.supplied(i, run) {
			run = append(run, i)
		}
	}
	l.groupSums(run)
	m, err := p.graph.Model(p.regions, func(r *fuse.Region) []*fuse.Call {
		i := slices.Index(p.regions, r)
		if !slices.Contains(run, i) {
			return nil
		}
		return l.calls(i)
	})
	if err == nil {
		l.hook(m, hooks)
	}
	return m, l.kernels, err
}
