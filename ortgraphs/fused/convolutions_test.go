package fused_test

import (
	"errors"
	"os"
	"strings"
	"testing"

	"github.com/xtts-host/xtts-host/ortgraphs/fused"
	"github.com/xtts-host/xtts-host/ortgraphs/fused/fusedtest"
	"github.com/xtts-host/xtts-host/ortgraphs/fused/prooftest"
	"github.com/xtts-host/xtts-host/ortgraphs/ort"
	"github.com/xtts-host/xtts-host/ortgraphs/ort/orttest"
)

// otherConvolver compiles programs whose library of convolutions is another one.
type otherConvolver struct {
	fused.Compiler
	library *ort.Convolver
}

func (c otherConvolver) Compile(sources []string) (fused.Programs, error) {
	p, err := c.Compiler.Compile(sources)
	return otherPrograms{p, c.library}, err
}

type otherPrograms struct {
	fused.Programs
	library *ort.Convolver // nil if there is none
}

// fewer are programs whose library refuses the gradient of what is convolved, and as soon as no plan has it any more,
// that of weights.
type fewer struct {
	fused.Programs
	asked *int
}

func (p fewer) Convolver() (*ort.Convolver, error) {
	if *p.asked++; *p.asked == 1 {
		return orttest.RefusingConvolver(ort.ConvolveOfInput), nil
	}
	return orttest.RefusingConvolver(ort.ConvolveOfWeights), nil
}

func (p otherPrograms) Convolver() (*ort.Convolver, error) {
	if p.library == nil {
		return nil, errors.New("no library")
	}
	return p.library, nil
}

// passes describe the convolutions of each pass.
var passes = []string{"convolution", "gradient of what is convolved", "gradient of a convolution's weights"}

// TestConvolutions: a library computes convolutions and their gradients as the nodes that they replace do. Wrong ones
// are found in each pass, and those that it cannot compute stay nodes.
func TestConvolutions(t *testing.T) {
	compiler := fusedtest.NewCompiler(t)
	for _, precision := range []string{"f32", "TF32", "bf16"} {
		c := prooftest.Convolutions{
			Compiler: compiler, Form: fused.Form{WindowBytes: 1}, TF32: precision == "TF32", Short: precision == "bf16",
		}
		t.Run(precision, c.Check)
		for pass, name := range passes {
			wrong, refused, pass := c, c, ort.ConvolutionPass(pass)
			wrong.Compiler, wrong.Wrong = otherConvolver{compiler, orttest.WrongConvolver(pass)}, name
			if precision == "bf16" && pass == ort.ConvolveOfWeights {
				wrong.Compiler = otherConvolver{withoutFirstWarp(t), orttest.WrongConvolver(pass)}
			}
			refused.Compiler, refused.Refused = otherConvolver{compiler, orttest.RefusingConvolver(pass)}, name
			t.Run(precision+", wrong "+name, wrong.Check)
			if precision == "f32" {
				t.Run(precision+", refused "+name, refused.Check)
			}
		}
	}
}

// withoutFirstWarp compiles gradients of weights of few channels that leave out what the first of the warps with the
// same taps has summed. One of the graph's is such a gradient; a library computes the others.
func withoutFirstWarp(t *testing.T) fused.Compiler {
	const all, less = "turn > 0 ? *to", "turn > 1 ? *to"
	c := fusedtest.NewCompiler(t)
	c.Change = func(program string) string { return strings.Replace(program, all, less, 1) }
	c.Faults = 1
	return c
}

// convolutionsOf counts the convolutions of each pass that a library computes.
func convolutionsOf(p *fused.Plan) (count [3]int) {
	for region := range p.Regions() {
		for pass, name := range passes {
			if strings.HasPrefix(p.Describe(region), name+" over") {
				count[pass]++
			}
		}
	}
	return count
}

// TestComputable: what the library cannot compute gets windows in memory, or stays a sum of parts.
func TestComputable(t *testing.T) {
	data, err := os.ReadFile("prooftest/testdata/convolutions.onnx")
	if err != nil {
		t.Fatal(err)
	}
	p, err := fused.NewPlan(data, map[string]int{"B": 2, "T_mel": 5, "T_wav": 1024}, fused.Form{WindowBytes: 1})
	if err != nil {
		t.Fatal(err)
	}
	for what, c := range map[string]struct {
		library *ort.Convolver
		want    [3]int // convolutions of each pass
		refused int    // forms
		reason  string
	}{
		"all":            {orttest.Convolver, [3]int{8, 8, 8}, 0, ""},
		"no library":     {nil, [3]int{}, 24, "no library"},
		"no convolution": {orttest.RefusingConvolver(ort.ConvolveForward), [3]int{}, 8, "no algorithm"},
		"no gradient of the input": {
			orttest.RefusingConvolver(ort.ConvolveOfInput), [3]int{8, 0, 8}, 8, "no algorithm",
		},
		"no gradient of weights": {orttest.RefusingConvolver(ort.ConvolveOfWeights), [3]int{}, 8, "no algorithm"},
		"with more memory":       {orttest.LargeConvolver(), [3]int{8, 8, 8}, 0, ""},
	} {
		programs := otherPrograms{loaded{}, c.library}
		q, err := p.Computable(programs)
		if err != nil {
			t.Fatal(err)
		}
		refused := q.Refused()
		if len(refused) != c.refused {
			t.Errorf("%s: %d forms are refused, want %d", what, len(refused), c.refused)
		}
		for _, form := range refused {
			if !strings.Contains(form, " of [2 ") || !strings.Contains(form, c.reason) {
				t.Errorf("%s: refused is %s", what, form)
			}
		}
		got := convolutionsOf(q)
		again, err := q.Computable(programs)
		if err != nil {
			t.Fatal(err)
		}
		if failed := q.Load(programs); got != c.want || again != q || (q == p) != (c.want == [3]int{8, 8, 8}) ||
			len(failed) > 0 {
			t.Errorf("%s: %v convolutions, want %v; the same plan: %t, and of itself: %t; %v", what, got, c.want,
				q == p, again == q, failed)
		}
	}
	// convolutions of a new plan may be refused, too
	q, err := p.Computable(fewer{loaded{}, new(int)})
	if err != nil || convolutionsOf(q) != [3]int{} || len(q.Refused()) != 16 {
		t.Errorf("%v convolutions, %d forms are refused, %v", convolutionsOf(q), len(q.Refused()), err)
	}
}
