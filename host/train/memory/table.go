package memory

import (
	"fmt"

	"github.com/xtts-host/xtts-host/gpu"
)

// table lists, for a refusal, the memory that a limit would have to include.
type table struct {
	rows  []string
	total int // bytes
}

func (t *table) add(name string, bytes int) {
	t.note(name, inMB(bytes))
	t.total += bytes
}

// note adds a row with a word instead of a number.
func (t *table) note(name, word string) { t.rows = append(t.rows, tableRow(name, word)) }

// lines returns the rows and their sum.
func (t *table) lines() []string { return append(t.rows, tableRow("together", inMB(t.total))) }

// tableRow pads the space between name and value.
func tableRow(name, value string) string {
	return fmt.Sprintf("  %s %*s", name, 61-len(name), value)
}

func inMB(bytes int) string { return fmt.Sprintf("%d MB", bytes/gpu.MB) }
