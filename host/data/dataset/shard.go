package dataset

import (
	"crypto/sha256"
	"encoding/binary"
	"path/filepath"
	"slices"
)

// Shard returns which of n parts of the list a row is in, from 0 on. All rows of one part of a recording are in the
// same. Where the data set lies does not matter, nor do the other rows.
func (ix *Index) Shard(row int32, n int) int {
	r := &ix.Rows[row]
	name := r.Path
	if inside, err := filepath.Rel(ix.Dir, name); err == nil && filepath.IsLocal(inside) {
		name = inside
	}
	var space [256]byte
	b := appendField(space[:0], "shard")
	b = appendField(b, filepath.ToSlash(name))
	b = appendInt(b, int64(r.Offset))
	b = appendInt(b, int64(r.Frames))
	sum := sha256.Sum256(b)
	return mulHigh(binary.BigEndian.Uint64(sum[:]), n)
}

// Part returns a plan of those rows that keep names, in the order of an evaluation plan and in the buckets of p. It may
// have no batch.
func (p *Plan) Part(keep func(row int32) bool) *Plan {
	part := &Plan{cfg: p.cfg, samples: p.samples, buckets: make([]int32, len(p.buckets))}
	counts := make([]int, len(p.cfg.Buckets))
	for i, b := range p.buckets {
		if !keep(int32(i)) {
			b = -1
		}
		if part.buckets[i] = b; b >= 0 {
			counts[b]++
		}
	}
	for _, n := range counts {
		part.batches += (n + p.cfg.BatchSize - 1) / p.cfg.BatchSize
	}
	part.excluded = slices.DeleteFunc(slices.Clone(p.excluded), func(e Excluded) bool { return !keep(e.Row) })
	part.fix()
	return part
}

// Rows returns the number of rows in the batches of an epoch.
func (p *Plan) Rows() (n int) {
	for _, b := range p.buckets {
		if b >= 0 {
			n++
		}
	}
	return n
}
