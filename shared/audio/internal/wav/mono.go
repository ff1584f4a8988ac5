package wav

import (
	"encoding/binary"
	"fmt"
	"math"
)

// maxFloat bounds float samples: more than 18 dB above full scale is not an overshoot but another scale.
const maxFloat = 8

// SampleError reports a float sample that is not valid audio.
type SampleError struct {
	Frame   int // index of the sample in its channel, from the first given frame
	Channel int // from 0
	Value   float64
}

func (e *SampleError) Error() string {
	what := "above 8 times full scale; float samples must be in -1..1"
	if math.IsNaN(e.Value) || math.IsInf(e.Value, 0) {
		what = "not finite"
	}
	return fmt.Sprintf("sample %d of channel %d is %v: %s", e.Frame, e.Channel+1, e.Value, what)
}

// Mono fills dst with the mean of the channels of the frames in b, len(dst) of them. Integers of n bytes are divided by
// 2^(8n-1); from single bytes, 128 is subtracted first. A companded byte stands for an integer of 2 bytes. A mean is
// rounded once: the sum of the channels, in their order, and the quotient are float64.
//
// Float samples are not limited to -1..1, but samples that are not finite or beyond 8 cause a *SampleError.
func (h Header) Mono(dst []float32, b []byte) error {
	switch h.Coding {
	case Float:
		return h.floats(dst, b)
	case ALaw:
		companded(dst, b, h.Channels, &alaw)
		return nil
	case MuLaw:
		companded(dst, b, h.Channels, &mulaw)
		return nil
	}
	le := binary.LittleEndian
	width, channels := h.width(), h.Channels
	b = b[:len(dst)*width*channels]
	divisor := float64(channels) * float64(int64(1)<<(8*width-1))
	switch { // the loops differ in one line: a call per sample would take most of the time
	case width == 2 && channels == 1: // most files
		for i := range dst {
			dst[i] = float32(int16(le.Uint16(b[2*i:]))) / (1 << 15)
		}
	case width == 1:
		for i := range dst {
			sum := int64(0)
			for _, v := range b[i*channels : (i+1)*channels] {
				sum += int64(v) - 128
			}
			dst[i] = float32(float64(sum) / divisor)
		}
	case width == 2:
		for i := range dst {
			sum := int64(0)
			for at := i * channels * 2; at < (i+1)*channels*2; at += 2 {
				sum += int64(int16(le.Uint16(b[at:])))
			}
			dst[i] = float32(float64(sum) / divisor)
		}
	case width == 3:
		for i := range dst {
			sum := int64(0)
			for at := i * channels * 3; at < (i+1)*channels*3; at += 3 {
				v := b[at : at+3 : at+3]
				sum += int64(int32(v[0])<<8|int32(v[1])<<16|int32(v[2])<<24) >> 8
			}
			dst[i] = float32(float64(sum) / divisor)
		}
	case width == 4:
		for i := range dst {
			sum := int64(0)
			for at := i * channels * 4; at < (i+1)*channels*4; at += 4 {
				sum += int64(int32(le.Uint32(b[at:])))
			}
			dst[i] = float32(float64(sum) / divisor)
		}
	}
	return nil
}

func (h Header) floats(dst []float32, b []byte) error {
	le := binary.LittleEndian
	width := h.width()
	for i := range dst {
		sum := 0.0
		for c := range h.Channels {
			at := b[(i*h.Channels+c)*width:]
			var v float64
			if width == 4 {
				v = float64(math.Float32frombits(le.Uint32(at)))
			} else {
				v = math.Float64frombits(le.Uint64(at))
			}
			if !(v >= -maxFloat && v <= maxFloat) {
				return &SampleError{Frame: i, Channel: c, Value: v}
			}
			sum += v
		}
		dst[i] = float32(sum / float64(h.Channels))
	}
	return nil
}
