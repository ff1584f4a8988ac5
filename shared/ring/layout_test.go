package ring

import (
	"errors"
	"testing"

	"github.com/xtts-host/xtts-host/shared/manifest"
)

// testLayout has tensors that end at different offsets in an 8-byte word.
func testLayout() Layout {
	return NewLayout([]Tensor{
		{Name: "text", DType: manifest.I32, Shape: []int{3, 5}},
		{Name: "flags", DType: manifest.Bool, Shape: []int{3}, Offset: 77},
		{Name: "mel", DType: manifest.F32, Shape: []int{3, 7, 80}},
	}, []Tensor{
		{Name: "waveform", DType: manifest.F32, Shape: []int{3, 1000}},
		{Name: "full", DType: manifest.F64, Shape: []int{32}},
		{Name: "codes", DType: manifest.U8, Shape: []int{3, 64}},
	})
}

func TestLayoutPlacesTensors(t *testing.T) {
	l := testLayout()
	end := 0
	for _, x := range l.Tensors {
		if x.Offset%Align != 0 {
			t.Errorf("%s has offset %d", x.Name, x.Offset)
		}
		if x.Offset < end {
			t.Errorf("%s at %d overlaps what ends at %d with its guard", x.Name, x.Offset, end)
		}
		end = x.Offset + x.Bytes() + GuardSize
	}
	if l.Size < end || l.Size%Align != 0 {
		t.Errorf("size %d, the last guard ends at %d", l.Size, end)
	}
	mel, _ := l.Find("mel")
	waveform, _ := l.Find("waveform")
	if l.InputBytes < mel.Offset+mel.Bytes() || l.InputBytes > waveform.Offset {
		t.Errorf("the inputs' part ends at %d: mel ends at %d, waveform begins at %d", l.InputBytes,
			mel.Offset+mel.Bytes(), waveform.Offset)
	}
	if _, ok := l.Find("nothing"); ok {
		t.Error("found a tensor that does not exist")
	}
}

func TestViewEndsWithTensor(t *testing.T) {
	l := testLayout()
	slot := make([]byte, l.Size)
	v := l.View(slot, "flags")
	if len(v) != 3 || cap(v) != 3 {
		t.Errorf("view of 3 bytes has length %d and capacity %d", len(v), cap(v))
	}
	v[2] = 9
	if flags, _ := l.Find("flags"); slot[flags.Offset+2] != 9 {
		t.Error("the view is not the slot's memory")
	}
	if l.View(slot, "nothing") != nil {
		t.Error("got a view of a tensor that does not exist")
	}
}

// TestGuards overwrites each byte after each tensor. CheckGuards must find those within the guard's words.
func TestGuards(t *testing.T) {
	l := testLayout()
	slot := make([]byte, l.Size)
	l.WriteGuards(slot)
	for _, x := range l.Tensors {
		for i := range x.In(slot) {
			x.In(slot)[i] = 0xee
		}
	}
	if err := l.CheckGuards(slot); err != nil {
		t.Fatalf("full tensors: %v", err)
	}
	for _, x := range l.Tensors {
		end := x.Offset + x.Bytes()
		first := (end + 7) &^ 7
		for at := first; at < first+GuardSize-8; at++ {
			slot[at] ^= 1
			err := l.CheckGuards(slot)
			slot[at] ^= 1
			var g *GuardError
			if !errors.As(err, &g) || g.Tensor != x.Name {
				t.Fatalf("byte %d after %s: %v", at-end, x.Name, err)
			}
			if g.Offset != at-end {
				t.Errorf("byte %d after %s was reported at %d", at-end, x.Name, g.Offset)
			}
		}
	}
	// What a stage writes that counts one frame too many: plain floats, zeros and pad values.
	for _, v := range []byte{0, 0xff} {
		mel, _ := l.Find("mel")
		at := slot[mel.Offset+mel.Bytes():][:8]
		saved := [8]byte(at)
		for i := range at {
			at[i] = v
		}
		if l.CheckGuards(slot) == nil {
			t.Errorf("bytes of %#x after a tensor were not found", v)
		}
		copy(at, saved[:])
	}
}

func BenchmarkGuards(b *testing.B) {
	l := testLayout()
	slot := make([]byte, l.Size)
	for b.Loop() {
		l.WriteGuards(slot)
		if err := l.CheckGuards(slot); err != nil {
			b.Fatal(err)
		}
	}
}
