package flac

import (
	"io"

	"github.com/xtts-host/xtts-host/shared/audio/internal/remark"
	"github.com/xtts-host/xtts-host/shared/audio/internal/tag"
)

// tails are how many bytes at the end of a file are searched for its last whole frame: most have some in the first
// number, and the last one holds two of the largest.
var tails = [...]int64{16 << 10, 256 << 10, 4 << 20}

// maxTries bounds the bytes that look like a frame and are none.
const maxTries = 1000

// CheckEnd compares the declared length with the last whole frame of the file. If frames are missing, the header gets
// the length that is there; the error says that this is less than half.
func (h *Header) CheckEnd(r io.ReaderAt, size int64) error {
	if h.Remarks&remark.Length != 0 { // it declares none
		return nil
	}
	switch end := h.end(r, size); {
	case end == 0 || end >= h.Frames: // damaged frames are found when they are read
		return nil
	case end < h.Frames/2:
		return remark.Truncated("truncated: the last whole frame ends at sample %d, the header declares %d", end,
			h.Frames)
	default:
		h.Frames = end
		h.Remarks |= remark.Cut
		return nil
	}
}

// end returns the number of samples up to the end of the last whole frame, or 0 if there is none. It adds what comes
// after it to the remarks.
func (h *Header) end(r io.ReaderAt, size int64) int {
	var d Decoder
	d.bits.src, d.bits.size = r, size
	for _, n := range tails {
		samples, end := d.last(h, max(h.Offset, size-n))
		if samples == 0 {
			continue
		}
		w := tag.Reader{File: r, Size: size}
		for ok, err := true, error(nil); ok && end < size; {
			var next int64
			if next, ok, err = w.Trailer(end); err != nil {
				return samples
			}
			if ok {
				end = next
			}
		}
		if end == size {
			return samples
		}
		if b, err := w.Bytes(end, 2); err == nil && len(b) == 2 && b[0] == 0xFF && b[1]&0xFE == 0xF8 || size-end == 1 {
			h.Remarks |= remark.Cut
		} else {
			h.Remarks |= remark.Junk
		}
		return samples
	}
	return 0
}

// last returns the number of samples and the offset after the last whole frame that begins at an offset or later.
func (d *Decoder) last(h *Header, from int64) (samples int, end int64) {
	for tries := 0; tries < maxTries; {
		at, f, ok := d.scan(h, from, d.bits.size)
		if !ok {
			break
		}
		d.bits.seek(at)
		n, err := d.frame(h, f.first)
		if from = at + 1; err != nil {
			tries++
			continue
		}
		samples, end = f.first+n, d.bits.offset()
		from = end
	}
	return samples, end
}
