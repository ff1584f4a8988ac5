// Package wav parses WAV files: the position and the format of their samples.
//
// It accepts integer PCM of 1 to 32 bits, IEEE float of 32 or 64 bits, and A-law and mu-law (ITU-T G.711), with plain
// and extensible headers, in RIFF, RF64, BW64 and Wave64 files. It refuses other formats by name. Headers may come from
// untrusted sources, so every declared size is compared with the real size of the file before it is used, and nothing
// is allocated by a declared size. A size of the samples that cannot be true is replaced by that of the file.
//
//	h, err := wav.ReadHeader(f, size)
//	...
//	f.ReadAt(b, h.Offset+int64(frame*h.FrameSize()))
//	err = h.Mono(samples, b)
package wav

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"io"

	"github.com/xtts-host/xtts-host/shared/audio/internal/exact"
	"github.com/xtts-host/xtts-host/shared/audio/internal/remark"
)

// ErrUnsupported is wrapped by errors about files that are intact but whose samples are not supported.
var ErrUnsupported = errors.New("not a supported kind of WAV")

// MaxChannels is the largest accepted number of channels: more indicates a damaged header.
const MaxChannels = 1024

const maxChunks = 1000 // chunks before the samples; a file of empty chunks is not read to its end

// Header describes the samples of a file: interleaved, little-endian.
type Header struct {
	SampleRate int // Hz
	Channels   int // 1 or more
	Bits       int // of one sample: 1 to 32 of PCM, 32 or 64 of Float, 8 of ALaw and MuLaw
	Coding     Coding
	Frames     int   // samples per channel
	Offset     int64 // of the first sample, in bytes from the start of the file
	Remarks    remark.Set
}

// Coding says how a sample is written.
type Coding int

// The codings that are read. Companded samples have 8 bits, which stand for 16.
const (
	PCM Coding = iota
	Float
	ALaw
	MuLaw
)

// FrameSize returns the number of bytes of one sample of all channels.
func (h Header) FrameSize() int { return h.width() * h.Channels }

// width returns the number of bytes of one sample. Microsoft, "Multiple channel audio data and WAVE files": a sample of
// an odd number of bits uses the upper bits of the next larger number of bytes.
func (h Header) width() int { return (h.Bits + 7) / 8 }

// ReadHeader reads the chunks of a file of size bytes up to its samples. The error says what is wrong in terms of the
// file's bytes. It does not name the file.
func ReadHeader(r io.ReaderAt, size int64) (Header, error) {
	if size < 12 {
		return Header{}, remark.Lost("not a WAV file: only %d bytes", size)
	}
	f := file{r: r, size: size}
	if err := f.start(size); err != nil {
		return Header{}, err
	}
	var b [40]byte // the longest chunk that is parsed
	if err := f.read(b[:12], 0); err != nil {
		return Header{}, err
	}
	mark := string(b[:4])
	if mark != "RIFF" && mark != "RF64" && mark != "BW64" || string(b[8:12]) != "WAVE" {
		if n := min(size, int64(len(b))); f.read(b[:n], 0) == nil && isWave64(b[:n]) {
			return f.wave64()
		}
		return Header{}, remark.Lost("not a WAV file: no RIFF/WAVE mark")
	}
	var h Header
	at, large := int64(12), int64(-1) // large is the size of data in the ds64 chunk
	for range maxChunks {
		if at+8 > size {
			return Header{}, remark.Lost("no data chunk in %d bytes", size)
		}
		if err := f.read(b[:8], at); err != nil {
			return Header{}, err
		}
		id, n := string(b[:4]), int64(binary.LittleEndian.Uint32(b[4:]))
		at += 8
		if id == "data" {
			switch {
			case n == unknown && large >= 0:
				n = large
			case n == unknown:
				n = max(n, size) // more than there is
			}
			return f.samples(h, at, n)
		}
		if n > size-at {
			return Header{},
				remark.Lost("truncated: the %q chunk declares %d bytes, but the file has %d", id, n, size-at)
		}
		chunk := b[:min(n, int64(len(b)))]
		if id == "fmt " || id == "ds64" {
			err := f.read(chunk, at)
			if err == nil && id == "ds64" {
				large, err = parseLarge(chunk)
			} else if err == nil {
				h, err = parseFormat(chunk)
			}
			if err != nil {
				return Header{}, err
			}
		}
		at += n
		if n%2 == 1 {
			at += f.padding(at)
		}
	}
	return Header{}, remark.Lost("no data chunk among the first %d chunks", maxChunks)
}

