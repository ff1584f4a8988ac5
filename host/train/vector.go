package train

import (
	"github.com/xtts-host/xtts-host/ortgraphs"
	"github.com/xtts-host/xtts-host/ortgraphs/ort"
)

// vector is a block that is laid out as one of an arena's vectors.
type vector struct {
	block
	arena *ortgraphs.Arena
	kind  ortgraphs.Vector
}

// vector returns a zeroed one.
func (m *memory) vector(arena *ortgraphs.Arena, kind ortgraphs.Vector) vector {
	return vector{m.block(arena.Bytes(kind)), arena, kind}
}

// view views a span of a block as a tensor, flat unless a shape is given.
func (m *memory) view(b block, s ortgraphs.Span, shape ...int) *ort.Tensor {
	return m.tensor(b, s.Offset, s.DType, shape...)
}

// flat views a range of a vector as a tensor of one dimension.
func (m *memory) flat(v vector, r ortgraphs.Range) *ort.Tensor {
	return m.view(v.block, v.span(r), r.Len())
}

// span is where a range stands.
func (v *vector) span(r ortgraphs.Range) ortgraphs.Span { return v.arena.Span(v.kind, r) }

// region is the memory of a range, on a GPU.
func (v *vector) region(r ortgraphs.Range) region {
	s := v.span(r)
	return region{v.dev, s.Offset, s.Bytes(), s.DType}
}

// address is that of a range, on a GPU.
func (v *vector) address(r ortgraphs.Range) uint64 {
	return uint64(v.dev.Pointer()) + uint64(v.span(r).Offset)
}
