package dataset

import (
	"fmt"
	"maps"
	"slices"

	"github.com/xtts-host/xtts-host/host/data/dataset/internal/array"
	"github.com/xtts-host/xtts-host/shared/manifest"
)

// Columns are the tensors that come from columns of a list: values in the list itself, and arrays in files that it
// names (docs/data.md). They are safe for concurrent use. A nil *Columns has no tensor.
type Columns struct {
	all      []column
	counters []counter
	specs    map[string]manifest.TensorSpec // of the columns and of the lengths that they have to themselves
	arrays   *array.Reader
}

// column is one tensor.
type column struct {
	spec       manifest.TensorSpec
	vocabulary *vocabulary // nil without symbols
	inner      []int       // the sizes of a step of axis 1, or of the whole value if it has no lengths
}

// counter is a lengths tensor of columns, which have equal lengths in every row.
type counter struct {
	name    string
	columns []int
}

// Value is what a row has for a column.
type Value struct {
	// Length is that of axis 1, 0 if it is fixed.
	Length int
	// data is the packed value, or the reference to an array: a path, and the tensor after #.
	data string
}

// The lengths tensors of the data set that columns may share.
const (
	textLengths = "text_lengths"
	waveLengths = "waveform_lengths"
)

// NewColumns returns the columns of a bundle, nil if it has none. path returns the path of a file of the bundle.
func NewColumns(b *manifest.Bundle, path func(file string) string) (*Columns, error) {
	base := Specs()
	c := &Columns{specs: map[string]manifest.TensorSpec{}, arrays: array.NewReader()}
	for _, t := range b.Inputs {
		if !t.FromList() {
			continue
		}
		if _, taken := base[t.Name]; taken {
			return nil, fmt.Errorf(
				"input %s of origin %s has the name of a tensor that the host makes from recordings and texts", t.Name,
				t.Origin)
		}
		if c.specs[t.Name] = t; t.Column == "" {
			continue
		}
		col := column{spec: t}
		for _, d := range t.Shape[1:] {
			if d.Symbol == "" {
				col.inner = append(col.inner, d.Size)
			}
		}
		if t.Vocabulary != "" {
			var err error
			if col.vocabulary, err = loadVocabulary(path(t.Vocabulary), t); err != nil {
				return nil, fmt.Errorf("input %s: %w", t.Name, err)
			}
		}
		if err := c.count(t, b); err != nil {
			return nil, fmt.Errorf("input %s: %w", t.Name, err)
		}
		c.all = append(c.all, col)
	}
	if len(c.all) == 0 {
		return nil, nil
	}
	return c, nil
}

// count adds the next column to its counter.
func (c *Columns) count(t manifest.TensorSpec, b *manifest.Bundle) error {
	if t.Lengths == "" {
		return nil
	}
	// ParseBundle has found it
	at := slices.IndexFunc(b.Inputs, func(l manifest.TensorSpec) bool { return l.Name == t.Lengths })
	if l := b.Inputs[at]; l.Origin == manifest.OriginDataset && l.Name != textLengths && l.Name != waveLengths {
		return fmt.Errorf(
			"the lengths %s are not those of a clip or its text: take %s, %s, or lengths of the column's own", l.Name,
			textLengths, waveLengths)
	}
	i := slices.IndexFunc(c.counters, func(k counter) bool { return k.name == t.Lengths })
	if i < 0 {
		i = len(c.counters)
		c.counters = append(c.counters, counter{name: t.Lengths})
	}
	c.counters[i].columns = append(c.counters[i].columns, len(c.all))
	return nil
}

// Tensors declares everything that a Filler can produce, by name: what Specs declares, and the columns.
func (c *Columns) Tensors() map[string]manifest.TensorSpec {
	all := Specs()
	if c != nil {
		maps.Copy(all, c.specs)
	}
	return all
}

// list returns the columns, in the order of Row.Values.
func (c *Columns) list() []column {
	if c == nil {
		return nil
	}
	return c.all
}

// Keys returns the keys of the list, each once.
func (c *Columns) Keys() (keys []string) {
	for _, col := range c.list() {
		if !slices.Contains(keys, col.spec.Column) {
			keys = append(keys, col.spec.Column)
		}
	}
	return keys
}

// Sequence is an input whose rows have a varying number of steps.
type Sequence struct {
	Column, Lengths string
	Place           int // in Row.Values
}

// Sequences returns the inputs with a varying number of steps, of one lengths tensor if it is not "".
func (c *Columns) Sequences(lengths string) (out []Sequence) {
	for i, col := range c.list() {
		if col.spec.Lengths != "" && (lengths == "" || lengths == col.spec.Lengths) {
			out = append(out, Sequence{col.spec.Column, col.spec.Lengths, i})
		}
	}
	return out
}

// Counted returns what Excluded.Of calls the steps of columns.
func (c *Columns) Counted() (of []string) {
	for _, s := range c.Sequences("") {
		of = append(of, stepsOf(s.Column))
	}
	return of
}

func stepsOf(column string) string { return "steps of " + column }

// checkLengths refuses a row whose columns have unequal lengths although they have one lengths tensor. What a stage
// counts is not known yet.
func (c *Columns) checkLengths(values []Value, tokens, samples int) error {
	if c == nil {
		return nil
	}
	for _, k := range c.counters {
		first := c.all[k.columns[0]].spec.Column
		want, what := values[k.columns[0]].Length, first
		switch k.name {
		case textLengths:
			want, what = tokens, "the text (in tokens)"
		case waveLengths:
			want, what = samples, "the clip (in samples)"
		}
		for _, i := range k.columns {
			if n := values[i].Length; n != want {
				return fmt.Errorf("%s has the length %d, but %s has %d: %s counts both", c.all[i].spec.Column, n, what,
					want, k.name)
			}
		}
	}
	return nil
}

// needs appends the sizes of a row's columns.
func (c *Columns) needs(to []need, r *Row) []need {
	for i, col := range c.list() {
		if col.spec.Lengths != "" {
			to = append(to, need{col.spec.Shape[1].Symbol, r.Values[i].Length, stepsOf(col.spec.Column)})
		}
	}
	return to
}
