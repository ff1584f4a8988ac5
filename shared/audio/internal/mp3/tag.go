package mp3

import (
	"bytes"
	"encoding/binary"
	"slices"
)

// silent reports whether a frame has no audio, as that of a tag.
func silent(b []byte, f frame) bool { return len(bytes.Trim(b[f.side:f.main], "\x00")) == 0 }

// encoder is what the first frame says about the others, if it has no audio itself.
type encoder struct {
	found   bool
	frames  int // of audio; 0 if it does not say
	gapless bool
	delay   int // samples that the encoder added at the start
	padding int // and at the end
}

// encoders begin the names of those that write the delay and the padding.
var encoders = []string{"LAME", "L3.9", "Lavf", "Lavc"}

// parseTag reads a tag of Xing, LAME or VBRI (LAME's "Mp3 Info Tag rev 1"; Fraunhofer's VBRI) from the first frame.
func parseTag(b []byte, f frame) encoder {
	if at := headerSize + 32; len(b) > at+18 && string(b[at:at+4]) == "VBRI" {
		return encoder{found: true, frames: int(binary.BigEndian.Uint32(b[at+14:]))}
	}
	b = b[headerSize+f.main-f.side:] // as if there were no checksum before the side information
	if len(b) < 8 || string(b[:4]) != "Xing" && string(b[:4]) != "Info" {
		return encoder{}
	}
	t := encoder{found: true}
	flags := b[7]
	b = b[8:]
	for i, n := range []int{4, 4, 100, 4} { // frames, bytes, table of contents, quality
		if flags>>i&1 == 0 {
			continue
		}
		if len(b) < n {
			return t
		}
		if i == 0 {
			t.frames = int(binary.BigEndian.Uint32(b))
		}
		b = b[n:]
	}
	if len(b) < 24 || !slices.Contains(encoders, string(b[:4])) {
		return t
	}
	t.gapless = true
	t.delay = int(b[21])<<4 | int(b[22])>>4
	t.padding = int(b[22]&15)<<8 | int(b[23])
	return t
}
