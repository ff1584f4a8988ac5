// Package fusedtest compiles the programs of fused graphs for the CPU, for tests on machines without a GPU.
package fusedtest

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/xtts-host/xtts-host/ortgraphs/fuse/cudac"
	"github.com/xtts-host/xtts-host/ortgraphs/fuse/cudac/cudactest"
	"github.com/xtts-host/xtts-host/ortgraphs/fused"
	"github.com/xtts-host/xtts-host/ortgraphs/ort"
	"github.com/xtts-host/xtts-host/ortgraphs/ort/orttest"
)

// Compiler implements [fused.Compiler] with the system's C++ compiler and an emulation of CUDA. It compiles the same
// sources once.
type Compiler struct {
	t testing.TB
	// Change, if any, plants a fault in a program, or returns it unchanged.
	Change func(program string) string
	// Faults is how many of the programs that Change changes are wrong when they are loaded.
	Faults int
	// Refuse, if any, says which programs the compiler refuses.
	Refuse func(program string) bool

	compiled map[string]*programs
}

// NewCompiler returns a compiler whose programs last until the end of the test.
func NewCompiler(t testing.TB) *Compiler { return &Compiler{t: t, compiled: map[string]*programs{}} }

func (c *Compiler) Compile(sources []string) (fused.Programs, error) {
	key := strings.Join(sources, "\x00")
	p := c.compiled[key]
	if p == nil {
		p = c.compile(sources)
		c.compiled[key] = p
	}
	return loaded{p, c.Faults, c.Refuse}, nil
}

// compile compiles the programs, and after them those with a fault.
func (c *Compiler) compile(sources []string) *programs {
	p := &programs{sources: sources}
	var list, changed []cudactest.Source
	for i, s := range sources {
		s = strings.TrimPrefix(s, cudac.Prelude)
		list = append(list, cudactest.Source{Text: s, Functions: cudactest.Functions(s)})
		if c.Change == nil {
			continue
		}
		if wrong := c.Change(s); wrong != s {
			p.changed = append(p.changed, i)
			changed = append(changed, cudactest.Source{Text: wrong, Functions: cudactest.Functions(wrong)})
		}
	}
	p.program = cudactest.Compile(c.t, cudac.Prelude, append(list, changed...))
	return p
}

// ErrRefused is the reason of a program that Refuse refuses.
var ErrRefused = errors.New("kernel.cu(7): error: this is wrong")

type programs struct {
	sources []string
	changed []int // sources that have a wrong version, too
	program *cudactest.Program
}

// loaded are programs of which the first that have a wrong version are wrong.
type loaded struct {
	*programs
	faults int
	refuse func(program string) bool
}

func (p loaded) Launch() uintptr { return p.program.Launch }

func (p loaded) CooperativeLaunch() uintptr { return p.program.CooperativeLaunch }

func (p loaded) Function(source, name string, _ int) (uintptr, error) {
	i := slices.Index(p.sources, source)
	if i < 0 {
		return 0, fmt.Errorf("no such program")
	}
	if p.refuse != nil && p.refuse(source) {
		return 0, ErrRefused
	}
	if k := slices.Index(p.changed, i); k >= 0 && k < p.faults {
		i = len(p.sources) + k
	}
	return p.program.Function(i, name), nil
}

func (p loaded) Multiplier() (*ort.Multiplier, error) { return orttest.Multiplier, nil }

func (p loaded) Convolver() (*ort.Convolver, error) { return orttest.Convolver, nil }

func (p loaded) Close() error { return nil }
