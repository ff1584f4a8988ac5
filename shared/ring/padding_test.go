package ring

import (
	"bytes"
	"math"
	"testing"

	"github.com/xtts-host/xtts-host/shared/manifest"
)

func TestPadding(t *testing.T) {
	for _, c := range []struct {
		dtype manifest.DType
		pad   float64
		want  []byte // of three elements; nil if there is none
	}{
		{manifest.F32, 1, []byte{0, 0, 0x80, 0x3f, 0, 0, 0x80, 0x3f, 0, 0, 0x80, 0x3f}},
		{manifest.F64, math.Inf(-1), bytes.Repeat([]byte{0, 0, 0, 0, 0, 0, 0xf0, 0xff}, 3)},
		{manifest.I32, -2, bytes.Repeat([]byte{0xfe, 0xff, 0xff, 0xff}, 3)},
		{manifest.I64, 258, bytes.Repeat([]byte{2, 1, 0, 0, 0, 0, 0, 0}, 3)},
		{manifest.U8, 7, []byte{7, 7, 7}},
		{manifest.Bool, 1, []byte{1, 1, 1}},
		{manifest.BF16, 0, make([]byte, 6)},
		{manifest.BF16, 1, nil},
		{manifest.F16, 1, nil},
	} {
		element, ok := Tensor{DType: c.dtype, Pad: c.pad}.Padding()
		if ok != (c.want != nil) {
			t.Errorf("%s %g: %v", c.dtype, c.pad, ok)
		}
		if !ok {
			continue
		}
		data := bytes.Repeat([]byte{0xaa}, len(c.want))
		if Fill(data, element); !bytes.Equal(data, c.want) {
			t.Errorf("%s %g: %x, want %x", c.dtype, c.pad, data, c.want)
		}
	}
	Fill(nil, []byte{1, 2})
}
