package dataset

import "testing"

// A reference is another clip of the speaker if there is one, all clips are used, and parts lie within their clip.
func TestReferences(t *testing.T) {
	ids := []string{"A/1", "B/1", "A/2", "A/3", "B/2", "only/1", "solo"}
	samples := []int{1000, 50, 400, 2000, 500, 3000, 70}
	ix := speakers(ids, samples)
	r := NewReferences(ix, 11)
	const length = 300
	used := map[[2]int32]int{}
	offsets := map[int]bool{}
	for epoch := range 200 {
		for row := range int32(len(ids)) {
			c := r.Crop(epoch, row, length)
			if c != r.Crop(epoch, row, length) {
				t.Fatal("not a pure function")
			}
			alone := row >= 5
			if ix.Rows[c.Row].SpeakerID != ix.Rows[row].SpeakerID || (c.Row == row) != alone {
				t.Errorf("row %s has the reference %s", ids[row], ids[c.Row])
			}
			if c.Length != min(length, samples[c.Row]) || c.Offset < 0 || c.Offset+c.Length > samples[c.Row] {
				t.Errorf("row %s: %+v of a clip of %d", ids[row], c, samples[c.Row])
			}
			used[[2]int32{row, c.Row}]++
			if c.Row == 5 {
				offsets[c.Offset] = true
			}
			own := r.Own(epoch, row, length)
			if own.Row != row || own.Offset+own.Length > samples[row] || alone && own != c {
				t.Errorf("row %s: own part %+v", ids[row], own)
			}
		}
	}
	for _, pair := range [][2]int32{{0, 2}, {0, 3}, {2, 0}, {2, 3}, {3, 0}, {3, 2}} {
		if n := used[pair]; n < 70 || n > 130 { // 100 expected, standard deviation 7
			t.Errorf("%s is the reference of %s in %d of 200 epochs", ids[pair[1]], ids[pair[0]], n)
		}
	}
	if len(offsets) < 150 {
		t.Errorf("only %d different parts of a long clip in 200 epochs", len(offsets))
	}
	if NewReferences(ix, 12).Crop(0, 5, length) == r.Crop(0, 5, length) {
		t.Error("two seeds give one part")
	}
}
