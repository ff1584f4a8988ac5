package cudac

import "fmt"

// cached is how much of what blocks read at a time is to be in the GPU's L2 cache: 16 MiB of the 40 to 50 that the
// cards for training have, since half of such a cache may be far from a multiprocessor, and the results go through it,
// too.
const cached = 16 << 20

// readTogether is the number of matrices whose keys and values, which all blocks of a matrix read, are in the cache at
// a time. Blocks that compute the gradients of keys and values read queries and gradients as often, but with a causal
// mask they differ more in length: there, that the longest come first is worth more than what is in the cache.
func readTogether(keys, head int) int { return max(1, cached/(4*keys*head)) }

// order is that of the parts of a matrix. With a causal mask, the last queries and the first keys take the longest.
type order int

const (
	firstFirst order = iota
	lastFirst
)

// numberBlocks writes which part of which matrix of the batch a block computes. The groups follow each other. In a
// group, one part of all its matrices comes first, then the next: the parts of a matrix read the same memory while it
// is in the cache, and where the longest parts come first, the last blocks of a group are short ones.
func numberBlocks(batch, parts, group int, o order) []string {
	group = min(group, batch)
	place := fmt.Sprintf("const int group = blockIdx.x / %d, place = blockIdx.x %% %d;", group*parts, group*parts)
	size := fmt.Sprint(group)
	if last := batch % group; last > 0 {
		size = fmt.Sprintf("(group < %d ? %d : %d)", batch/group, group, last)
	}
	part := "place / " + size
	if o == lastFirst {
		part = fmt.Sprintf("%d - ", parts-1) + part
	}
	return []string{place, fmt.Sprintf("const int part = %s, batch = group * %d + place %% %s;", part, group, size)}
}
