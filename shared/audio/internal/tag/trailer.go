package tag

import (
	"bytes"
	"encoding/binary"
)

// Trailer returns the offset after a tag of the kinds at the end of a recording, after which another one may begin,
// or after zeros up to the end of the file. ok is false if there is none.
func (w *Reader) Trailer(at int64) (end int64, ok bool, err error) {
	b, err := w.Bytes(at, 230)
	if err != nil {
		return 0, false, err
	}
	begins := func(mark string) bool { return bytes.HasPrefix(b, []byte(mark)) }
	end = w.Size
	switch {
	case begins("ID3"):
		if end, err = w.id3(at); end == at {
			end = w.Size // only the start of a tag is left
		}
	// TAG and a title that begins with + is no extended tag
	case begins("TAG+") && len(b) == 230 && string(b[227:]) == "TAG":
		end = at + 227
	case begins("TAG"):
		end = at + 128
	case begins("APETAGEX") && len(b) >= 32:
		end = at + 32 + int64(binary.LittleEndian.Uint32(b[12:])) // without the header
	case begins("LYRICSBEGIN"):
		end, err = w.afterLyrics(at)
	case !begins("APETAGEX"):
		ok, err = w.zeros(at)
		return w.Size, ok, err
	}
	return min(end, w.Size), err == nil, err
}

// afterLyrics returns the offset after the Lyrics3 tag at an offset, whose end has the only reliable mark, that of
// version 2 or 1.
func (w *Reader) afterLyrics(at int64) (int64, error) {
	const mark = len("LYRICS200")
	// Tags may be short and many: more than a tag is read only if its end is not in it.
	for n := 512; ; n = min(2*n, block) {
		b, err := w.Bytes(at, n)
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
		if at+int64(len(b)) >= w.Size {
			return w.Size, nil
		}
		at += int64(len(b) - mark)
	}
}

// zeros reports whether only zeros follow.
func (w *Reader) zeros(at int64) (bool, error) {
	for at < w.Size {
		b, err := w.Bytes(at, block)
		if err != nil || len(bytes.Trim(b, "\x00")) > 0 {
			return false, err
		}
		at += int64(len(b))
	}
	return true, nil
}
