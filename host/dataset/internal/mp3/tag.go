package mp3

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"slices"
)

// skipTags returns the offset after ID3v2 tags (id3.org, id3v2.4.0-structure, sections 3.1 and 3.4).
func (w *window) skipTags(at int64) (int64, error) {
	for {
		b, err := w.bytes(at, 10)
		if err != nil || len(b) < 10 || string(b[:3]) != "ID3" {
			return at, err
		}
		n := int64(10)
		if b[5]&0x10 != 0 {
			n += 10 // a footer
		}
		n += int64(b[6]&127)<<21 | int64(b[7]&127)<<14 | int64(b[8]&127)<<7 | int64(b[9]&127)
		if at+n > w.size {
			return 0, fmt.Errorf("truncated: the ID3 tag at byte %d has %d bytes, the file has %d more", at, n, w.size-at)
		}
		at += n
	}
}

// skipTrailer returns the offset after a tag of the kinds at the end of a recording, after which another one may begin,
// or after zeros up to the end of the file. ok is false if there is none.
func (w *window) skipTrailer(at int64) (end int64, ok bool, err error) {
	b, err := w.bytes(at, 230)
	if err != nil {
		return 0, false, err
	}
	begins := func(mark string) bool { return bytes.HasPrefix(b, []byte(mark)) }
	end = w.size
	switch {
	case begins("ID3"):
		if end, err = w.skipTags(at); end == at {
			end = w.size // only the start of a tag is left
		}
	case begins("TAG+") && len(b) == 230 && string(b[227:]) == "TAG": // TAG and a title that begins with + is no extended tag
		end = at + 227
	case begins("TAG"):
		end = at + 128
	case begins("APETAGEX") && len(b) >= 32:
		end = at + 32 + int64(binary.LittleEndian.Uint32(b[12:])) // without the header
	case begins("LYRICSBEGIN"):
		end, err = w.afterLyrics(at)
	case !begins("APETAGEX"):
		ok, err = w.zeros(at)
		return w.size, ok, err
	}
	return min(end, w.size), err == nil, err
}

// afterLyrics returns the offset after the Lyrics3 tag at an offset, whose end has the only reliable mark, that of version 2 or 1.
func (w *window) afterLyrics(at int64) (int64, error) {
	const mark = len("LYRICS200")
	for ; at < w.size; at += block - int64(mark) {
		b, err := w.bytes(at, block)
		if err != nil {
			return 0, err
		}
		first := -1
		for _, m := range []string{"LYRICS200", "LYRICSEND"} {
			if i := bytes.Index(b, []byte(m)); i >= 0 && (first < 0 || i < first) {
				first = i
			}
		}
		if first >= 0 {
			return at + int64(first+mark), nil
		}
	}
	return w.size, nil
}

// zeros reports whether only zeros follow.
func (w *window) zeros(at int64) (bool, error) {
	for at < w.size {
		b, err := w.bytes(at, block)
		if err != nil || len(bytes.Trim(b, "\x00")) > 0 {
			return false, err
		}
		at += int64(len(b))
	}
	return true, nil
}

// silent reports whether a frame has no audio, as that of a tag.
func silent(b []byte, f frame) bool { return len(bytes.Trim(b[f.side:f.main], "\x00")) == 0 }

// tag is what the first frame says about the others, if it has no audio itself.
type tag struct {
	found   bool
	frames  int // of audio; 0 if it does not say
	gapless bool
	delay   int // samples that the encoder added at the start
	padding int // and at the end
}

// encoders begin the names of those that write the delay and the padding.
var encoders = []string{"LAME", "L3.9", "Lavf", "Lavc"}

// parseTag reads a tag of Xing, LAME or VBRI (LAME's "Mp3 Info Tag rev 1"; Fraunhofer's VBRI) from the first frame.
func parseTag(b []byte, f frame) tag {
	if at := headerSize + 32; len(b) > at+18 && string(b[at:at+4]) == "VBRI" {
		return tag{found: true, frames: int(binary.BigEndian.Uint32(b[at+14:]))}
	}
	b = b[headerSize+f.main-f.side:] // as if there were no checksum before the side information
	if len(b) < 8 || string(b[:4]) != "Xing" && string(b[:4]) != "Info" {
		return tag{}
	}
	t := tag{found: true}
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
