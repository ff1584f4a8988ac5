package dataset

import (
	"cmp"
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"fmt"
	"slices"

	"github.com/xtts-host/xtts-host/shared/manifest"
)

// LeastShared is the number of clips that the model takes from which on a share of a list is held out by default.
const LeastShared = 40

// shareLabel comes before what a recording's number is computed of.
const shareLabel = "validation share "

// shareNumber returns the number of a recording, from 0 to below 1: the first 13 hex digits of the SHA-256 of
// shareLabel and the first 32 hex digits of the SHA-256 of the file, read as a fraction. 52 bits are exact in a
// float64.
func shareNumber(content half) float64 {
	sum := sha256.Sum256([]byte(shareLabel + hex.EncodeToString(content[:])))
	return float64(binary.BigEndian.Uint64(sum[:])>>12) / (1 << 52)
}

// HeldOut returns which rows a share of the recordings holds out of training, to evaluate on (docs/data.md). It is nil
// if there are none: every recording has more than half of the clips. ReadContents comes first.
//
// The content of a recording decides, so all clips of a recording are on one side, whatever the files are called, and
// neither the order of the list nor the other recordings matter.
func (ix *Index) HeldOut(share float64) []bool {
	type group struct {
		number  float64
		content half
		rows    int
	}
	content := func(row int) half { return ix.recordings.all[ix.recordings.uses[row*ix.recordings.perRow]].content }
	sizes := map[half]int{}
	for row := range ix.Rows {
		sizes[content(row)]++
	}
	delete(sizes, half{}) // files that could not be read
	groups := make([]group, 0, len(sizes))
	for c, n := range sizes {
		groups = append(groups, group{shareNumber(c), c, n})
	}
	slices.SortFunc(groups, func(a, b group) int { return cmp.Compare(a.number, b.number) })
	chosen, room := map[half]bool{}, len(ix.Rows)/2
	for _, g := range groups {
		if g.number >= share && len(chosen) > 0 {
			break
		}
		if g.rows <= room {
			chosen[g.content] = true
			room -= g.rows
		}
	}
	if len(chosen) == 0 {
		return nil
	}
	held := make([]bool, len(ix.Rows))
	for row := range held {
		held[row] = chosen[content(row)]
	}
	return held
}

// HeldByDefault is HeldOut for a list that nobody has asked to divide. limits are those of a row for the model. If it
// holds out nothing, why says so.
func (ix *Index) HeldByDefault(share float64, limits manifest.Bucket) (held []bool, why string) {
	fits := func(row int) bool { return misfit(limits, needsOf(nil, &ix.Rows[row], 1, ix.Columns)) == nil }
	n := 0
	for row := range ix.Rows {
		if fits(row) {
			n++
		}
	}
	if n < LeastShared {
		return nil, fmt.Sprintf("the list has fewer than %d clips that the model takes", LeastShared)
	}
	if held = ix.HeldOut(share); held == nil {
		return nil, "all clips are parts of one recording"
	}
	sides := map[bool]int{}
	for row, h := range held {
		if fits(row) {
			sides[h]++
		}
	}
	if sides[true] == 0 || sides[false] == 0 {
		return nil, "the model takes clips of too few recordings"
	}
	return held, ""
}

// ShareOf returns the least share, in steps of 0.05, that holds out at least so many clips; 0 if there is none up to
// 0.5.
func (ix *Index) ShareOf(clips int) float64 {
	for step := 1; step <= 10; step++ {
		share, n := float64(step)/20, 0
		for _, held := range ix.HeldOut(share) {
			if held {
				n++
			}
		}
		if n >= clips {
			return share
		}
	}
	return 0
}

// Divide removes the held rows from the index, and returns an index of them. What is known of lines that are no rows
// stays. Both hashes are of the whole list and of which rows they have.
func (ix *Index) Divide(held []bool) *Index {
	val := *ix
	val.Rows, val.Rejected, val.Unknown, val.Ignored = nil, nil, nil, nil
	sides := make([]byte, len(held))
	for row, h := range held {
		if h {
			sides[row] = 1
		}
	}
	part := func(name string) string {
		sum := sha256.Sum256(append(appendField(appendField(nil, name), ix.hash), sides...))
		return hex.EncodeToString(sum[:])
	}
	ix.hash, val.hash = part("training"), part("validation")
	rest := ix.Rows[:0]
	for row, h := range held {
		if h {
			val.Rows = append(val.Rows, ix.Rows[row])
		} else {
			rest = append(rest, ix.Rows[row])
		}
	}
	clear(ix.Rows[len(rest):])
	ix.Rows = rest
	ix.recordings, val.recordings = nil, nil // of the whole list
	return &val
}
