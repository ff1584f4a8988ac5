package manifest

import (
	"encoding/json"
	"fmt"
	"strconv"
	"strings"
)

// BatchSymbol is the symbol for the number of rows of a batch. The host sets its value (--batch-size); the bucket sets
// all other symbols.
const BatchSymbol = "B"

// Dim is one dimension: a symbol such as "T_mel", or a positive number if Symbol is empty.
type Dim struct {
	Symbol string
	Size   int
}

// Fixed returns the dimension of a known size.
func Fixed(n int) Dim { return Dim{Size: n} }

// Sym returns the dimension named by a symbol.
func Sym(name string) Dim { return Dim{Symbol: name} }

func (d Dim) String() string {
	if d.Symbol != "" {
		return d.Symbol
	}
	return strconv.Itoa(d.Size)
}

// UnmarshalJSON accepts a number or a string.
func (d *Dim) UnmarshalJSON(b []byte) error {
	if len(b) > 0 && b[0] == '"' {
		*d = Dim{}
		return json.Unmarshal(b, &d.Symbol)
	}
	*d = Dim{}
	return json.Unmarshal(b, &d.Size)
}

// MarshalJSON writes a symbol as a string and a size as a number.
func (d Dim) MarshalJSON() ([]byte, error) {
	if d.Symbol != "" {
		return json.Marshal(d.Symbol)
	}
	return json.Marshal(d.Size)
}

// Shape is a list of dimensions. The empty shape is a scalar.
type Shape []Dim

func (s Shape) String() string {
	parts := make([]string, len(s))
	for i, d := range s {
		parts[i] = d.String()
	}
	return "[" + strings.Join(parts, ",") + "]"
}

// Resolve returns the shape with the values of all symbols. It fails if a symbol has no value.
func (s Shape) Resolve(values map[string]int) ([]int, error) {
	out := make([]int, len(s))
	for i, d := range s {
		out[i] = d.Size
		if d.Symbol != "" {
			v, ok := values[d.Symbol]
			if !ok {
				return nil, fmt.Errorf("dimension %s of %s has no value", d.Symbol, s)
			}
			out[i] = v
		}
	}
	return out, nil
}

// TensorSpec describes a tensor of a graph, or a port of a stage.
type TensorSpec struct {
	Name  string `json:"name"`
	DType DType  `json:"dtype"`
	Shape Shape  `json:"shape"`
	// Pad is the value after the end of each row.
	Pad float64 `json:"pad,omitempty"`
	// Lengths names the i32[B] tensor that holds the valid length of axis 1 for each row, if there is one.
	Lengths string `json:"lengths,omitempty"`
	// MaxAbs is the largest magnitude of a valid value of a port; 0 means unknown. MayBeZero says that zeros in all
	// rows of a batch are valid.
	MaxAbs    float64 `json:"max_abs,omitempty"`
	MayBeZero bool    `json:"may_be_zero,omitempty"`
	// Origin is the producer of a graph input. It is empty for ports.
	Origin string `json:"origin,omitempty"`
	// Column is the key of the list whose value, or array, is the input. Vocabulary names the file with the ids of the
	// column's symbols, and Split says how a string becomes symbols. Integers are 0 or more and below Below, if it is
	// not 0.
	Column     string `json:"column,omitempty"`
	Vocabulary string `json:"vocabulary,omitempty"`
	Split      string `json:"split,omitempty"`
	Below      int    `json:"below,omitempty"`
	// Player names the player whose training graph returns a metric; empty in a bundle without players.
	Player string `json:"player,omitempty"`
	// Feeds names the input of an inference graph that takes this output in the next run.
	Feeds string `json:"feeds,omitempty"`
}

// metricPrefix begins the name of an output that is a metric.
const metricPrefix = "metric."

// IsMetric reports whether an output is a metric.
func (t TensorSpec) IsMetric() bool { return strings.HasPrefix(t.Name, metricPrefix) }

func (t TensorSpec) String() string { return fmt.Sprintf("%s %s%s", t.Name, t.DType, t.Shape) }
