package reduce

import (
	"math"
	"testing"

	"github.com/xtts-host/xtts-host/ortgraphs/ort"
	"github.com/xtts-host/xtts-host/shared/manifest"
)

// TestAdd: f32 is added in the order of the ranks, bf16 in f32 and rounded once, ties to even.
func TestAdd(t *testing.T) {
	// (1 + 2^-24) + 2^-24 is 1 in this order, and 1 + 2^-23 in another.
	a, b := []float32{1, 3, float32(math.Copysign(0, -1))}, []float32{1 << 24, 4, float32(math.Copysign(0, -1))}
	b[0] = float32(math.Ldexp(1, -24))
	c := []float32{b[0], 5, float32(math.Copysign(0, -1))}
	bytes := func(v []float32) []byte {
		out := make([]byte, 4*len(v))
		copy(ort.View[float32](out), v)
		return out
	}
	all := [][]byte{bytes(a), bytes(b), bytes(c)}
	add(manifest.F32, all)
	if sum := ort.View[float32](all[0]); sum[0] != 1 || sum[1] != 12 || !math.Signbit(float64(sum[2])) {
		t.Errorf("f32: %v", sum)
	}

	for _, x := range []struct {
		ranks []uint16
		want  uint16
	}{
		{[]uint16{0x3f80, 0x3f80}, 0x4000},         // 1 + 1
		{[]uint16{0x3f80, 0x3b80}, 0x3f80},         // 1 + 2^-8: a tie, to the even one
		{[]uint16{0x3f81, 0x3b80}, 0x3f82},         // the same from an odd one
		{[]uint16{0x3f80, 0x3b80, 0x3b80}, 0x3f81}, // 1 + 2^-8 + 2^-8, rounded once
		{[]uint16{0x8000, 0x8000}, 0x8000},         // -0
		{[]uint16{0x7f80, 0xff80}, 0x7fc0},         // inf - inf
		{[]uint16{0x7f7f, 0x7f7f}, 0x7f80},         // beyond the largest
	} {
		var all [][]byte
		for _, v := range x.ranks {
			all = append(all, []byte{byte(v), byte(v >> 8)})
		}
		add(manifest.BF16, all)
		got := uint16(all[0][0]) | uint16(all[0][1])<<8
		if x.want == 0x7fc0 {
			got &= 0x7fff // the sign of what is not a number says nothing
		}
		if got != x.want {
			t.Errorf("bf16 %04x: %04x, want %04x", x.ranks, got, x.want)
		}
	}
}
