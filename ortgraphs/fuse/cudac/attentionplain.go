package cudac

import (
	"fmt"
	"math"
	"slices"
	"strings"

	"github.com/xtts-host/xtts-host/ortgraphs/operators"
)

// plainSquares collects the conditions of plain squares of scores: there, each comparison of places, such as that of a
// causal mask, has the result that it has for the first query and the first key. So scores in plain squares need no
// comparisons.
type plainSquares struct{ conditions []string }

// function is that of a square's first and last query and key.
func (p *plainSquares) function() string {
	condition := "true"
	if len(p.conditions) > 0 {
		condition = strings.Join(p.conditions, " && ")
	}
	return fmt.Sprintf("auto is_plain = [](int q0, int q1, int k0, int k1) -> bool { return %s; };", condition)
}

// comparisons are decided by the sign of the difference of their operands.
var comparisons = []string{"Less", "LessOrEqual", "Greater", "GreaterOrEqual"}

// compare returns the code of a node. If it compares two places, it is a constant in a plain square.
func (f *placeFunction) compare(op string, operands []string, code string) string {
	if !slices.Contains(comparisons, op) {
		return code
	}
	left, ok := f.sequences[operands[0]]
	if !ok {
		return code
	}
	right, ok := f.sequences[operands[1]]
	if !ok {
		return code
	}
	difference := left.plus(right.times(-1))
	o := operators.Table[op]
	result := o.Of([]float64{float64(difference.constant), 0}) != 0
	extreme, ok := f.extreme(difference, result == strings.HasPrefix(op, "Less"))
	if !ok {
		return code
	}
	condition := fmt.Sprintf("("+o.IntegerC+")", extreme, "0")
	if result {
		f.plain.conditions = append(f.plain.conditions, condition)
		return fmt.Sprintf("plain || %s", code)
	}
	f.plain.conditions = append(f.plain.conditions, "!"+condition)
	return fmt.Sprintf("!plain && %s", code)
}

// extreme returns the largest value in a square, or the smallest one.
func (f *placeFunction) extreme(e affine, largest bool) (affine, bool) {
	if least, most := f.places.bounds(e); least < -math.MaxInt32/2 || most > math.MaxInt32/2 {
		return affine{}, false
	}
	rank := len(f.place)
	ends := map[string][2]string{axisName(rank - 2): {"q0", "q1"}, axisName(rank - 1): {"k0", "k1"}}
	at := affine{constant: e.constant}
	for name, factor := range e.factors {
		end, ok := ends[name]
		if !ok {
			return affine{}, false
		}
		if factor > 0 == largest {
			at = at.plus(variable(end[1], factor))
		} else {
			at = at.plus(variable(end[0], factor))
		}
	}
	return at, true
}
