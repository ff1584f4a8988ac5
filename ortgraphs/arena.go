package ortgraphs

import "github.com/xtts-host/xtts-host/shared/manifest"

// ArenaAlign is the alignment of every parameter in an arena, in elements: 256 bytes of f32, what CUDA's own
// allocations have, so that a view is as good as an allocation to every kernel.
const ArenaAlign = 64

// Arena places the parameters of a model in one flat f32 vector: first those that weight decay applies to, then
// the others, then the frozen ones, so that an optimizer step is two runs over contiguous memory whatever the
// model. Gradients and moments have arenas of the same layout. Everything between the parameters is zero and
// stays zero: its gradient is.
//
// The zero value is the arena of no parameters.
type Arena struct {
	// Offsets holds the first element of each parameter, in the order of the bundle's list.
	Offsets []int
	// Decayed, NotDecayed and Frozen follow each other without a gap. Their ends are aligned, too.
	Decayed, NotDecayed, Frozen Range
	// Len is the arena's length in elements.
	Len int
}

// Range is the elements Start <= i < End of an arena.
type Range struct{ Start, End int }

// Len returns the number of elements.
func (r Range) Len() int { return r.End - r.Start }

// LayoutArena computes the layout of parameters that stand in arena order, as those of a bundle do.
func LayoutArena(parameters []manifest.Parameter) Arena {
	a := Arena{Offsets: make([]int, len(parameters))}
	for i, p := range parameters {
		a.Offsets[i] = a.Len
		a.Len += (p.Elements() + ArenaAlign - 1) / ArenaAlign * ArenaAlign
		switch {
		case p.Frozen:
		case p.Decay:
			a.Decayed.End, a.NotDecayed.End = a.Len, a.Len
		default:
			a.NotDecayed.End = a.Len
		}
	}
	a.NotDecayed.Start = a.Decayed.End
	a.Frozen = Range{a.NotDecayed.End, a.Len}
	return a
}
