package manifest

import (
	"fmt"
	"maps"
	"slices"
	"strings"
)

// The symbols of a bucket that the host can compute from the lengths of texts and clips.
const (
	SymbolText = "T_text" // tokens
	SymbolWav  = "T_wav"  // samples
	SymbolMel  = "T_mel"  // frames of T_wav samples
)

// Fit returns the bucket for rows of up to these sizes, for a bundle with Dynamic: sizes has a value for T_wav and for
// every other symbol of Dynamic. T_mel and the symbols of Strides follow from T_wav. All other symbols have the values
// that they have in every bucket of the bundle.
func (b *Bundle) Fit(sizes Bucket) Bucket {
	out := Bucket{}
	for symbol, n := range b.Buckets[0] {
		size, given := sizes[symbol]
		stride := b.Strides[symbol]
		switch {
		case symbol == SymbolWav:
			n = size
		case symbol == SymbolMel:
			n = max(1, b.Features.Frames(sizes[SymbolWav]))
		case stride > 0:
			n = max(1, (sizes[SymbolWav]+stride-1)/stride)
		case given:
			n = max(1, size)
		}
		out[symbol] = n
	}
	return out
}

// Limited returns the symbols of Dynamic other than T_wav, in alphabetical order: the computed buckets differ in them.
func (b *Bundle) Limited() []string {
	return slices.DeleteFunc(slices.Sorted(maps.Keys(b.Dynamic)), func(s string) bool { return s == SymbolWav })
}

// Limits returns the largest sizes that a row may have: those of Dynamic, else of the last bucket.
func (b *Bundle) Limits() Bucket {
	if b.Dynamic != nil {
		return b.Dynamic
	}
	return b.Buckets[len(b.Buckets)-1]
}

// LongestClip is the longest clip for which a bucket can be made, in seconds; 0 if only the bundle's buckets are used.
func (b *Bundle) LongestClip() float64 { return b.Features.Seconds(b.Dynamic[SymbolWav]) }

// checkDynamic checks that Fit can make every bucket up to Dynamic.
func (b *Bundle) checkDynamic() error {
	if err := b.checkStrides(); err != nil || b.Dynamic == nil {
		return err
	}
	last := b.Buckets[len(b.Buckets)-1]
	for _, symbol := range b.Limited() {
		if counted := b.counted(); !slices.Contains(counted, symbol) {
			return fmt.Errorf("the host cannot count %s: besides %s, it counts %s", symbol, SymbolWav,
				strings.Join(counted, ", "))
		}
	}
	for _, symbol := range append(b.Limited(), SymbolText, SymbolWav) {
		largest, given := b.Dynamic[symbol]
		n, used := last[symbol]
		switch {
		case given != used:
			return fmt.Errorf("%s must be in both dynamic and buckets, or in neither", symbol)
		case largest < n:
			return fmt.Errorf("%s = %d is smaller than in the last bucket (%d)", symbol, largest, n)
		}
	}
	for i, bucket := range b.Buckets {
		sizes := Bucket{}
		for symbol := range b.Dynamic {
			sizes[symbol] = bucket[symbol]
		}
		fit := b.Fit(sizes)
		for symbol, n := range bucket {
			if n != fit[symbol] {
				return fmt.Errorf("buckets[%d]: %s = %d, expected %d: only %s may differ between the buckets, and %s "+
					"with the frames of %s",
					i, symbol, n, fit[symbol], strings.Join(append(b.Limited(), SymbolWav), " and "),
					strings.Join(b.followers(), " and "), SymbolWav)
			}
		}
	}
	return nil
}

// followers returns the symbols that follow from T_wav.
func (b *Bundle) followers() []string {
	return append([]string{SymbolMel}, slices.Sorted(maps.Keys(b.Strides))...)
}

func (b *Bundle) checkStrides() error {
	for _, symbol := range slices.Sorted(maps.Keys(b.Strides)) {
		_, limited := b.Dynamic[symbol]
		_, used := b.Buckets[0][symbol]
		if !used || limited || symbol == SymbolWav || symbol == SymbolMel || slices.Contains(b.counted(), symbol) {
			return fmt.Errorf(
				"strides has %s: it is for symbols of buckets that only stages write, and not for those of dynamic",
				symbol)
		}
	}
	return nil
}