// parseLarge returns the size of the samples in an RF64 file (EBU Tech 3306, section 2.3).
func parseLarge(b []byte) (int64, error) {
	if len(b) < 16 {
		return 0, remark.Lost("ds64 chunk of %d bytes, 16 are needed", len(b))
	}
	n := int64(binary.LittleEndian.Uint64(b[8:]))
	if n < 0 {
		return 0, remark.Lost("ds64 chunk with a size of more than 63 bits")
	}
	return n, nil
}

// codings are the format codes of the fmt chunk that are read (RFC 2361; Microsoft, mmreg.h).
var codings = map[int]Coding{1: PCM, 3: Float, 6: ALaw, 7: MuLaw}

// formatExtensible is the code of a header that has the real code in a GUID.
const formatExtensible = 0xFFFE

// compressed names the codes of known compressed formats.
var compressed = map[int]string{
	0x0002: "Microsoft ADPCM",
	0x0011: "IMA ADPCM",
	0x0031: "GSM 6.10",
	0x0050: "MPEG audio",
	0x0055: "MP3",
	0x00FF: "AAC",
	0x0161: "WMA",
	0xF1AC: "FLAC in WAV",
}

// subFormat is what follows the plain code in the GUID of an extensible header (KSDATAFORMAT_SUBTYPE_PCM, ksmedia.h).
var subFormat = []byte{0, 0, 0, 0, 0x10, 0, 0x80, 0, 0, 0xAA, 0, 0x38, 0x9B, 0x71}

func parseFormat(f []byte) (Header, error) {
	if len(f) < 16 {
		return Header{}, remark.Lost("fmt chunk of %d bytes, 16 are needed", len(f))
	}
	u16 := func(at int) int { return int(binary.LittleEndian.Uint16(f[at:])) }
	code := u16(0)
	h := Header{SampleRate: int(binary.LittleEndian.Uint32(f[4:])), Channels: u16(2), Bits: u16(14)}
	if code == formatExtensible {
		if len(f) < 40 {
			return Header{}, remark.Lost("extensible fmt chunk of %d bytes, 40 are needed", len(f))
		}
		if code = u16(24); !bytes.Equal(f[26:40], subFormat) {
			return Header{}, fmt.Errorf("%w: unknown samples (sub-format %x)", ErrUnsupported, f[24:40])
		}
		if valid := u16(18); valid > h.Bits {
			return Header{}, remark.Lost("%d valid bits in samples of %d", valid, h.Bits)
		}
	}
	coding, known := codings[code]
	h.Coding = coding
	switch name := compressed[code]; {
	case name != "":
		return Header{}, fmt.Errorf("%w: %s samples", ErrUnsupported, name)
	case !known:
		return Header{}, fmt.Errorf("%w: compressed samples (format %#04x)", ErrUnsupported, code)
	case coding == Float && h.Bits != 32 && h.Bits != 64:
		return Header{}, fmt.Errorf("%w: %d-bit float samples", ErrUnsupported, h.Bits)
	case coding == PCM && (h.Bits < 1 || h.Bits > 32):
		return Header{}, fmt.Errorf("%w: %d-bit PCM samples", ErrUnsupported, h.Bits)
	case (coding == ALaw || coding == MuLaw) && h.Bits != 8:
		return Header{}, fmt.Errorf("%w: %d-bit samples of A-law or mu-law, which has 8", ErrUnsupported, h.Bits)
	case h.Channels < 1 || h.Channels > MaxChannels:
		return Header{}, remark.Lost("%d channels", h.Channels)
	case u16(12) > h.FrameSize() && u16(12)%h.Channels == 0: // samples in more bytes than they need, or not
		return Header{}, fmt.Errorf("%w: frames of %d bytes do not fit %d channels of %d bits", ErrUnsupported, u16(12),
			h.Channels, h.Bits)
	case u16(12) != h.FrameSize():
		h.Remarks |= remark.Align
	}
	return h, nil
}

// file caches the first bytes of a file: most headers are within them, and a system call per chunk would take most of
// the time of indexing a large data set.
type file struct {
	r    io.ReaderAt
	size int64
	head [256]byte
	n    int // of head
}

func (f *file) start(size int64) error {
	f.n = int(min(size, int64(len(f.head))))
	return exact.ReadAt(f.r, f.head[:f.n], 0)
}

func (f *file) read(b []byte, at int64) error {
	if end := at + int64(len(b)); end <= int64(f.n) {
		copy(b, f.head[at:end])
		return nil
	}
	return exact.ReadAt(f.r, b, at)
}
