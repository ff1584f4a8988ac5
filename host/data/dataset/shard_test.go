package dataset

import (
	"fmt"
	"path/filepath"
	"testing"

	"github.com/xtts-host/xtts-host/shared/manifest"
)

// shardRows are rows of recordings in and outside of a folder, each in two parts.
func shardRows(dir string, n int) *Index {
	ix := &Index{Dir: dir}
	for i := range n {
		path := filepath.Join(dir, "wavs", fmt.Sprintf("ü %d.wav", i/2))
		if i%10 < 2 {
			path = fmt.Sprintf("/archive/%d.wav", i/2)
		}
		ix.Rows = append(ix.Rows, Row{
			ID: fmt.Sprint(i), Path: path, Offset: i % 2 * 100, Frames: 100, Samples: 50 + i%7,
		})
	}
	return ix
}

// TestShard: every row is in one shard, wherever the data set lies and whatever else is in the list; shards are about
// as large as each other.
func TestShard(t *testing.T) {
	const rows = 5000
	here, there := shardRows("/data/voice", rows), shardRows("/mnt/b", rows)
	for _, n := range []int{1, 2, 5, 64} {
		sizes := make([]int, n)
		for row := range int32(rows) {
			shard := here.Shard(row, n)
			if other := there.Shard(row, n); shard != other {
				t.Fatalf("row %d is in shard %d of %d, and %d in another folder", row, shard, n, other)
			}
			sizes[shard]++
		}
		for i, size := range sizes {
			if size < rows/n/2 || size > rows/n*2 {
				t.Errorf("shard %d of %d has %d rows", i, n, size)
			}
		}
	}
	same := &Index{Dir: "/d", Rows: []Row{
		{ID: "a", Path: "/d/1.wav", Frames: 9}, {ID: "b", Path: "/d/1.wav", Frames: 9},
	}}
	if same.Shard(0, 1000) != same.Shard(1, 1000) {
		t.Error("two lines of one recording are in two shards")
	}
}

// TestPart: the parts of a plan have each of its rows once, in its bucket.
func TestPart(t *testing.T) {
	const rows, n = 300, 3
	ix := shardRows("/d", rows)
	whole, err := NewPlan(ix.Rows, PlanConfig{
		Seed: 1, BatchSize: 8,
		Buckets: []manifest.Bucket{{manifest.SymbolWav: 52}, {manifest.SymbolWav: 55}},
	})
	if err != nil {
		t.Fatal(err)
	}
	seen, excluded, count := map[int32]int{}, 0, 0
	for shard := range n {
		p := whole.Part(func(row int32) bool { return ix.Shard(row, n) == shard })
		e := p.Epoch(7)
		if e.Len() != p.Batches() {
			t.Errorf("shard %d: %d batches, but the epoch has %d", shard, p.Batches(), e.Len())
		}
		in := 0
		for i := range e.Len() {
			b := e.Batch(i)
			for _, row := range b.Rows {
				if row < 0 {
					continue
				}
				in++
				seen[row]++
				if whole.Bucket(row) != b.Bucket || ix.Shard(row, n) != shard {
					t.Errorf("row %d is in bucket %d of shard %d", row, b.Bucket, shard)
				}
			}
		}
		if in != p.Rows() {
			t.Errorf("shard %d has %d rows, and says %d", shard, in, p.Rows())
		}
		count += in
		excluded += len(p.Excluded())
	}
	if len(seen) != whole.Rows() || count != whole.Rows() || excluded != len(whole.Excluded()) || excluded == 0 {
		t.Errorf("%d rows of %d, %d times; %d excluded of %d", len(seen), whole.Rows(), count, excluded,
			len(whole.Excluded()))
	}
	if none := whole.Part(func(int32) bool { return false }); none.Batches() != 0 || none.Epoch(0).Len() != 0 {
		t.Errorf("a part without rows has %d batches", none.Batches())
	}
}
