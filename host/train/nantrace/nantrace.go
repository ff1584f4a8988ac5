// Package nantrace finds where a loss or a gradient that is not finite comes from: the first operation of a training
// graph whose result is not finite although all that it reads is, or an input, and the rows of the batch.
//
//	found, err := nantrace.Find(ctx, nantrace.Case{Model: bundle.Model("training_model.onnx"), Inputs: inputs})
//	found.Operator // "Log"
//
// The graph runs as it was exported, on the CPU and in f32. A first run tests every tensor on the spot, so it needs
// little more memory than the graph itself. A second one returns the few tensors around the
// operation. Nothing of a training run is used or changed.
package nantrace

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/xtts-host/xtts-host/ortgraphs/onnxpb"
	"github.com/xtts-host/xtts-host/ortgraphs/shapes"
	"github.com/xtts-host/xtts-host/shared/manifest"
)

// Case is a graph with what it reads in a step.
type Case struct {
	// Model is the training graph as exported, in f32. It is not changed. Dir is the folder of its data files.
	Model *onnxpb.ModelProto
	Dir   string
	// Inputs are all inputs of the graph. Those that it does not have are left out.
	Inputs  []Input
	Threads int
	// Memory bounds what may be used of the machine's, in bytes; 0 means no limit.
	Memory int64
}

// Kind says what an input is.
type Kind string

// The kinds of inputs.
const (
	Batch  Kind = "input"
	Weight Kind = "weight"
	State  Kind = "state"
	Scalar Kind = "scalar"
)

// Input is an input of the graph.
type Input struct {
	Kind  Kind
	Name  string
	DType manifest.DType
	Shape []int
	Data  []byte
	// Symbols name the dimensions of a tensor of the batch; "" for a number.
	Symbols []string
}

// rowSymbol is the dimension of rows.
const rowSymbol = "B"

// Found is where a loss or a gradient that is not finite comes from.
type Found struct {
	// Where is "operation", "input", "weight", "state", or "nowhere": the graph gives finite numbers here.
	Where string `json:"where"`
	// Operation is what gives it first.
	Operation *Operation `json:"operation,omitempty"`
	// Becomes is the operation that makes NaN of an infinity that Operation gives.
	Becomes *Operation `json:"becomes_nan_in,omitempty"`
	// Tensor is the input, weight or state that is not finite itself.
	Tensor *Values `json:"tensor,omitempty"`
	// Outputs lists what of the graph's outputs is not finite, at most maxOutputs, of OutputsBad.
	Outputs    []string `json:"not_finite"`
	OutputsBad int      `json:"not_finite_outputs"`
	// Rows are the places of the rows in the batch, and RowsBy how they were found: "tensor" (by their part of the
	// tensor), "alone" (each row without the others), Unknown if the time was up, or "" for all.
	Rows   []int  `json:"rows"`
	RowsBy string `json:"rows_by,omitempty"`
}

// Operation is a node of the graph.
type Operation struct {
	Operator string `json:"operator"`
	// Value is the name of the result, which is that of PyTorch's operator with a number.
	Value string `json:"value"`
	Pass  string `json:"pass"` // forward or backward
	// Line is the line of the user's module, "" if the graph does not know it.
	Line string `json:"line,omitempty"`
	// After and Before are the nearest parameters that it depends on, and that are used on its result.
	After  string   `json:"after,omitempty"`
	Before string   `json:"before,omitempty"`
	Gives  *Values  `json:"gives,omitempty"`
	Reads  []Values `json:"reads,omitempty"`
}

// Values describes a tensor.
type Values struct {
	Name     string `json:"name"`
	Shape    []int  `json:"shape"`
	NaN      int    `json:"nan"`
	Infinite int    `json:"infinite"`
	// Min and Max are of its finite elements.
	Min float64 `json:"min"`
	Max float64 `json:"max"`
	// At is the element at the first place of the result that is not finite, nil if the shapes are others.
	At *float64 `json:"at,omitempty"`
}

// Unknown is a value of Found.RowsBy.
const Unknown = "unknown"

// maxOutputs bounds the list of outputs.
const maxOutputs = 10

// Errors of Find.
var (
	ErrTime   = errors.New("it takes too long")
	ErrMemory = errors.New("it needs too much memory")
)

