package fuse_test

import (
	"math"
	"slices"
	"testing"

	"github.com/xtts-host/xtts-host/ortgraphs/fuse"
	"github.com/xtts-host/xtts-host/ortgraphs/onnxpb"
	"github.com/xtts-host/xtts-host/ortgraphs/shapes"
)

// columnSums counts the sums of columns that regions of attention compute.
func columnSums(regions []*fuse.Region) (n int) {
	for _, r := range regions {
		if attentionOf(r) != nil && attentionOf(r).Backward != nil {
			n += len(attentionOf(r).Backward.ColumnSums)
		}
	}
	return n
}

// columnSumOf returns the sum of columns that a region of attention writes to a tensor.
func columnSumOf(r *fuse.Region, out *fuse.Tensor) (s fuse.ColumnSum, ok bool) {
	if attentionOf(r) == nil || attentionOf(r).Backward == nil {
		return s, false
	}
	i := slices.IndexFunc(attentionOf(r).Backward.ColumnSums, func(s fuse.ColumnSum) bool { return s.Out == out })
	if i < 0 {
		return s, false
	}
	return attentionOf(r).Backward.ColumnSums[i], true
}

// checkColumnSum compares a sum with the numbers that the kernel has stored. The interpreter's numbers are no measure
// for the gradient of a bias of keys, which is 0 but for rounding, because the softmax does not depend on it.
func checkColumnSum(t *testing.T, got, of []number, s fuse.ColumnSum) {
	t.Helper()
	for column := range got {
		sum, magnitudes := 0.0, 0.0
		for i := column; i < len(of); i += s.Columns {
			sum, magnitudes = sum+of[i].f, magnitudes+math.Abs(of[i].f)
		}
		if !(math.Abs(got[column].f-sum) <= 1e-6*magnitudes) {
			t.Errorf("%s, column %d: %g, want %g", s.Out.Name, column, got[column].f, sum)
			return
		}
	}
}

// TestOtherSums: sums of a result over other dimensions than all outer ones are regions of their own.
func TestOtherSums(t *testing.T) {
	for name, c := range map[string]struct {
		dimensions []int
		want       int // sums that the kernels of attention compute
	}{
		"all outer ones":      {[]int{0, 1}, 1},
		"a dimension is kept": {[]int{0}, 0},
		"the inner one":       {[]int{2}, 0},
		"everything":          {[]int{0, 1, 2}, 0},
	} {
		a := attending{batch: 2, heads: 2, queries: 9, keys: 11, head: 16, joined: 2}
		model := a.model()
		a.columnSums("joined", c.dimensions...)
		model.Graph = a.graph
		if _, _, regions := partition(t, model, shapes.Sizes{}); columnSums(regions) != c.want {
			t.Errorf("%s: the kernels of attention add up the columns of %d tensors, want %d", name,
				columnSums(regions), c.want)
		}
	}
}

// TestUnreadResult: a result that only the sum of its columns reads is not written, so the sum is a region of its own.
func TestUnreadResult(t *testing.T) {
	a := attending{batch: 2, heads: 2, queries: 9, keys: 11, head: 16, joined: 2}
	model := a.model()
	a.columnSums("joined", 0, 1)
	a.graph.Output = slices.DeleteFunc(a.graph.Output,
		func(o *onnxpb.ValueInfoProto) bool { return o.GetName() == "joined" })
	model.Graph = a.graph
	_, g, regions := partition(t, model, shapes.Sizes{})
	if n := columnSums(regions); n != 0 {
		t.Errorf("the kernels of attention add up the columns of %d tensors", n)
	}
	m, err := interpret(g, regions, given(g))
	if err != nil {
		t.Fatal(err)
	}
	var k kernels
	k.add(t, regions, m)
	k.gradients = 2e-2
	k.check(t, &emulation{}, 2e-2)
}
