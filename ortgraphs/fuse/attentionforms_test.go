package fuse_test

import (
	"regexp"
	"testing"

	"github.com/xtts-host/xtts-host/ortgraphs/fuse/cudac"
	"github.com/xtts-host/xtts-host/ortgraphs/shapes"
)

// TestSumsOfResult: the backward pass reads the result of the forward pass rather than computing all scores twice, with
// any mask that both passes multiply with.
func TestSumsOfResult(t *testing.T) {
	for name, c := range map[string]struct {
		attending
		want bool
	}{
		"without a mask":            {attending{lengths: true}, true},
		"dropout":                   {attending{dropout: true}, true},
		"dropout of hashes":         {attending{dropout: true, form: "hashes"}, true},
		"gradients of other values": {attending{form: "other values"}, false},
		"another dropout":           {attending{dropout: true, form: "other dropout"}, false},
	} {
		a := c.attending
		a.batch, a.heads, a.queries, a.keys, a.head = 2, 2, 9, 11, 16
		_, _, regions := partition(t, a.model(), shapes.Sizes{})
		found := false
		for _, r := range regions {
			if attentionOf(r) != nil && attentionOf(r).Backward != nil {
				found = true
				if got := attentionOf(r).Backward.Result != nil; got != c.want {
					t.Errorf("%s: reads the result: %t, want %t", name, got, c.want)
				}
			}
		}
		if !found {
			t.Errorf("%s: no gradient of attention", name)
		}
	}
}

// TestTerms: the functions of a place read no memory, but for tensors that depend on query and key.
func TestTerms(t *testing.T) {
	functions := regexp.MustCompile(`(?s)auto (score|weight|summed|of_queries|of_keys) = .*?\n\s*\};`)
	load := regexp.MustCompile(`\bp\d+\[`)
	for name, c := range map[string]struct {
		attending
		reads bool
	}{
		"a mask of lengths and dropout of hashes": {attending{lengths: true, dropout: true, form: "hashes"}, false},
		"dropout":              {attending{dropout: true}, false},
		"a bias of each place": {attending{bias: true}, true},
	} {
		a := c.attending
		a.batch, a.heads, a.queries, a.keys, a.head = 2, 2, 9, 11, 16
		_, _, regions := partition(t, a.model(), shapes.Sizes{})
		if forward, backward := regionsOf(regions); forward != 1 || backward != 1 {
			t.Fatalf("%s: %d regions of attention, %d of its gradient", name, forward, backward)
		}
		for _, r := range regions {
			if attentionOf(r) == nil {
				continue
			}
			k, err := cudac.Generate(r, cudac.Target{})
			if err != nil {
				t.Fatal(err)
			}
			list := functions.FindAllString(k.Source, -1)
			if len(list) < 2 {
				t.Fatalf("%s: %d functions in %s", name, len(list), k.Source)
			}
			reads := false
			for _, f := range list {
				reads = reads || load.MatchString(f)
			}
			if reads != c.reads {
				t.Errorf("%s: functions read memory: %t, want %t", name, reads, c.reads)
			}
		}
	}
}

// split divides a tensor of [batch, positions, heads * head] into heads.
func (a *attending) split(x string, positions int) string {
	switch a.form {
	case "time first":
		a.node("Reshape", x+".3", nil, x, a.ints(positions, a.batch*a.heads, a.head))
		return a.node("Reshape", x+".heads", nil, a.transpose(x+".3", x+".turned", 1, 0, 2),
			a.ints(a.batch, a.heads, positions, a.head))
	case "channels first":
		a.node("Reshape", x+".4", nil, x, a.ints(a.batch, a.heads, a.head, positions))
		return a.transpose(x+".4", x+".heads", 0, 1, 3, 2)
	case "scattered":
		a.node("Reshape", x+".5", nil, x, a.ints(positions/3, a.batch, 3, a.heads, a.head))
		return a.node("Reshape", x+".heads", nil, a.transpose(x+".5", x+".turned", 1, 3, 0, 2, 4),
			a.ints(a.batch, a.heads, positions, a.head))
	}
	a.node("Reshape", x+".4", nil, x, a.ints(a.batch, positions, a.heads, a.head))
	return a.transpose(x+".4", x+".heads", 0, 2, 1, 3)
}

// merge is the inverse of split.
func (a *attending) merge(x, out string, positions int) string {
	switch a.form {
	case "time first":
		a.node("Reshape", x+".3", nil, x, a.ints(a.batch*a.heads, positions, a.head))
		a.transpose(x+".3", x+".turned", 1, 0, 2)
		return a.node("Reshape", out, nil, x+".turned", a.ints(a.shape(positions)...))
	case "channels first":
		a.transpose(x, x+".turned", 0, 1, 3, 2)
		return a.node("Reshape", out, nil, x+".turned", a.ints(a.shape(positions)...))
	case "scattered":
		a.node("Reshape", x+".5", nil, x, a.ints(a.batch, a.heads, positions/3, 3, a.head))
		a.transpose(x+".5", x+".turned", 2, 0, 3, 1, 4)
		return a.node("Reshape", out, nil, x+".turned", a.ints(a.shape(positions)...))
	}
	a.transpose(x, x+".turned", 0, 2, 1, 3)
	return a.node("Reshape", out, nil, x+".turned", a.ints(a.batch, positions, a.heads*a.head))
}

// shape is that of queries, keys or values with all heads.
func (a *attending) shape(positions int) []int {
	width := a.heads * a.head
	switch a.form {
	case "time first":
		return []int{positions, a.batch, width}
	case "channels first":
		return []int{a.batch, width, positions}
	case "scattered":
		return []int{positions / 3, a.batch, 3, width}
	}
	return []int{a.batch, positions, width}
}

// selected joins gradients as nn.MultiheadAttention does, which selects queries, keys and values by an index: each is a
// part of zeros, of which the sum is read in rows of all columns.
func (a *attending) selected(parts []string) {
	width := a.heads * a.head
	sum := ""
	for i, x := range parts {
		a.node("Reshape", x+".1", nil, x, a.ints(1, a.queries, a.batch, width))
		x = a.cast(x+".1", x+".f", f32)
		pads := a.ints(i, 0, 0, 0, len(parts)-1-i, 0, 0, 0)
		x = a.cast(a.node("Pad", x+".padded", nil, x, pads), x+".short", short)
		if sum != "" {
			x = a.node("Add", x+".sum", nil, sum, x)
		}
		sum = x
	}
	a.node("Reshape", "sum.5", nil, sum, a.ints(len(parts), a.queries, a.batch, 1, width))
	a.transpose("sum.5", "sum.turned", 3, 1, 2, 0, 4)
	a.gradient(a.node("Reshape", "joined", nil, "sum.turned", a.ints(a.queries, a.batch, len(parts)*width)))
}