// Find runs the graph and looks for the origin.
func Find(ctx context.Context, c Case) (*Found, error) {
	s, err := newSearch(ctx, c)
	if err != nil {
		return nil, err
	}
	defer s.close()
	if err := s.test(); err != nil {
		return nil, err
	}
	found := s.origin()
	if found.Where == nowhere {
		return found, nil
	}
	if err := s.detail(found); err != nil {
		return nil, err
	}
	return found, nil
}

const nowhere = "nowhere"

// search is the state of Find.
type search struct {
	Case
	rows    int
	sizes   shapes.Sizes
	ctx     context.Context
	shaped  *shapes.Result
	values  []string            // floats, in the order of the graph: inputs, initializers, results
	flaws   map[string]flaw     // of them
	makers  map[string]*maker   // by value
	kinds   map[string]Kind     // of inputs
	readers map[string][]*maker // by value
	forward map[*maker]bool     // what the loss depends on
	closers []func() error
}

// flaw says what a tensor has: NaN, or, without any, an infinity.
type flaw struct{ nan, infinite bool }

func (f flaw) bad() bool { return f.nan || f.infinite }

// maker is a node with its place in the graph.
type maker struct {
	node  *onnxpb.NodeProto
	place int
	reads []string
}

func newSearch(ctx context.Context, c Case) (*search, error) {
	s := &search{
		Case: c, ctx: ctx, sizes: shapes.Sizes{}, kinds: map[string]Kind{}, flaws: map[string]flaw{},
		makers: map[string]*maker{}, readers: map[string][]*maker{}, forward: map[*maker]bool{},
	}
	for _, in := range c.Inputs {
		s.kinds[in.Name] = in.Kind
		for i, symbol := range in.Symbols {
			if symbol != "" {
				s.sizes[symbol] = in.Shape[i]
			}
		}
	}
	s.rows = s.sizes[rowSymbol]
	var err error
	if s.shaped, err = shapes.Infer(c.Model, s.sizes); err != nil {
		return nil, err
	}
	if err := s.checkMemory(0); err != nil {
		return nil, err
	}
	s.link()
	return s, nil
}

// checkMemory refuses a graph that may not fit: all that it holds at a time, twice because the tests hold tensors
// longer, copies of its inputs, and more bytes.
func (s *search) checkMemory(more int64) error {
	need := 2*s.shaped.Cost().Peak + more
	for _, in := range s.Inputs {
		need += int64(len(in.Data))
	}
	if s.Memory > 0 && need > s.Memory {
		return fmt.Errorf("%w: about %d MB, and %d MB are free", ErrMemory, need>>20, s.Memory>>20)
	}
	return nil
}

// link finds who makes and who reads what, and the tensors of floats.
func (s *search) link() {
	g := s.Model.Graph
	isFloat := func(name string) bool {
		v := s.shaped.Value(name)
		return v != nil && (v.Type == onnxpb.TensorProto_FLOAT || v.Type == onnxpb.TensorProto_DOUBLE)
	}
	add := func(name string) {
		if name != "" && isFloat(name) {
			s.values = append(s.values, name)
		}
	}
	for _, v := range g.Input {
		add(v.GetName())
	}
	for _, t := range g.Initializer {
		if !slices.Contains(s.values[:min(len(s.values), len(g.Input))], t.GetName()) {
			add(t.GetName())
		}
	}
	for i, n := range g.Node {
		m := &maker{node: n, place: i, reads: readsOf(n)}
		for _, name := range m.reads {
			s.readers[name] = append(s.readers[name], m)
		}
		for _, name := range n.Output {
			s.makers[name] = m
			add(name)
		}
	}
	open := []string{"loss"}
	for _, v := range g.Output {
		if !isGradient(v.GetName()) {
			open = append(open, v.GetName())
		}
	}
	for len(open) > 0 {
		m := s.makers[open[len(open)-1]]
		open = open[:len(open)-1]
		if m != nil && !s.forward[m] {
			s.forward[m] = true
			open = append(open, m.reads...)
		}
	}
}

// close releases what ONNX Runtime holds.
func (s *search) close() error {
	var errs []error
	for _, c := range slices.Backward(s.closers) {
		errs = append(errs, c())
	}
	s.closers = nil
	return errors.Join(errs...)
}

// over is why the search may not go on, nil if it may.
func (s *search) over() error {
	switch {
	case errors.Is(s.ctx.Err(), context.DeadlineExceeded):
		return ErrTime
	case s.ctx.Err() != nil:
		return context.Cause(s.ctx)
	}
	return nil
}
