package train

import (
	"github.com/xtts-host/xtts-host/ortgraphs"
	"github.com/xtts-host/xtts-host/ortgraphs/ort"
)

// vector is a block with the layout of one of an arena's vectors.
type vector struct {
	block
	arena *ortgraphs.Arena
	kind  ortgraphs.Vector
}

// vector returns a zeroed vector.
func (m *memory) vector(arena *ortgraphs.Arena, kind ortgraphs.Vector) vector {
	return vector{m.block(arena.Bytes(kind)), arena, kind}
}

// view returns a tensor on a span of a block, flat unless a shape is given.
func (m *memory) view(b block, s ortgraphs.Span, shape ...int) *ort.Tensor {
	return m.tensor(b, s.Offset, s.DType, shape...)
}

// flat returns a one-dimensional tensor on a range of a vector.
func (m *memory) flat(v vector, r ortgraphs.Range) *ort.Tensor {
	return m.view(v.block, v.span(r), r.Len())
}

// span returns the position of a range.
func (v *vector) span(r ortgraphs.Range) ortgraphs.Span { return v.arena.Span(v.kind, r) }

// region returns the memory of a range, on a GPU.
func (v *vector) region(r ortgraphs.Range) region {
	s := v.span(r)
	return region{v.dev, s.Offset, s.Bytes(), s.DType}
}

// address returns the address of a range, on a GPU.
func (v *vector) address(r ortgraphs.Range) uint64 {
	return uint64(v.dev.Pointer()) + uint64(v.span(r).Offset)
}
