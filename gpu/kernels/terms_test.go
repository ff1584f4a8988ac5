package kernels

import (
	"math"
	"testing"
)

// TestBF16: Go rounds to bf16 as the definition says.
func TestBF16(t *testing.T) {
	for _, c := range []struct {
		from uint32
		want uint16
	}{
		{0x3f800000, 0x3f80}, {0x3f808000, 0x3f80}, {0x3f808001, 0x3f81}, {0x3f818000, 0x3f82}, {0x3f807fff, 0x3f80},
		{0xbf818000, 0xbf82}, {0, 0}, {0x80000000, 0x8000}, {0x8000, 0}, {0x8001, 1}, {0x18000, 2},
		{0x7f7fffff, 0x7f80}, {0x7f7f7fff, 0x7f7f}, {0xff800000, 0xff80},
	} {
		if got := BF16(math.Float32frombits(c.from)); got != c.want {
			t.Errorf("%#08x is %#04x, want %#04x", c.from, got, c.want)
		}
	}
	for _, nan := range []uint32{0x7fc00000, 0x7f800001, 0xffffffff, 0x7fffffff} {
		if got := BF16(math.Float32frombits(nan)); got&0x7f80 != 0x7f80 || got&0x7f == 0 {
			t.Errorf("NaN %#08x is %#04x", nan, got)
		}
	}
}
