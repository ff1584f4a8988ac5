package layout

import (
	"bufio"
	"bytes"
	"slices"
	"strings"
)

// survey is what a pass over a table finds.
type survey struct {
	sep    byte
	quotes bool
	cr     bool
	skip   int // number of the line with the names of the columns, 0 for none

	lines   int
	counts  lineCounts // by number of columns up to the last that is not empty
	written lineCounts // by number of columns
	columns []column
	quoting quoting
	samples []sample
	stride  int // of the lines that are sampled
}

type lineCounts map[int]*lineCount

// lineCount counts the lines with one number of columns.
type lineCount struct {
	lines int
	first []int // numbers of the first of them
}

// sample is one of some lines that are spread over the list.
type sample struct {
	number int
	fields []string
}

const (
	mostSamples = 256
	mostNamed   = 5 // lines that a message names
)

func (s *Source) survey(v *survey) error {
	v.counts, v.written, v.stride = lineCounts{}, lineCounts{}, 1
	split := bufio.SplitFunc(bufio.ScanLines)
	if v.quotes || v.cr {
		split = records{v.sep, v.cr, v.quotes}.split
	}
	return s.scan(split, v.add)
}

// add counts a line. Of a column of texts, which most are, it has seen enough after a while.
func (v *survey) add(number int, line []byte) bool {
	if number == v.skip {
		return true
	}
	at := v.lines
	v.lines++
	quote := bytes.IndexByte(line, '"') >= 0
	n := bytes.Count(line, []byte{v.sep}) + 1
	if !quote && at%v.stride != 0 && n <= len(v.columns) && line[len(line)-1] != v.sep && v.settled(n) {
		for j := range n {
			v.columns[j].lines++
		}
		v.counts.add(n, number)
		v.written.add(n, number)
		return true
	}
	text := string(line)
	if quote {
		v.quoting.look(text, v.sep, number)
	}
	list, _ := fields(text, v.sep, v.quotes)
	if at%v.stride == 0 {
		v.take(number, list)
	}
	v.written.add(len(list), number)
	for len(list) > 1 && strings.TrimSpace(list[len(list)-1]) == "" {
		list = list[:len(list)-1]
	}
	v.counts.add(len(list), number)
	for j, field := range list[:min(len(list), mostColumns)] {
		if j == len(v.columns) {
			v.columns = append(v.columns, column{})
		}
		v.columns[j].add(field)
	}
	return true
}

// settled reports whether the first columns are neither numbers nor names.
func (v *survey) settled(n int) bool {
	for j := range n {
		if !v.columns[j].settled() {
			return false
		}
	}
	return true
}

// add counts a line with so many columns.
func (c lineCounts) add(columns, number int) {
	n := c[columns]
	if n == nil {
		n = &lineCount{}
		c[columns] = n
	}
	if n.lines++; len(n.first) < mostNamed {
		n.first = append(n.first, number)
	}
}

// take keeps a line. When there are too many, every other one goes.
func (v *survey) take(number int, fields []string) {
	if len(v.samples) == mostSamples {
		kept := v.samples[:0]
		for i, s := range v.samples {
			if i%2 == 0 {
				kept = append(kept, s)
			}
		}
		clear(v.samples[len(kept):])
		v.samples, v.stride = kept, 2*v.stride
		if (v.lines-1)%v.stride != 0 {
			return
		}
	}
	v.samples = append(v.samples, sample{number, slices.Clone(fields)})
}

// usual is the number of columns that most lines have.
func (v *survey) usual() int {
	usual, most := 0, 0
	for n, c := range v.counts {
		if c.lines > most || c.lines == most && n > usual {
			usual, most = n, c.lines
		}
	}
	return usual
}

// values returns at most n values of a column, spread over the sampled lines that have it.
func (v *survey) values(column, n int) (list []string) {
	for _, s := range v.samples {
		if column < len(s.fields) {
			if value := strings.TrimSpace(s.fields[column]); value != "" {
				list = append(list, value)
			}
		}
	}
	if len(list) <= n {
		return list
	}
	spread := make([]string, n)
	for i := range spread {
		spread[i] = list[i*len(list)/n]
	}
	return spread
}

// likeness is how alike two columns are in the sampled lines: the mean, and whether there is a line with both.
func (v *survey) likeness(a, b int) (mean float64, ok bool) {
	sum, n := 0.0, 0
	for _, s := range v.samples {
		if max(a, b) < len(s.fields) && strings.TrimSpace(s.fields[a]) != "" && strings.TrimSpace(s.fields[b]) != "" {
			sum += alike(s.fields[a], s.fields[b])
			n++
		}
	}
	return sum / float64(max(1, n)), n > 0
}

// wider returns the lines with more columns than n, at most mostNamed of their numbers, and how many there are.
func (v *survey) wider(n int) (first []int, lines int) {
	for columns, c := range v.counts {
		if columns > n {
			lines += c.lines
			first = append(first, c.first...)
		}
	}
	slices.Sort(first)
	return first[:min(len(first), mostNamed)], lines
}
