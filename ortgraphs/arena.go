package ortgraphs

import (
	"cmp"
	"fmt"
	"slices"

	"github.com/xtts-host/xtts-host/shared/manifest"
)

// arenaAlign is the alignment, in bytes, of every parameter in every vector. It equals the alignment of CUDA
// allocations, so a kernel can use a view like an allocation.
const arenaAlign = 256

// Vector is one of the flat vectors that contain the parameters of a run.
type Vector int

// The vectors of a run. An optimizer keeps several of the kind State: its moments, and the accumulated gradients.
const (
	Weights   Vector = iota // the f32 masters of all parameters
	Gradients               // of trained parameters, in the type of the graph's output
	State                   // f32, of trained parameters
	Copies                  // bf16, of parameters that the graph reads in bf16
	vectors
)

func (v Vector) String() string {
	return [vectors]string{"weights", "gradients", "state", "copies"}[v]
}

// Policy has the decisions of a run about the parameters of a bundle. The zero value trains all parameters that the
// bundle trains, in f32.
type Policy struct {
	// Frozen names the parameters that the run freezes, in addition to those that the bundle freezes.
	Frozen map[string]bool
	// Precision of the training graph: F32, also when it is empty, or BF16.
	Precision manifest.DType
	// Gradients has the type of a gradient, by parameter, if it differs from the type of the parameter in the graph.
	Gradients map[string]manifest.DType
	// Groups has the parameter group of parameters by name, counted from 1.
	Groups map[string]int
}

// Role describes how a run uses a parameter.
type Role struct {
	// Trained parameters have a gradient and state.
	Trained bool
	// Decay is true if weight decay applies.
	Decay bool
	// Compute is the type in which the graph reads it: F32, the master itself, or BF16, its copy.
	Compute manifest.DType
	// Gradient is the type of the gradient; empty if there is none.
	Gradient manifest.DType
	// Group is the parameter group of a trained parameter, counted from 1; 0 is none.
	Group int
}

func (p Policy) role(parameter manifest.Parameter) Role {
	r := Role{Trained: !parameter.Frozen && !p.Frozen[parameter.Name], Compute: manifest.F32}
	if p.Precision == manifest.BF16 && parameter.Compute == manifest.BF16 {
		r.Compute = manifest.BF16
	}
	if r.Trained {
		r.Decay, r.Gradient = parameter.Decay, cmp.Or(p.Gradients[parameter.Name], r.Compute)
		r.Group = p.Groups[parameter.Name]
	}
	return r
}

// types returns the element types of the role's parameters by vector, "" for a vector that does not contain them.
func (r Role) types() (t [vectors]manifest.DType) {
	t[Weights], t[Gradients] = manifest.F32, r.Gradient
	if r.Trained {
		t[State] = manifest.F32
	}
	if r.Compute == manifest.BF16 {
		t[Copies] = manifest.BF16
	}
	return t
}

// order ranks roles in the arena: trained before frozen, so that State is a prefix of Weights; then bf16 before f32,
// which keeps both aligned; then decayed before not decayed.
// Groups follow each other within an order.
func (r Role) order() int {
	rank := 0
	for _, last := range []bool{!r.Trained, r.Gradient != manifest.BF16, r.Compute != manifest.BF16, !r.Decay} {
		rank *= 2
		if last {
			rank++
		}
	}
	return rank
}

// align returns the alignment in elements.
func (r Role) align() int {
	smallest := manifest.F32.Size()
	for _, t := range r.types() {
		if t != "" {
			smallest = min(smallest, t.Size())
		}
	}
	return arenaAlign / smallest
}

// Range is the elements Start <= i < End of an arena.
type Range struct{ Start, End int }

// Len returns the number of elements.
func (r Range) Len() int { return r.End - r.Start }

// Segment is a range of an arena whose parameters have one role. Its ends are aligned.
type Segment struct {
	Role
	Range
	offsets [vectors]int // bytes, in the vectors that have the segment
}

// Span is the position of elements in a vector.
type Span struct {
	DType manifest.DType
	// Offset is in bytes.
	Offset, Elements int
}

// Bytes returns the size of the span.
func (s Span) Bytes() int { return s.Elements * s.DType.Size() }

// Arena places the parameters of a player in flat vectors, grouped by their roles, so that an optimizer step is a few
// runs over contiguous memory for any model. All vectors share one numbering of elements: an element of a parameter has
// the same number everywhere, and the arena returns its byte offset in each vector. The gaps between parameters are
// zero and stay zero, because their gradients are zero.
//
// Only the arena computes sizes and offsets.
type Arena struct {
	parameters []manifest.Parameter

	segments []Segment
	places   []Range // by parameter: its own elements, without alignment
	of       []int   // by parameter: its segment
	bytes    [vectors]int
}

// NewArena lays out parameters under a policy. Their order matters only within a role.
func NewArena(parameters []manifest.Parameter, policy Policy) *Arena {
	a := &Arena{parameters: parameters, places: make([]Range, len(parameters)), of: make([]int, len(parameters))}
	roles, sorted := make([]Role, len(parameters)), make([]int, len(parameters))
	for i, p := range parameters {
		roles[i], sorted[i] = policy.role(p), i
	}
	slices.SortStableFunc(sorted, func(i, j int) int {
		return cmp.Or(cmp.Compare(roles[i].order(), roles[j].order()), cmp.Compare(roles[i].Group, roles[j].Group))
	})
	end := 0
	for _, i := range sorted {
		if n := len(a.segments); n == 0 || a.segments[n-1].Role != roles[i] {
			a.segments = append(a.segments, Segment{Role: roles[i], Range: Range{end, end}, offsets: a.bytes})
		}
		s := &a.segments[len(a.segments)-1]
		a.of[i], a.places[i] = len(a.segments)-1, Range{end, end + parameters[i].Elements()}
		align := roles[i].align()
		aligned := (a.places[i].Len() + align - 1) / align * align
		end += aligned
		s.End = end
		for v, t := range s.types() {
			a.bytes[v] += aligned * t.Size()
		}
	}
	return a
}

