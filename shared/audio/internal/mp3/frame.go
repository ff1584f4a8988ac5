package mp3

import (
	"encoding/binary"
	"errors"
	"fmt"

	"github.com/xtts-host/xtts-host/shared/audio/internal/layer3"
)

// headerSize is the number of bytes of a frame's header.
const headerSize = 4

// frame is what a frame's header says.
type frame struct {
	size     int // bytes, with the header; 0 if the bit rate is free
	rate     int // Hz
	channels int
	samples  int // per channel
	side     int // offset of the side information
	main     int // offset of the main data
	padding  int // bytes of it that size counts
	// The header's fields: version is 0 for MPEG-1, 1 for MPEG-2, 2 for MPEG-2.5.
	version, index        int
	middleSide, intensity bool
	old                   bool // go-mp3 reads it as it is
}

// lower reports whether the frame is of MPEG-2 or 2.5, which have one granule.
func (f frame) lower() bool { return f.version > 0 }

// like reports whether two frames can belong to one recording.
func (f frame) like(g frame) bool {
	return f.rate == g.rate && f.channels == g.channels && f.samples == g.samples
}

// reservoir is the largest number of bytes of main data before a frame that it may use: what its field of 9 or 8 bits
// can say.
func (f frame) reservoir() int {
	if f.lower() {
		return 255
	}
	return 511
}

// begin returns how many bytes before the main data of the frame b its data begins.
func (f frame) begin(b []byte) int {
	if f.lower() {
		return int(b[f.side])
	}
	return int(b[f.side])<<1 | int(b[f.side+1]>>7)
}

// kbits are the bit rates by index, for MPEG-1 and MPEG-2, in 1000 bit/s.
var kbits = [2][16]int{
	{0, 32, 40, 48, 56, 64, 80, 96, 112, 128, 160, 192, 224, 256, 320},
	{0, 8, 16, 24, 32, 40, 48, 56, 64, 80, 96, 112, 128, 144, 160},
}

var rates = [3]int{44100, 48000, 32000} // of MPEG-1; MPEG-2 has half of them, MPEG-2.5 a quarter

// parseFrame reads the header of a frame.
func parseFrame(b []byte) (frame, error) {
	if len(b) < headerSize {
		return frame{}, fmt.Errorf("truncated: %d bytes", len(b))
	}
	v := binary.BigEndian.Uint32(b)
	bitrate, rate, mode := int(v>>12&15), int(v>>10&3), v>>6&3
	switch version, layer := v>>19&3, v>>17&3; {
	case v>>21 != 1<<11-1 || version == 1 || bitrate == 15 || rate == 3 || v&3 == 2:
		return frame{}, errors.New("damaged: no frame begins there")
	case layer != 1:
		return frame{}, fmt.Errorf("%w: layer %d of MPEG audio", ErrUnsupported, 4-layer)
	}
	f := frame{channels: 2, samples: 1152, side: headerSize, padding: int(v >> 9 & 1), index: rate}
	f.version = [4]int{2, 0, 1, 0}[v>>19&3]
	f.rate = rates[rate] >> f.version
	if f.lower() {
		f.samples = 576
	}
	switch mode {
	case 1:
		f.middleSide, f.intensity = v>>5&1 == 1, v>>4&1 == 1
	case 3:
		f.channels = 1
	}
	if v>>16&1 == 0 {
		f.side += 2 // a checksum, which encoders rarely write
	}
	f.main = f.side + layer3.SideSize(f.version, f.channels)
	if bitrate == 0 {
		return f, nil
	}
	bits := 1000 * kbits[min(f.version, 1)][bitrate] * f.samples / 8
	f.size = bits/f.rate + f.padding
	if f.size < f.main {
		return frame{}, fmt.Errorf("damaged: %d bytes are fewer than those of its fields", f.size)
	}
	// go-mp3 halves the size of MPEG-2 after it added the byte of padding.
	f.old = f.version == 0 || f.version == 1 && !f.intensity && (2*bits/f.rate+f.padding)/2 == f.size
	return f, nil
}
