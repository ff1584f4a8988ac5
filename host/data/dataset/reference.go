package dataset

import (
	"crypto/sha256"
	"encoding/binary"
)

// References selects, for every row and epoch, the reference clip from which a model takes the voice: a part of another
// clip of the same speaker. It is a pure function of the seed (docs/data-plan.md) and safe for concurrent use.
type References struct {
	seed   int64
	rows   []Row
	groups [][]int32 // the rows of each speaker, in file order
	place  []int32   // of each row in its group
}

// Crop is a part of a clip, in samples at the index's rate.
type Crop struct {
	Row            int32
	Offset, Length int
}

// NewReferences prepares the selection among the rows of an index.
func NewReferences(ix *Index, seed int64) *References {
	r := &References{seed: seed, rows: ix.Rows, groups: make([][]int32, len(ix.Speakers)), place: make([]int32,
		len(ix.Rows))}
	for i := range ix.Rows {
		g := &r.groups[ix.Rows[i].SpeakerID]
		r.place[i] = int32(len(*g))
		*g = append(*g, int32(i))
	}
	return r
}

// Crop returns the reference of a row in an epoch, at most length samples long: a part of another clip of the speaker,
// or of the row itself if the speaker has no other.
func (r *References) Crop(epoch int, row int32, length int) Crop {
	which, where := r.draw(epoch, row)
	if group := r.groups[r.rows[row].SpeakerID]; len(group) > 1 {
		i := mulHigh(which, len(group)-1)
		if i >= int(r.place[row]) {
			i++ // the row itself is not a candidate
		}
		row = group[i]
	}
	return r.crop(row, where, length)
}

// Own returns a crop of the row itself, to replace an unreadable reference.
func (r *References) Own(epoch int, row int32, length int) Crop {
	_, where := r.draw(epoch, row)
	return r.crop(row, where, length)
}

func (r *References) draw(epoch int, row int32) (which, where uint64) {
	var space [256]byte
	b := appendField(space[:0], "reference")
	b = appendInt(b, r.seed)
	b = appendInt(b, int64(epoch))
	b = appendField(b, r.rows[row].ID)
	sum := sha256.Sum256(b)
	return binary.BigEndian.Uint64(sum[:]), binary.BigEndian.Uint64(sum[8:])
}

func (r *References) crop(row int32, where uint64, length int) Crop {
	samples := r.rows[row].Samples
	length = min(length, samples)
	return Crop{Row: row, Offset: mulHigh(where, samples-length+1), Length: length}
}
