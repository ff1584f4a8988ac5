package main

import (
	"fmt"
	"strings"
)

// table counts cases by their first strike.
type table struct {
	cells  map[[2]string]*cell
	total  int
	hits   int // strikes, with those of resumed runs
	failed int
}

type cell struct{ cases, failed int }

func newTable() *table { return &table{cells: map[[2]string]*cell{}} }

func (t *table) add(c *tortureCase, struck int, err error) {
	first := c.strikes[0]
	key := [2]string{first.phase, first.target + " " + first.signal}
	if t.cells[key] == nil {
		t.cells[key] = &cell{}
	}
	t.cells[key].cases++
	t.total++
	t.hits += struck
	if err != nil {
		t.cells[key].failed++
		t.failed++
	}
}

// String prints a line per phase and a column per blow: cases, and behind a slash those that failed.
func (t *table) String() string {
	var b strings.Builder
	fmt.Fprintf(&b, "%-20s", "phase")
	for _, w := range blows {
		fmt.Fprintf(&b, "%18s", w.target+" "+w.signal)
	}
	fmt.Fprintf(&b, "%10s\n", "all")
	for _, phase := range phases {
		sum := cell{}
		fmt.Fprintf(&b, "%-20s", phase)
		for _, w := range blows {
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
	fmt.Fprintf(&b, "%d strikes hit, %d of %d cases failed; ", t.hits, t.failed, t.total)
	return b.String()
}

func (c *cell) String() string { return fmt.Sprintf("%d/%d", c.cases, c.failed) }
