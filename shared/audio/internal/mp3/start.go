package mp3

import (
	"io"

	"github.com/xtts-host/xtts-host/shared/audio/internal/tag"
)

// A recording that was cut from a stream begins in the middle of a frame, or of a tag in front of the first one. Its
// first whole frame is where the headers of several frames follow each other: bytes of audio look like one header now
// and then.
const (
	maxLead = 1 << 20 // bytes in front of the first whole frame
	inRow   = 4       // frames
)

// BeginsLate reports whether a file that begins with something else has MP3 frames from an offset below a megabyte on.
func BeginsLate(r io.ReaderAt, size int64) (bool, error) {
	s := scan{Reader: tag.Reader{File: r, Size: size}}
	at, err := s.Skip(0)
	if err != nil {
		return false, err
	}
	_, ok, err := s.start(at)
	return ok, err
}

// start returns the offset of the first whole frame if none begins at an offset. ok is false if one does, or if there
// is none.
func (s *scan) start(at int64) (begin int64, ok bool, err error) {
	if n, end, err := s.inRow(at, 1); err != nil || n > 0 && s.follows(end) {
		return at, false, err
	}
	for begin, tries := at+1, 0; begin < min(at+maxLead, s.Size-headerSize) && tries < maxTries; begin++ {
		b, err := s.Bytes(begin, 2)
		if err != nil {
			return at, false, err
		}
		if b[0] != 0xFF || b[1] < 0xE0 {
			continue
		}
		tries++
		n, end, err := s.inRow(begin, inRow)
		if err != nil {
			return at, false, err
		}
		if n == inRow || n > 1 && end >= s.Size { // the second is for a short file
			return begin, true, nil
		}
	}
	return at, false, nil
}

// inRow counts the frames that follow each other from an offset on, at most so many, and returns the offset after them.
// Those of free bit rate have no size yet, and count as none.
func (s *scan) inRow(at int64, most int) (n int, end int64, err error) {
	var first frame
	for ; n < most && at < s.Size; n++ {
		b, err := s.Bytes(at, headerSize)
		if err != nil {
			return n, at, err
		}
		f, fault := parseFrame(b)
		if fault != nil || f.size == 0 || n > 0 && !f.like(first) {
			break
		}
		if n == 0 {
			first = f
		}
		at += int64(f.size)
	}
	return n, at, nil
}

// follows reports whether a frame, a tag or the end of the file is at an offset.
func (s *scan) follows(at int64) bool {
	if n, _, err := s.inRow(at, 1); n > 0 || err != nil || at >= s.Size-headerSize {
		return true
	}
	b, err := s.Bytes(at, 32)
	return err != nil || b[0] == 0 || tag.Begins(b) // zeros may be padding
}
