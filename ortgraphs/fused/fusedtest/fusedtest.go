// Package fusedtest compiles the programs of fused graphs for the CPU, for tests on machines without a GPU.
package fusedtest

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/xtts-host/xtts-host/ortgraphs/fuse/cudac"
	"github.com/xtts-host/xtts-host/ortgraphs/fuse/cudac/cudactest"
	"github.com/xtts-host/xtts-host/ortgraphs/fused"
)

// Compiler implements [fused.Compiler] with the system's C++ compiler and an emulation of CUDA.
type Compiler struct {
	t testing.TB
	// Change, if any, changes a program before it is compiled, to plant a fault.
	Change func(program string) string
}

// NewCompiler returns a compiler whose programs last until the end of the test.
func NewCompiler(t testing.TB) *Compiler { return &Compiler{t: t} }

func (c *Compiler) Compile(sources []string) (fused.Programs, error) {
	p := &programs{sources: sources}
	var list []cudactest.Source
	for _, s := range sources {
		s = strings.TrimPrefix(s, cudac.Prelude)
		if c.Change != nil {
			s = c.Change(s)
		}
		list = append(list, cudactest.Source{Text: s, Functions: cudactest.Functions(s)})
	}
	p.program = cudactest.Compile(c.t, cudac.Prelude, list)
	return p, nil
}

type programs struct {
	sources []string
	program *cudactest.Program
}

func (p *programs) Launch() uintptr { return p.program.Launch }

func (p *programs) Function(source, name string) (uintptr, error) {
	i := slices.Index(p.sources, source)
	if i < 0 {
		return 0, fmt.Errorf("no such program")
	}
	return p.program.Function(i, name), nil
}

func (p *programs) Close() error { return nil }
