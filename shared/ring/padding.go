package ring

import (
	"encoding/binary"
	"math"

	"github.com/xtts-host/xtts-host/shared/manifest"
)

// Padding returns the bytes of one padding element, or false for a half-precision one that is not zero.
func (t Tensor) Padding() ([]byte, bool) {
	b := make([]byte, 8)
	switch t.DType {
	case manifest.F64:
		binary.LittleEndian.PutUint64(b, math.Float64bits(t.Pad))
	case manifest.F32:
		binary.LittleEndian.PutUint32(b, math.Float32bits(float32(t.Pad)))
	case manifest.F16, manifest.BF16:
		if t.Pad != 0 {
			return nil, false
		}
	default: // little-endian integers of any size
		binary.LittleEndian.PutUint64(b, uint64(int64(t.Pad)))
	}
	return b[:t.DType.Size()], true
}

// Fill fills data, whole elements, with an element.
func Fill(data, element []byte) {
	for n := copy(data, element); n < len(data); n *= 2 {
		copy(data[n:], data[:n])
	}
}