// NewArenas lays out the parameters of each player of a bundle, in their order.
func NewArenas(b *manifest.Bundle, policy Policy) (all []*Arena) {
	for _, player := range b.InTurn() {
		all = append(all, NewArena(b.ParametersOf(player.Name), policy))
	}
	return all
}

// Parameters returns the parameters in the order in which they are numbered.
func (a *Arena) Parameters() []manifest.Parameter { return a.parameters }

// Segments returns the segments in the order of their elements: trained ones come first.
func (a *Arena) Segments() []Segment { return a.segments }

// Trained returns the elements of all trained parameters.
func (a *Arena) Trained() Range {
	r := Range{}
	for _, s := range a.segments {
		if s.Trained {
			r.End = s.End
		}
	}
	return r
}

// Role returns the role of a parameter, by its index in Parameters.
func (a *Arena) Role(parameter int) Role { return a.segments[a.of[parameter]].Role }

// Bytes returns the size of a vector.
func (a *Arena) Bytes(v Vector) int { return a.bytes[v] }

// Parameter returns the position of a parameter in a vector, by its index in Parameters; ok is false if the
// vector does not contain it.
func (a *Arena) Parameter(v Vector, i int) (s Span, ok bool) {
	segment := a.segments[a.of[i]]
	if segment.types()[v] == "" {
		return Span{}, false
	}
	return segment.span(v, a.places[i]), true
}

// Span returns the position of a range in a vector. It panics if the vector does not contain all of it, or contains it
// in two types: the ranges do not depend on data.
func (a *Arena) Span(v Vector, r Range) Span {
	var span Span
	for _, s := range a.segments {
		part := Range{max(r.Start, s.Start), min(r.End, s.End)}
		if part.Len() <= 0 {
			continue
		}
		next := s.span(v, part)
		if span.Elements == 0 {
			span.DType, span.Offset = next.DType, next.Offset
		}
		if next.DType != "" && next.DType == span.DType {
			span.Elements += next.Elements
		}
	}
	if span.Elements != r.Len() {
		panic(fmt.Sprintf("ortgraphs: elements %d to %d are not one span of the %s", r.Start, r.End, v))
	}
	return span
}

// Cover returns the elements of parameters, by their indices, each with the gap after it, as few ranges. None reaches
// over the end of a segment.
func (a *Arena) Cover(parameters []int) (ranges []Range) {
	sorted := slices.SortedFunc(slices.Values(parameters),
		func(i, j int) int { return cmp.Compare(a.places[i].Start, a.places[j].Start) })
	for _, i := range sorted {
		s := a.segments[a.of[i]]
		align := s.align()
		next := Range{a.places[i].Start, s.Start + (a.places[i].End-s.Start+align-1)/align*align}
		if n := len(ranges); n > 0 && ranges[n-1].End == next.Start && next.Start != s.Start {
			ranges[n-1].End = next.End
		} else {
			ranges = append(ranges, next)
		}
	}
	return ranges
}

func (s Segment) span(v Vector, r Range) Span {
	t := s.types()[v]
	return Span{DType: t, Offset: s.offsets[v] + (r.Start-s.Start)*t.Size(), Elements: r.Len()}
}

// Memory has the sizes of the vectors of a run, in bytes.
type Memory struct {
	Weights     int `json:"weights_bytes"`
	Copies      int `json:"copies_bytes,omitempty"`
	Gradients   int `json:"gradients_bytes"`
	Moments     int `json:"moments_bytes"`
	Accumulator int `json:"accumulator_bytes,omitempty"`
	Average     int `json:"average_bytes,omitempty"`
	// State has all copies of the bundle's state, which Arena.Memory does not know.
	State int `json:"state_bytes,omitempty"`
}

// Memory returns the sizes with an optimizer, with or without accumulated gradients, and with or without a moving
// average of the trained weights.
func (a *Arena) Memory(o manifest.Optimizer, accumulating, averaging bool) Memory {
	m := Memory{
		Weights: a.Bytes(Weights), Copies: a.Bytes(Copies), Gradients: a.Bytes(Gradients),
		Moments: a.OptimizerStateBytes(o),
	}
	if accumulating {
		m.Accumulator = a.Bytes(State)
	}
	if averaging {
		m.Average = a.Bytes(State)
	}
	return m
}

// Add adds the sizes of another player.
func (m *Memory) Add(o Memory) {
	m.Weights += o.Weights
	m.Copies += o.Copies
	m.Gradients += o.Gradients
	m.Moments += o.Moments
	m.Accumulator += o.Accumulator
	m.Average += o.Average
	m.State += o.State
}

// Total returns the sum.
func (m Memory) Total() int {
	return m.Weights + m.Copies + m.Gradients + m.Moments + m.Accumulator + m.Average + m.State
}

// UpdateBytes is about what an update of all weights reads and writes: weights and moments are read and written,
// gradients are read twice, since their norm comes first.
func (m Memory) UpdateBytes() int { return 2*(m.Weights+m.Moments+m.Gradients) + m.Copies }
