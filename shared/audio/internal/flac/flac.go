// Package flac decodes FLAC (RFC 9639) into mono float32 samples, any part of a file at a time.
//
// It is made for reading clips of a data set: it seeks exactly, with or without a seek table, reuses one buffer for all
// files, checks the CRC of every frame that it decodes, and reads only the requested part. Files may come from
// untrusted sources: the only allocation by a declared size is the block of one frame (at most 2 MiB), and every loop
// ends at the end of the file.
//
//	h, err := flac.ReadHeader(f, size)
//	...
//	var d flac.Decoder // reuse it for the next file
//	err = d.Read(samples, f, size, h, 48000) // from sample 48000 on
package flac

import (
	"encoding/binary"
	"errors"
	"fmt"
	"io"

	"github.com/xtts-host/xtts-host/shared/audio/internal/exact"
	"github.com/xtts-host/xtts-host/shared/audio/internal/remark"
)

// ErrUnsupported is wrapped by errors about files that are intact but not supported.
var ErrUnsupported = errors.New("not a supported kind of FLAC")

// MaxBits is the largest supported sample width. With it, the difference of two channels fits in 32 bits.
const MaxBits = 24

// maxBlocks bounds the metadata blocks before the first frame.
const maxBlocks = 1000

// Header describes a file.
type Header struct {
	SampleRate int // Hz
	Channels   int // 1 to 8
	Bits       int // of one sample, 4 to MaxBits
	Frames     int // samples per channel
	Offset     int64
	Remarks    remark.Set

	block int // samples in each frame of a stream with fixed blocks, except the last
}

// ReadHeader reads the STREAMINFO block of a file of size bytes and skips the other metadata. The error does not name
// the file.
func ReadHeader(r io.ReaderAt, size int64) (Header, error) {
	var b [4 + 4 + streamInfo]byte
	if size < int64(len(b)) {
		return Header{}, remark.Lost("not a FLAC file: only %d bytes", size)
	}
	if err := exact.ReadAt(r, b[:], 0); err != nil {
		return Header{}, err
	}
	if string(b[:4]) != "fLaC" {
		return Header{}, remark.Lost("not a FLAC file: no fLaC mark")
	}
	if kind, n := b[4]&0x7F, int(b[5])<<16|int(b[6])<<8|int(b[7]); kind != 0 || n != streamInfo {
		return Header{}, remark.Lost("the first metadata block has type %d and %d bytes; STREAMINFO has 0 and %d", kind,
			n, streamInfo)
	}
	h, err := parseStreamInfo(b[8:])
	if err != nil {
		return Header{}, err
	}
	h.Offset = int64(len(b))
	for last, n := b[4]&0x80 != 0, 1; !last; n++ {
		if n == maxBlocks {
			return Header{}, remark.Lost("no audio after the first %d metadata blocks", maxBlocks)
		}
		if h.Offset+4 > size {
			return Header{}, remark.Lost("truncated in the metadata: the file has %d bytes", size)
		}
		if err := exact.ReadAt(r, b[:4], h.Offset); err != nil {
			return Header{}, err
		}
		last = b[0]&0x80 != 0
		h.Offset += 4 + int64(b[1])<<16 + int64(b[2])<<8 + int64(b[3])
	}
	if h.Offset > size {
		return Header{}, remark.Lost("truncated in the metadata: it ends at %d, the file has %d bytes", h.Offset, size)
	}
	if h.Frames == 0 { // written to a pipe
		if h.Frames = h.end(r, size); h.Frames == 0 {
			return Header{}, remark.Lost("it does not declare its length, and there is no whole frame at its end")
		}
		h.Remarks |= remark.Length
	}
	return h, nil
}

// streamInfo is the length of that block, RFC 9639 section 8.2.
const streamInfo = 34

func parseStreamInfo(b []byte) (Header, error) {
	x := binary.BigEndian.Uint64(b[10:]) // rate 20 bits, channels-1 3, bits-1 5, samples 36
	h := Header{
		SampleRate: int(x >> 44),
		Channels:   int(x>>41&7) + 1,
		Bits:       int(x>>36&31) + 1,
		Frames:     int(x & (1<<36 - 1)),
		block:      int(binary.BigEndian.Uint16(b[2:])),
	}
	switch {
	case h.Bits < 4:
		return Header{}, remark.Lost("%d-bit samples; FLAC has 4 or more", h.Bits)
	case h.Bits > MaxBits:
		return Header{}, fmt.Errorf("%w: %d-bit samples", ErrUnsupported, h.Bits)
	case h.block < 16:
		return Header{}, remark.Lost("blocks of %d samples; FLAC has 16 or more", h.block)
	}
	return h, nil
}
