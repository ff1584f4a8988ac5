package fused_test

import (
	"testing"

	"github.com/xtts-host/xtts-host/ortgraphs/fused"
	"github.com/xtts-host/xtts-host/ortgraphs/fused/fusedtest"
	"github.com/xtts-host/xtts-host/ortgraphs/fused/prooftest"
	"github.com/xtts-host/xtts-host/ortgraphs/ort"
	"github.com/xtts-host/xtts-host/ortgraphs/ort/orttest"
)

// wrongConvolver compiles programs whose library of convolutions is wrong in one pass.
type wrongConvolver struct {
	fused.Compiler
	pass ort.ConvolutionPass
}

func (c wrongConvolver) Compile(sources []string) (fused.Programs, error) {
	p, err := c.Compiler.Compile(sources)
	return wrongPrograms{p, c.pass}, err
}

type wrongPrograms struct {
	fused.Programs
	pass ort.ConvolutionPass
}

func (p wrongPrograms) Convolver() (*ort.Convolver, error) {
	return orttest.WrongConvolver(p.pass), nil
}

// TestConvolutions: a library computes convolutions and their gradients as the nodes that they replace do. Wrong ones
// are found in each pass.
func TestConvolutions(t *testing.T) {
	compiler := fusedtest.NewCompiler(t)
	c := prooftest.Convolutions{Compiler: compiler, Form: fused.Form{WindowBytes: 1}}
	c.Check(t)
	for pass, name := range []string{
		"convolution", "gradient of what is convolved", "gradient of a convolution's weights",
	} {
		c.Compiler, c.Wrong = wrongConvolver{compiler, ort.ConvolutionPass(pass)}, name
		c.Check(t)
	}
}
