package manifest

import "fmt"

// The symbols of a bucket that the host can compute from the lengths of texts and clips.
const (
	SymbolText = "T_text" // tokens
	SymbolWav  = "T_wav"  // samples
	SymbolMel  = "T_mel"  // frames of T_wav samples
)

// Fit returns the bucket for clips of up to wav samples and texts of up to tokens, for a bundle with Dynamic. All other
// symbols have the values that they have in every bucket of the bundle.
func (b *Bundle) Fit(wav, tokens int) Bucket {
	out := Bucket{}
	for symbol, n := range b.Buckets[0] {
		switch symbol {
		case SymbolWav:
			n = wav
		case SymbolMel:
			n = max(1, b.Features.Frames(wav))
		case SymbolText:
			n = max(1, tokens)
		}
		out[symbol] = n
	}
	return out
}

// LongestClip is the longest clip for which a bucket can be made, in seconds; 0 if only the bundle's buckets are used.
func (b *Bundle) LongestClip() float64 { return b.Features.Seconds(b.Dynamic[SymbolWav]) }

// checkDynamic checks that Fit can make every bucket up to Dynamic.
func (b *Bundle) checkDynamic() error {
	if b.Dynamic == nil {
		return nil
	}
	last := b.Buckets[len(b.Buckets)-1]
	for _, symbol := range []string{SymbolText, SymbolWav} {
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
		fit := b.Fit(bucket[SymbolWav], bucket[SymbolText])
		for symbol, n := range bucket {
			if n != fit[symbol] {
				return fmt.Errorf("buckets[%d]: %s = %d, expected %d: only %s and %s may differ between the buckets, and %s with the frames of %s",
					i, symbol, n, fit[symbol], SymbolText, SymbolWav, SymbolMel, SymbolWav)
			}
		}
	}
	return nil
}
