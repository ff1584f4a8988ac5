package ortgraphs

import (
	"embed"
	"fmt"
	"io/fs"
	"path"
	"slices"

	"github.com/xtts-host/xtts-host/shared/manifest"
)

//go:embed optim/*.onnx
var optimizers embed.FS

// Optimizer returns an embedded optimizer graph: "accumulate", "squares" and "norm" serve every optimizer, the others
// update parameters.
func Optimizer(graph string) ([]byte, error) {
	data, err := optimizers.ReadFile(path.Join("optim", graph+".onnx"))
	if err != nil {
		return nil, fmt.Errorf("no optimizer graph %q: %w", graph, fs.ErrNotExist)
	}
	return data, nil
}

// graphState names what each graph keeps of a parameter between steps: the input NAME and the output NAME_out. SGD
// keeps its vector even without momentum.
var graphState = map[string][]string{
	"adamw":            {"exp_avg", "exp_avg_sq"},
	"sgd":              {"momentum_buffer"},
	"lion":             {"exp_avg"},
	"muon_wide":        {"momentum_buffer"},
	"muon_tall":        {"momentum_buffer"},
	"adafactor":        {"row_var", "col_var"},
	"adafactor_vector": {"variance"},
}

// flatOptimizers have one elementwise graph for every parameter. It takes flat vectors, so one run updates many
// parameters.
var flatOptimizers = []string{"adamw", "sgd", "lion"}

// OptimizerState returns the names of the flat vectors that an optimizer keeps between steps, each of the size of the
// trained parameters, in the order of its graph. An optimizer that updates each parameter by itself has none: UpdateOf
// has its state.
func OptimizerState(optimizer string) []string {
	if !slices.Contains(flatOptimizers, optimizer) {
		return nil
	}
	return slices.Clone(graphState[optimizer])
}

// Update is how an optimizer updates a parameter by itself.
type Update struct {
	// Graph is the name of the optimizer graph.
	Graph string
	// Shape is the shape in which the graph takes the parameter and its gradient.
	Shape []int
	State []StateTensor
}

// StateTensor is a tensor that an optimizer keeps of a parameter: the graph's input Name and output Name_out.
type StateTensor struct {
	Name string
	// Shape is the one in a checkpoint, which is PyTorch's. View is the one in the graph, with the same elements.
	Shape, View []int
}

// UpdateOf returns how an optimizer updates a parameter. Muon is for matrices only, and leaves the other parameters,
// and those that the bundle names, to AdamW.
func UpdateOf(o manifest.Optimizer, p manifest.Parameter) Update {
	flat := []int{p.Elements()}
	u := Update{Graph: o.Name, Shape: flat}
	rank := len(p.Shape)
	switch {
	case o.Name == "muon" && rank == 2 && !p.MatchesAny(o.AdamW):
		u.Graph, u.Shape = "muon_wide", p.Shape
		if p.Shape[0] > p.Shape[1] {
			u.Graph = "muon_tall"
		}
	case o.Name == "muon":
		u.Graph = "adamw"
	case o.Name == "adafactor" && rank >= 2:
		return adafactor(p)
	case o.Name == "adafactor":
		u.Graph = "adafactor_vector"
	}
	for _, name := range graphState[u.Graph] {
		u.State = append(u.State, StateTensor{Name: name, Shape: p.Shape, View: u.Shape})
	}
	return u
}

// adafactor returns the update of a matrix, or of a stack of matrices along the leading dimensions: its state is a mean
// for each row and for each column.
func adafactor(p manifest.Parameter) Update {
	rank := len(p.Shape)
	rows, columns := p.Shape[rank-2], p.Shape[rank-1]
	stack := p.Elements() / (rows * columns)
	row, column := slices.Clone(p.Shape), slices.Clone(p.Shape)
	row[rank-1], column[rank-2] = 1, 1
	return Update{
		Graph: "adafactor", Shape: []int{stack, rows, columns},
		State: []StateTensor{
			{Name: "row_var", Shape: row, View: []int{stack, rows, 1}},
			{Name: "col_var", Shape: column, View: []int{stack, 1, columns}},
		},
	}
}

// Elements returns the number of values.
func (s StateTensor) Elements() int { return manifest.Parameter{Shape: s.Shape}.Elements() }

// OptimizerStateBytes returns the memory of what an optimizer keeps of the trained parameters.
func (a *Arena) OptimizerStateBytes(o manifest.Optimizer) int {
	if names := OptimizerState(o.Name); names != nil {
		return len(names) * a.Bytes(State)
	}
	n := 0
	for i, p := range a.parameters {
		if a.Role(i).Trained {
			for _, s := range UpdateOf(o, p).State {
				n += s.Bytes()
			}
		}
	}
	return n
}

// Bytes returns the memory of the tensor, with the alignment of an arena.
func (s StateTensor) Bytes() int {
	return (s.Elements()*manifest.F32.Size() + arenaAlign - 1) / arenaAlign * arenaAlign
}
