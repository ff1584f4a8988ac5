package wav

import (
	"encoding/binary"
	"slices"

	"github.com/xtts-host/xtts-host/shared/audio/internal/remark"
)

const (
	// unknown is the declared size of data if the real size is in the ds64 chunk, or unknown.
	unknown = 1<<32 - 1
	// pretended is the smallest size that programs declare when they cannot know the length, because they write to a
	// pipe or were stopped: sox 0x7ffff000, arecord 0x80000000, ffmpeg 0xffffffff. Others declare 0.
	pretended = 0x7f000000
)

// samples completes a header, whose samples begin at an offset and have the declared number of bytes. Where that cannot
// be true, they extend to the end of the file, as for sox, libsndfile and FFmpeg, but without the chunks behind them.
func (f *file) samples(h Header, at, declared int64) (Header, error) {
	if h.Channels == 0 {
		return Header{}, remark.Lost("the data chunk comes before the fmt chunk")
	}
	left := f.size - at
	n := declared
	switch {
	case n > left && n < pretended && left < n/2:
		return Header{},
			remark.Truncated("truncated: the \"data\" chunk declares %d bytes, but the file has %d", n, left)
	case n > left && n < pretended:
		h.Remarks |= remark.Cut
		n = f.before(at, left)
	case n > left:
		h.Remarks |= remark.Length
		n = f.before(at, left)
	case n == 0 && left > 0:
		if n = f.before(at, left); n > 0 {
			h.Remarks |= remark.Length
		}
	case n < left && !f.chunksFrom(at+n, n):
		// The declared size is a bit too large, so that the samples end within it and a chunk begins there; or there is
		// something else.
		if end := f.before(at, left); end < n || n >= pretended {
			h.Remarks |= remark.Length
			n = end
		} else {
			h.Remarks |= remark.Junk
		}
	}
	if n%int64(h.FrameSize()) != 0 {
		h.Remarks |= remark.Cut
	}
	h.Offset = at
	h.Frames = int(n / int64(h.FrameSize()))
	return h, nil
}

// after are chunks that programs write behind the samples.
var after = []string{
	"LIST", "id3 ", "ID3 ", "bext", "cue ", "smpl", "inst", "plst", "fact", "PEAK", "iXML", "axml", "acid", "cart",
	"JUNK", "junk", "afsp", "DISP", "PAD ", "FLLR", "_PMX", "chna", "umid", "levl", "link", "dbmd", "logf", "SNDM",
	"data", "fmt ",
}

// chunksFrom reports whether nothing or chunks follow from an offset to the end of the file. The last one may be cut,
// and one byte may be padding, which a chunk of n bytes needs or lacks.
func (f *file) chunksFrom(at, n int64) bool {
	if n%2 == 1 {
		at += f.padding(at)
	}
	for count := 0; at < f.size; count++ {
		var b [8]byte
		if f.size-at < int64(len(b)) || count == maxChunks {
			return f.size-at <= 1
		}
		if f.read(b[:], at) != nil || !printable(b[:4]) {
			return false
		}
		n := int64(binary.LittleEndian.Uint32(b[4:]))
		if at += 8 + n; n%2 == 1 && at < f.size {
			at += f.padding(at)
		}
	}
	return true
}

func printable(id []byte) bool {
	return !slices.ContainsFunc(id, func(c byte) bool { return c < ' ' || c > '~' })
}

// tail is how many bytes at the end of a file are searched for the chunks behind samples of unknown size.
const tail = 256 << 10

// before returns how many of the left bytes at an offset come before the known chunks that end with the file.
func (f *file) before(at, left int64) int64 {
	n := min(left, tail)
	b := make([]byte, n)
	if f.read(b, at+left-n) != nil {
		return left
	}
	for i := 0; i+8 <= len(b); i++ {
		if slices.Contains(after, string(b[i:i+4])) && chain(b[i:]) {
			return left - n + int64(i)
		}
	}
	return left
}

// chain reports whether b consists of known chunks, with or without a last byte of padding.
func chain(b []byte) bool {
	for len(b) > 1 {
		if len(b) < 8 || !slices.Contains(after, string(b[:4])) {
			return false
		}
		n := 8 + int64(binary.LittleEndian.Uint32(b[4:]))
		if n > int64(len(b)) {
			return false
		}
		if b = b[n:]; n%2 == 1 && len(b) > 0 && b[0] == 0 {
			b = b[1:]
		}
	}
	return true
}

// padding returns the number of bytes between a chunk of an odd size and the next one: 1, as the format says, or 0 if a
// known chunk begins at once.
func (f *file) padding(at int64) int64 {
	var b [4]byte
	if at+int64(len(b)) <= f.size && f.read(b[:], at) == nil && slices.Contains(after, string(b[:])) {
		return 0
	}
	return 1
}
