// Package tag skips the tags that programs write before and after recordings: ID3v1, ID3v2, APE and Lyrics3.
package tag

import (
	"bytes"
	"encoding/binary"
	"io"

	"github.com/xtts-host/xtts-host/shared/audio/internal/exact"
	"github.com/xtts-host/xtts-host/shared/audio/internal/remark"
)

// Reader reads a file in blocks: a system call per frame would take most of the time.
type Reader struct {
	File io.ReaderAt
	Size int64

	buf []byte
	at  int64
}

const block = 64 << 10

// Bytes returns n bytes at an offset, or those up to the end of the file.
func (w *Reader) Bytes(at int64, n int) ([]byte, error) {
	if n = int(min(int64(n), w.Size-at)); n <= 0 {
		return nil, nil
	}
	if at < w.at || at+int64(n) > w.at+int64(len(w.buf)) {
		length := int(min(block, w.Size-at))
		if cap(w.buf) < length {
			w.buf = make([]byte, length)
		}
		w.buf, w.at = w.buf[:length], at
		if err := exact.ReadAt(w.File, w.buf, at); err != nil {
			return nil, err
		}
	}
	return w.buf[at-w.at:][:n], nil
}

// starts are the first bytes of tags.
var starts = []string{"ID3", "APETAGEX", "TAG", "LYRICSBEGIN"}

// Begins reports whether a file with these first bytes begins with a tag.
func Begins(head []byte) bool {
	for _, s := range starts {
		if len(head) >= len(s) && string(head[:len(s)]) == s {
			return true
		}
	}
	return false
}

// Skip returns the offset after the tags at an offset, and after the zeros that some programs write behind them.
func (w *Reader) Skip(at int64) (int64, error) {
	for begin := at; ; {
		b, err := w.Bytes(at, 32)
		if err != nil || len(b) == 0 {
			return at, err
		}
		begins := func(mark string) bool { return bytes.HasPrefix(b, []byte(mark)) }
		end := at
		switch {
		case begins("ID3"):
			end, err = w.id3(at)
		case begins("APETAGEX") && len(b) == 32:
			if end += 32; b[23]&0x20 != 0 { // a header, not the end of a tag
				end += int64(binary.LittleEndian.Uint32(b[12:]))
			}
			if end > w.Size {
				err = remark.Lost("truncated: the APE tag at byte %d ends at byte %d, the file has %d bytes", at, end,
					w.Size)
			}
		case begins("TAG"):
			end = min(at+128, w.Size)
		case begins("LYRICSBEGIN"):
			end, err = w.afterLyrics(at)
		case b[0] == 0 && at > begin:
			end += int64(len(b) - len(bytes.TrimLeft(b, "\x00")))
		}
		if err != nil {
			return 0, err
		}
		if end == at {
			return at, nil
		}
		at = end
	}
}

// id3 returns the offset after ID3v2 tags (id3.org, id3v2.4.0-structure, sections 3.1 and 3.4).
func (w *Reader) id3(at int64) (int64, error) {
	for {
		b, err := w.Bytes(at, 10)
		if err != nil || len(b) < 10 || string(b[:3]) != "ID3" {
			return at, err
		}
		n := int64(10)
		if b[5]&0x10 != 0 {
			n += 10 // a footer
		}
		n += int64(b[6]&127)<<21 | int64(b[7]&127)<<14 | int64(b[8]&127)<<7 | int64(b[9]&127)
		if at+n > w.Size {
			return 0, remark.Lost("truncated: the ID3 tag at byte %d has %d bytes, the file has %d more",
				at, n, w.Size-at)
		}
		at += n
	}
}
