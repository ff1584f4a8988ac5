package vorbis

import (
	"errors"
	"fmt"
	"math"
)

// Limits of the tables of a setup header. libvorbis uses less than a tenth of them.
const (
	maxEntries = 1 << 17 // of all codebooks
	maxValues  = 1 << 22
)

var errShort = errors.New("damaged: it ends early")

// checkSetup checks what the decoder takes for granted: sizes, complete trees of codewords, and the kind of floor.
// Residues, mappings and modes have only small sizes.
func checkSetup(b []byte) error {
	r := bits{b: b}
	entries, values := 0, 0
	for i := range r.read(8) + 1 {
		n, v, err := r.codebook()
		if err == nil && r.short {
			err = errShort
		}
		if entries, values = entries+n, values+v; err == nil && (entries > maxEntries || values > maxValues) {
			err = fmt.Errorf("tables of %d entries and %d values are too large", entries, values)
		}
		if err != nil {
			return fmt.Errorf("codebook %d: %w", i, err)
		}
	}
	for range r.read(6) + 1 {
		r.read(16) // transforms, which have no use
	}
	for range r.read(6) + 1 {
		switch kind := r.read(16); {
		case r.short:
			return errShort
		case kind == 0:
			return fmt.Errorf("%w: floor of type 0, which no encoder has written since 2002", ErrUnsupported)
		case kind != 1:
			return fmt.Errorf("damaged: floor of type %d", kind)
		}
		r.floor()
	}
	if r.short {
		return errShort
	}
	return nil
}

// codebook reads a codebook. It returns the numbers of entries and of values that the decoder makes for it.
func (r *bits) codebook() (entries, values int, err error) {
	if r.read(24) != 0x564342 {
		return 0, 0, errors.New("damaged: no mark")
	}
	dimensions := r.read(16)
	entries = r.read(24)
	if dimensions == 0 || entries < 2 || entries > maxEntries || entries*dimensions > maxValues {
		return 0, 0, fmt.Errorf("%w: %d entries of %d dimensions", ErrUnsupported, entries, dimensions)
	}
	if err := r.lengths(entries); err != nil {
		return 0, 0, err
	}
	switch kind := r.read(4); kind {
	case 0:
		return entries, 0, nil
	case 1, 2:
		r.read(32)
		r.read(32)
		width := r.read(4) + 1
		r.read(1)
		n := entries * dimensions
		if kind == 1 {
			if n = root(entries, dimensions); n != int(math.Floor(math.Pow(float64(entries), 1/float64(dimensions)))) {
				return 0, 0, fmt.Errorf("%w: %d entries of %d dimensions", ErrUnsupported, entries, dimensions)
			}
		}
		r.skip(n * width)
		return entries, entries * dimensions, nil
	default:
		return 0, 0, fmt.Errorf("damaged: lookup of type %d", kind)
	}
}

// root returns the largest n with n^dimensions <= entries.
func root(entries, dimensions int) int {
	for n := 1; ; n++ {
		power := 1
		for range dimensions {
			if power *= n + 1; power > entries {
				return n
			}
		}
	}
}

// lengths reads the lengths of the codewords, which must form a whole tree, or a single codeword of one bit: in others
// the decoder could search without end.
func (r *bits) lengths(entries int) error {
	used, sum := 0, uint64(0) // sum of 2^(32-length)
	add := func(n, length int) {
		if length <= 32 {
			used += n
			sum += uint64(n) << (32 - length)
		}
	}
	if ordered := r.read(1) == 1; ordered {
		length := r.read(5) + 1
		for at := 0; at < entries && !r.short; length++ {
			n := r.read(width(entries - at))
			if length > 32 || at+n > entries {
				return errors.New("damaged: too many codewords")
			}
			add(n, length)
			at += n
		}
	} else {
		sparse := r.read(1) == 1
		for range entries {
			if !sparse || r.read(1) == 1 {
				add(1, r.read(5)+1)
			}
			if r.short {
				break
			}
		}
	}
	if r.short {
		return errShort
	}
	if sum != 1<<32 && !(used == 1 && sum == 1<<31) {
		return errors.New("damaged: its codewords are no tree")
	}
	return nil
}

// floor reads a floor of type 1.
func (r *bits) floor() {
	partitions := make([]int, r.read(5))
	classes := 0
	for i := range partitions {
		partitions[i] = r.read(4)
		classes = max(classes, partitions[i]+1)
	}
	var dimensions [16]int
	for i := range classes {
		dimensions[i] = r.read(3) + 1
		subclass := r.read(2)
		if subclass > 0 {
			r.read(8)
		}
		r.skip(8 << subclass)
	}
	r.read(2)
	width := r.read(4)
	for _, class := range partitions {
		r.skip(dimensions[class] * width)
	}
}

// width returns the number of bits of n.
func width(n int) (bits int) {
	for ; n > 0; n >>= 1 {
		bits++
	}
	return bits
}

// bits reads numbers of up to 32 bits, the lowest bit first.
type bits struct {
	b     []byte
	at    int  // in bits
	short bool // more was read than there is
}

func (r *bits) read(n int) int {
	v := 0
	for i := range n {
		if r.at+i >= 8*len(r.b) {
			r.short = true
			return 0
		}
		v |= int(r.b[(r.at+i)/8]>>((r.at+i)%8)&1) << i
	}
	r.at += n
	return v
}

func (r *bits) skip(n int) {
	if r.at += n; r.at > 8*len(r.b) {
		r.short = true
	}
}
