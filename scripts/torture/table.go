package main

import (
	"fmt"
	"strings"
)

// table counts cases by their first fault.
type table struct {
	cells    map[[2]string]*cell
	total    int
	injected int // injected faults, including those of resumed runs
	failed   int
}

type cell struct{ cases, failed int }

func newTable() *table { return &table{cells: map[[2]string]*cell{}} }

func (t *table) add(c *tortureCase, injected int, err error) {
	first := c.injections[0]
	key := [2]string{first.phase, first.target + " " + first.signal}
	if t.cells[key] == nil {
		t.cells[key] = &cell{}
	}
	t.cells[key].cases++
	t.total++
	t.injected += injected
	if err != nil {
		t.cells[key].failed++
		t.failed++
	}
}

// String prints a line per phase and a column per fault: the cases and, after a slash, those that failed.
func (t *table) String() string {
	var b strings.Builder
	fmt.Fprintf(&b, "%-20s", "phase")
	for _, w := range faults {
		fmt.Fprintf(&b, "%18s", w.target+" "+w.signal)
	}
	fmt.Fprintf(&b, "%10s\n", "all")
	for _, phase := range phases {
		sum := cell{}
		fmt.Fprintf(&b, "%-20s", phase)
		for _, w := range faults {
			c := t.cells[[2]string{phase, w.target + " " + w.signal}]
			if c == nil {
				c = &cell{}
			}
			sum.cases += c.cases
			sum.failed += c.failed
			fmt.Fprintf(&b, "%18s", c)
		}
		fmt.Fprintf(&b, "%10s\n", &sum)
	}
	fmt.Fprintf(&b, "%d faults injected, %d of %d cases failed; ", t.injected, t.failed, t.total)
	return b.String()
}

func (c *cell) String() string { return fmt.Sprintf("%d/%d", c.cases, c.failed) }
