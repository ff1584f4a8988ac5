package fuse_test

import (
	"math"
	"slices"
	"strings"
	"testing"

	"github.com/xtts-host/xtts-host/ortgraphs/shapes"
)

// distribution is a way to write a function, the function of the prelude that computes it, and its value; nil if the
// prelude has none.
type distribution struct {
	write    func(b *builder) string
	function string
	value    func(float64) float64
}

// distributions are functions of the normal and of the logistic distribution, and some that are like them.
func distributions() map[string]distribution {
	cumulative := func(x float64) float64 { return math.Erfc(-x/math.Sqrt2) / 2 }
	logistic := func(x float64) float64 { return 1 / (1 + math.Exp(-2*x)) }
	slope := func(x float64) float64 { return 1 / (math.Cosh(x) * math.Cosh(x)) }
	square := func(b *builder, x string) string { return b.add("Mul", x, x) }
	bell := func(x float64) float64 { return math.Exp(-x * x / 2) }
	return map[string]distribution{
		"cumulative": {func(b *builder) string {
			return b.add("Mul", b.add("Add", b.add("Erf", b.add("Mul", "x", "root")), "one"), "half")
		}, "normal_of", cumulative},
		"cumulative, divided, in the other order": {func(b *builder) string {
			return b.add("Mul", "half", b.add("Add", "one", b.add("Erf", b.add("Div", "x", "root of 2"))))
		}, "normal_of", cumulative},
		"bell": {
			func(b *builder) string { return b.add("Exp", b.add("Mul", b.add("Mul", "x", "x"), "minus half")) },
			"bell_of", bell,
		},
		"bell, by a power": {
			func(b *builder) string { return b.add("Exp", b.add("Mul", b.add("Pow", "x", "two"), "minus half")) },
			"bell_of", bell,
		},
		"product of two": {
			func(b *builder) string { return b.add("Exp", b.add("Mul", b.add("Mul", "x", "y"), "minus half")) }, "expf",
			nil,
		},
		"another constant": {
			func(b *builder) string { return b.add("Exp", b.add("Mul", b.add("Mul", "x", "x"), "half")) }, "expf", nil,
		},
		"logistic": {
			func(b *builder) string { return b.add("Mul", b.add("Add", b.add("Tanh", "x"), "one"), "half") },
			"half_of_one_plus_tanh", logistic,
		},
		"logistic of a part": {func(b *builder) string {
			return b.add("Mul", "half", b.add("Add", "one", b.add("Tanh", b.add("Mul", "half", "x"))))
		}, "half_of_one_plus_tanh", func(x float64) float64 { return logistic(x / 2) }},
		"slope": {
			func(b *builder) string { return b.add("Sub", "one", square(b, b.add("Tanh", "x"))) },
			"one_minus_tanh_squared", slope,
		},
		"slope of a multiple, by a power": {func(b *builder) string {
			return b.add("Sub", "one", b.add("Pow", b.add("Tanh", b.add("Mul", "x", "half")), "two"))
		}, "one_minus_tanh_squared", func(x float64) float64 { return slope(x / 2) }},
		"slope of the difference": {
			func(b *builder) string { return b.add("Sub", square(b, b.add("Tanh", "x")), "one") }, "tanh_of", nil,
		},
		"erf that is whole": {func(b *builder) string {
			return b.add("Mul", b.add("Add", b.add("Erf", b.add("Mul", "x", "half")), "one"), "half")
		}, "erff", nil},
	}
}

// TestDistributions: what graphs compute of the normal and of the logistic distribution is found in its usual forms,
// and each result has the precision of f32, also those that are small because their argument is far below 0.
func TestDistributions(t *testing.T) {
	all := []float64{-8, -6.5, -5, -4, -3, -2, -1, -0.1, -1e-3, 0, 1e-3, 0.5, 2, 5, 8}
	for name, c := range distributions() {
		t.Run(name, func(t *testing.T) {
			arguments := all
			// far above 0, it is as 1 - tanh(x)^2: a difference of almost equal numbers
			if c.function == "one_minus_tanh_squared" {
				arguments = slices.DeleteFunc(slices.Clone(all), func(x float64) bool { return x > 2 })
			}
			model := small([]int{len(arguments)}, []string{"x", "y", "inverse"}, func(b *builder) []string {
				return []string{b.add("Mul", c.write(b), "inverse")}
			})
			_, g, regions := partition(t, model, shapes.Sizes{})
			values := memory{}
			for _, in := range g.Inputs {
				list := arguments
				// by which all products are about 1, so that none of their differences is small
				if in.Name == "inverse" {
					list = nil
					for _, x := range arguments {
						inverse := 1.0
						if c.value != nil {
							inverse = 1 / c.value(float64(float32(x)))
						}
						list = append(list, inverse)
					}
				}
				values[in] = encode(list, f32)
			}
			m, err := interpret(g, regions, values)
			if err != nil {
				t.Fatal(err)
			}
			if c.value != nil { // the formula in f32 is wrong far below 0
				for i, x := range m[g.Inputs[2]] {
					m[regions[0].Out[0]][i] = number{x.f * c.value(float64(float32(arguments[i]))), 0}
				}
			}
			var k kernels
			k.add(t, regions, m)
			k.complete(t, 1)
			if text := k.sources[0].Text; !strings.Contains(text, c.function+"(x") {
				t.Errorf("no %s in\n%s", c.function, text)
			}
			k.check(t, &emulation{}, 1e-5)
		})
	}
}
