package prooftest

import (
	"regexp"
	"slices"
	"strings"

	"github.com/xtts-host/xtts-host/ortgraphs/fuse/cudac"
	"github.com/xtts-host/xtts-host/ortgraphs/fused"
)

// mutations are faults of what a kernel writes: a factor of 1 %, a place that is one off, and the first elements
// left out.
var mutations = []struct{ what, by, inPairs, byPairs string }{
	{
		`v\.at\[jj\] = ([^;]*);`, `v.at[jj] = 1.01f * $1;`,
		`pair_of\((x\d+\[jj\]), (x\d+\[jj \+ 1\])\)`, `pair_of(1.01f * $1, 1.01f * $2)`,
	},
	{
		`v\.at\[jj\] = ([^;]*)\[jj\]`, `v.at[jj] = $1[jj ^ 1]`,
		`pair_of\((x\d+\[jj\]), (x\d+\[jj \+ 1\])\)`, `pair_of($2, $1)`,
	},
	{elements, withoutFirst, elements, withoutFirst},
}

const (
	elements     = `\*(\(vec<\w+, \d+> \*\)\(o\d \+ (\(.*\))\)) = v;`
	withoutFirst = `if ($2 > 0) *$1 = v;`
)

// planting plants a fault in every second program that can have one.
type planting struct {
	programs fused.Programs
	wrong    map[string]string // programs with a fault by those without
	faults   map[string]string // what they have, by the program
}

// plant compiles programs, and those with faults. pairs says that they write pairs of numbers, as in bf16.
func plant(compiler fused.Compiler, sources []string, pairs bool) (*planting, error) {
	p, list, can := &planting{wrong: map[string]string{}, faults: map[string]string{}}, slices.Clone(sources), 0
	for _, source := range sources {
		m := mutations[can/2%len(mutations)]
		if pairs {
			m.what, m.by = m.inPairs, m.byPairs
		}
		program, of := strings.TrimPrefix(source, cudac.Prelude), regexp.MustCompile(m.what)
		at := of.FindStringIndex(program)
		if at == nil || program == cudac.Proof {
			continue
		}
		if can++; can%2 > 0 {
			continue
		}
		p.faults[program] = m.by
		p.wrong[source] = cudac.Prelude + program[:at[0]] + of.ReplaceAllString(program[at[0]:at[1]], m.by) +
			program[at[1]:]
		list = append(list, p.wrong[source])
	}
	var err error
	p.programs, err = compiler.Compile(list)
	return p, err
}

func (p *planting) faulty() fused.Programs { return faulty{p.programs, p.wrong} }

type faulty struct {
	fused.Programs
	wrong map[string]string
}

func (f faulty) Function(source, name string, shared int) (uintptr, error) {
	if wrong, ok := f.wrong[source]; ok {
		source = wrong
	}
	return f.Programs.Function(source, name, shared)
}
