package lifetime

import (
	"cmp"
	"slices"
)

// arena is ONNX Runtime's (core/framework/bfc_arena.cc), as a run configures it: it takes the smallest free chunk that
// is large enough, and divides it if there is a rest. Free neighbors are joined, but not those of two regions. A region
// is as large as the request for which there was no room.
type arena struct {
	free  []*chunk // by size, and then by address
	total int64
}

// chunk is a part of a region.
type chunk struct {
	at, size   int64
	used       bool
	prev, next *chunk // in its region
}

const grain = 256 // of sizes

func before(a, b *chunk) int { return cmp.Or(cmp.Compare(a.size, b.size), cmp.Compare(a.at, b.at)) }

func (a *arena) allocate(bytes int64) *chunk {
	bytes = (bytes + grain - 1) / grain * grain
	i, _ := slices.BinarySearchFunc(a.free, &chunk{size: bytes, at: -1}, before)
	if i == len(a.free) {
		c := &chunk{at: a.total, size: bytes, used: true}
		a.total += bytes
		return c
	}
	c := a.free[i]
	a.free = slices.Delete(a.free, i, i+1)
	c.used = true
	if c.size > bytes {
		rest := &chunk{at: c.at + bytes, size: c.size - bytes, prev: c, next: c.next}
		if rest.next != nil {
			rest.next.prev = rest
		}
		c.next, c.size = rest, bytes
		a.insert(rest)
	}
	return c
}

func (a *arena) release(c *chunk) {
	c.used = false
	if c.next != nil && !c.next.used {
		a.remove(c.next)
		c.absorb()
	}
	if c.prev != nil && !c.prev.used {
		c = c.prev
		a.remove(c)
		c.absorb()
	}
	a.insert(c)
}

// absorb makes the next chunk a part of this one.
func (c *chunk) absorb() {
	c.size, c.next = c.size+c.next.size, c.next.next
	if c.next != nil {
		c.next.prev = c
	}
}

func (a *arena) insert(c *chunk) {
	i, _ := slices.BinarySearchFunc(a.free, c, before)
	a.free = slices.Insert(a.free, i, c)
}

func (a *arena) remove(c *chunk) {
	i, _ := slices.BinarySearchFunc(a.free, c, before)
	a.free = slices.Delete(a.free, i, i+1)
}

// rounds is after how many rounds an arena has its size.
const rounds = 3

// Arena returns the size of an arena of ONNX Runtime that serves runs of these graphs, in turn: more than the largest
// peak, because free memory is not always in one piece.
func Arena(plans ...*Plan) int64 {
	a := &arena{}
	for range rounds {
		for _, p := range plans {
			a.run(p)
		}
	}
	return a.total
}

func (a *arena) run(p *Plan) {
	begin, end := make([][]int, len(p.Nodes)), make([][]int, len(p.Nodes))
	for i, b := range p.Buffers {
		begin[b.First] = append(begin[b.First], i)
		end[b.Last] = append(end[b.Last], i)
	}
	chunks := make([]*chunk, len(p.Buffers))
	for at := range p.Nodes {
		for _, i := range begin[at] {
			chunks[i] = a.allocate(p.Buffers[i].Bytes)
		}
		for _, i := range end[at] {
			a.release(chunks[i])
		}
	}
}
