// Package wav parses WAV files: the position and the format of their samples.
//
// It accepts integer PCM of 1 to 32 bits, IEEE float of 32 or 64 bits, and A-law and mu-law (ITU-T G.711), with plain
// and extensible headers, in RIFF, RF64 and BW64 files. It refuses other formats by name. Headers may come from untrusted sources, so every declared
// size is compared with the real size of the file before it is used, and nothing is allocated by a declared size.
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

	"github.com/xtts-host/xtts-host/shared/files"
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
//
// A program that writes to a pipe cannot know the length and declares 2^32-1 bytes; the samples then extend to the end
// of the file.
func ReadHeader(r io.ReaderAt, size int64) (Header, error) {
	if size < 12 {
		return Header{}, fmt.Errorf("not a WAV file: only %d bytes", size)
	}
	f := file{r: r}
	if err := f.start(size); err != nil {
		return Header{}, err
	}
	var b [40]byte // the longest chunk that is parsed
	if err := f.read(b[:12], 0); err != nil {
		return Header{}, err
	}
	mark := string(b[:4])
	if mark != "RIFF" && mark != "RF64" && mark != "BW64" || string(b[8:12]) != "WAVE" {
		return Header{}, errors.New("not a WAV file: no RIFF/WAVE mark")
	}
	var h Header
	at, large := int64(12), int64(-1) // large is the size of data in the ds64 chunk
	for range maxChunks {
		if at+8 > size {
			return Header{}, fmt.Errorf("no data chunk in %d bytes", size)
		}
		if err := f.read(b[:8], at); err != nil {
			return Header{}, err
		}
		id, n := string(b[:4]), int64(binary.LittleEndian.Uint32(b[4:]))
		at += 8
		if id == "data" && n == unknown {
			if large < 0 {
				h.Offset = at
				return h.upTo(size - at)
			}
			n = large
		}
		if n > size-at {
			return Header{}, fmt.Errorf("truncated: the %q chunk declares %d bytes, but the file has %d", id, n, size-at)
		}
		chunk := b[:min(n, int64(len(b)))]
		switch id {
		case "fmt ", "ds64":
			if err := f.read(chunk, at); err != nil {
				return Header{}, err
			}
			var err error
			if id == "ds64" {
				large, err = parseLarge(chunk)
			} else {
				h, err = parseFormat(chunk)
			}
			if err != nil {
				return Header{}, err
			}
		case "data":
			h.Offset = at
			if h.Channels > 0 && n%int64(h.FrameSize()) != 0 {
				return Header{}, fmt.Errorf("data chunk of %d bytes does not hold whole frames of %d bytes", n, h.FrameSize())
			}
			return h.upTo(n)
		}
		at += n + n%2 // chunks are padded to an even size
	}
	return Header{}, fmt.Errorf("no data chunk among the first %d chunks", maxChunks)
}

// unknown is the declared size of data if the real size is in the ds64 chunk, or unknown.
const unknown = 1<<32 - 1

// upTo returns the header of n bytes of samples.
func (h Header) upTo(n int64) (Header, error) {
	if h.Channels == 0 {
		return Header{}, errors.New("the data chunk comes before the fmt chunk")
	}
	h.Frames = int(n / int64(h.FrameSize()))
	return h, nil
}

// parseLarge returns the size of the samples in an RF64 file (EBU Tech 3306, section 2.3).
func parseLarge(b []byte) (int64, error) {
	if len(b) < 16 {
		return 0, fmt.Errorf("ds64 chunk of %d bytes, 16 are needed", len(b))
	}
	n := int64(binary.LittleEndian.Uint64(b[8:]))
	if n < 0 {
		return 0, errors.New("ds64 chunk with a size of more than 63 bits")
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
		return Header{}, fmt.Errorf("fmt chunk of %d bytes, 16 are needed", len(f))
	}
	u16 := func(at int) int { return int(binary.LittleEndian.Uint16(f[at:])) }
	code := u16(0)
	h := Header{SampleRate: int(binary.LittleEndian.Uint32(f[4:])), Channels: u16(2), Bits: u16(14)}
	if code == formatExtensible {
		if len(f) < 40 {
			return Header{}, fmt.Errorf("extensible fmt chunk of %d bytes, 40 are needed", len(f))
		}
		if code = u16(24); !bytes.Equal(f[26:40], subFormat) {
			return Header{}, fmt.Errorf("%w: unknown samples (sub-format %x)", ErrUnsupported, f[24:40])
		}
		if valid := u16(18); valid > h.Bits {
			return Header{}, fmt.Errorf("%d valid bits in samples of %d", valid, h.Bits)
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
		return Header{}, fmt.Errorf("%d channels", h.Channels)
	case u16(12) != h.FrameSize():
		return Header{}, fmt.Errorf("frames of %d bytes do not fit %d channels of %d bits", u16(12), h.Channels, h.Bits)
	}
	return h, nil
}

// file caches the first bytes of a file: most headers are within them, and a system call per chunk would take most of
// the time of indexing a large data set.
type file struct {
	r    io.ReaderAt
	head [256]byte
	n    int // of head
}

func (f *file) start(size int64) error {
	f.n = int(min(size, int64(len(f.head))))
	return files.ReadAt(f.r, f.head[:f.n], 0)
}

func (f *file) read(b []byte, at int64) error {
	if end := at + int64(len(b)); end <= int64(f.n) {
		copy(b, f.head[at:end])
		return nil
	}
	return files.ReadAt(f.r, b, at)
}
