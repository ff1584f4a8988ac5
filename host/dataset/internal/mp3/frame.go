package mp3

import (
	"encoding/binary"
	"errors"
	"fmt"
)

// headerSize is the number of bytes of a frame's header.
const headerSize = 4

// frame is what a frame's header says.
type frame struct {
	size     int // bytes, with the header
	rate     int // Hz
	channels int
	samples  int // per channel
	side     int // offset of the side information
	main     int // offset of the main data
	lsf      bool
}

// like reports whether two frames can belong to one recording.
func (f frame) like(g frame) bool {
	return f.rate == g.rate && f.channels == g.channels && f.samples == g.samples
}

// reservoir is the largest number of bytes of main data before a frame that it may use: what its field of 9 or 8 bits
// can say.
func (f frame) reservoir() int {
	if f.lsf {
		return 255
	}
	return 511
}

// kbits are the bit rates by index, for MPEG-1 and MPEG-2, in 1000 bit/s.
var kbits = [2][16]int{
	{0, 32, 40, 48, 56, 64, 80, 96, 112, 128, 160, 192, 224, 256, 320},
	{0, 8, 16, 24, 32, 40, 48, 56, 64, 80, 96, 112, 128, 144, 160},
}

var rates = [3]int{44100, 48000, 32000} // of MPEG-1; MPEG-2 has half of them

// parseFrame reads the header of a frame.
func parseFrame(b []byte) (frame, error) {
	if len(b) < headerSize {
		return frame{}, fmt.Errorf("truncated: %d bytes", len(b))
	}
	v := binary.BigEndian.Uint32(b)
	bitrate, rate, padding := int(v>>12&15), int(v>>10&3), int(v>>9&1)
	switch version, layer := v>>19&3, v>>17&3; {
	case v>>21 != 1<<11-1 || version == 1 || bitrate == 15 || rate == 3 || v&3 == 2:
		return frame{}, errors.New("damaged: no frame begins there")
	case layer != 1:
		return frame{}, fmt.Errorf("%w: layer %d of MPEG audio", ErrUnsupported, 4-layer)
	case version == 0:
		return frame{}, fmt.Errorf("%w: MPEG-2.5, of %d Hz", ErrUnsupported, rates[rate]/4)
	case bitrate == 0:
		return frame{}, fmt.Errorf("%w: free bit rate", ErrUnsupported)
	}
	f := frame{rate: rates[rate], channels: 2, samples: 1152, side: headerSize, lsf: v>>19&3 == 2}
	if v>>6&3 == 3 {
		f.channels = 1
	}
	if v>>16&1 == 0 {
		f.side += 2 // a checksum, which encoders rarely write
	}
	side, mpeg := [2]int{17, 32}[f.channels-1], 0
	if f.lsf {
		side, mpeg = [2]int{9, 17}[f.channels-1], 1
		f.rate /= 2
		f.samples = 576
	}
	f.main = f.side + side
	bits := 1000 * kbits[mpeg][bitrate] * f.samples / 8
	f.size = bits/f.rate + padding
	if f.size < f.main {
		return frame{}, fmt.Errorf("damaged: %d bytes are fewer than those of its fields", f.size)
	}
	if decoded := (2*bits/f.rate + padding) / 2; f.lsf && decoded != f.size {
		return frame{}, fmt.Errorf("%w: frames of %d Hz at %d kbit/s with a byte of padding, whose size the decoder gets wrong",
			ErrUnsupported, f.rate, kbits[mpeg][bitrate])
	}
	if f.lsf && v>>6&3 == 1 && v>>4&1 == 1 {
		return frame{}, fmt.Errorf("%w: intensity stereo of MPEG-2", ErrUnsupported)
	}
	return f, nil
}
