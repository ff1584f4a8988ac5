package stat

import "math"

// mostBlocks bounds the blocks of Blocks; from half of them on, blocks are joined two by two for another estimate.
const mostBlocks = 16

// Blocks takes numbers in the order in which they were measured, and says how exact their mean is. Numbers that follow
// each other may be alike, as the times of steps are: then the mean of them is less exact than that of as many
// independent ones. So it takes the means of blocks of numbers in a row, which are less alike (H. Flyvbjerg and H. G.
// Petersen, Error estimates on averages of correlated data, J. Chem. Phys. 91, 461, 1989). The zero value is empty.
type Blocks struct {
	all   Moments
	means []float64 // of whole blocks
	width int       // numbers of a block; 0 means 1
	sum   float64   // of the block that is not whole
	n     int       // its numbers
}

// Add takes a number.
func (b *Blocks) Add(v float64) {
	b.all.Add(v)
	b.sum += v
	if b.n++; b.n < max(1, b.width) {
		return
	}
	b.means = append(b.means, b.sum/float64(b.n))
	b.sum, b.n = 0, 0
	if len(b.means) == mostBlocks {
		b.means, b.width = pairs(b.means), 2*max(1, b.width)
	}
}

// pairs are the means of two numbers each.
func pairs(list []float64) (half []float64) {
	for i := 0; i+1 < len(list); i += 2 {
		half = append(half, (list[i]+list[i+1])/2)
	}
	return half
}

// Error is the standard error of the mean of all numbers: the largest of the estimates by single numbers, by blocks
// and, if there are 8 blocks or more, by blocks of twice the length. It is 0 for fewer than two numbers.
func (b *Blocks) Error() float64 {
	largest := 0.0
	if n := float64(b.all.N); n > 1 {
		largest = b.all.Std() / math.Sqrt(n-1)
	}
	for list := b.means; len(list) >= mostBlocks/4; list = pairs(list) {
		var m Moments
		for _, v := range list {
			m.Add(v)
		}
		largest = max(largest, m.Std()/math.Sqrt(float64(len(list)-1)))
	}
	return largest
}
