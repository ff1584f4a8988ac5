package world

import (
	"slices"
	"testing"
)

// TestRanksShareABatch: every row belongs to one rank, all ranks have the same number, and empty rows come last.
func TestRanksShareABatch(t *testing.T) {
	batch := []int32{7, 3, 9, 4, 1, -1, -1, -1}
	for _, size := range []int{1, 2, 4, 8} {
		var all []int32
		for rank := range size {
			w := World{Rank: rank, Size: size}
			rows := w.Rows(nil, batch)
			if len(rows)*size != w.BatchSize(len(rows)) || w.BatchSize(len(rows)) != len(batch) {
				t.Errorf("rank %d of %d has %d rows", rank, size, len(rows))
			}
			if empty := slices.Index(rows, -1); empty >= 0 && slices.Max(rows[empty:]) >= 0 {
				t.Errorf("rank %d of %d has rows after an empty one: %v", rank, size, rows)
			}
			all = append(all, rows...)
		}
		slices.Sort(all)
		if want := slices.Sorted(slices.Values(batch)); !slices.Equal(all, want) {
			t.Errorf("the ranks of %d have %v, want %v", size, all, want)
		}
	}
}

// TestOneRankHasTheSameBits: a process that trains alone takes the plan's batches and micro-batches as they are.
func TestOneRankHasTheSameBits(t *testing.T) {
	for _, w := range []World{{}, {Rank: 0, Size: 1}} {
		if !w.Alone() || !w.Leads() || w.Check() != nil || w.BatchSize(8) != 8 || w.Micro(3) != 3 || w.Of(5) != 5 {
			t.Errorf("%+v changes what a process alone computes", w)
		}
		if rows := w.Rows(nil, []int32{2, 1, -1}); !slices.Equal(rows, []int32{2, 1, -1}) {
			t.Errorf("%+v has the rows %v", w, rows)
		}
	}
}

// TestMicroBatchesHaveNumbersOfTheirOwn: no two micro-batches of a window have one.
func TestMicroBatchesHaveNumbersOfTheirOwn(t *testing.T) {
	var all []int
	for rank := range 3 {
		for micro := range 2 {
			all = append(all, World{Rank: rank, Size: 3}.Micro(micro))
		}
	}
	slices.Sort(all)
	if want := []int{0, 1, 2, 3, 4, 5}; !slices.Equal(all, want) {
		t.Errorf("micro-batches have the numbers %v, want %v", all, want)
	}
}

func TestWorldHasItsRanks(t *testing.T) {
	for _, w := range []World{{Rank: -1}, {Rank: 1}, {Rank: 2, Size: 2}, {Size: -1}} {
		if w.Check() == nil {
			t.Errorf("%+v is taken", w)
		}
	}
	if w := (World{Rank: 1, Size: 2}); w.Check() != nil || w.Leads() {
		t.Errorf("%+v: %v", w, w.Check())
	}
}
