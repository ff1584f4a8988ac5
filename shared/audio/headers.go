package audio

import (
	"syscall"

	"github.com/xtts-host/xtts-host/shared/audio/internal/mp3"
)

// headers keeps headers of MP3 files: reading one means reading the file, which may have thousands of clips. A nil
// pointer keeps none.
type headers struct {
	of    map[state]mp3.Header
	bytes int // of all
}

// Limits of the headers that are kept; the newest one always is. That of an hour has up to 1.4 MB.
const (
	maxHeaders     = 8
	maxHeaderBytes = 16 << 20
)

// state identifies a file as long as nothing is written to it.
type state struct {
	dev, ino         uint64
	size             int64
	changed, written syscall.Timespec
}

func (h *headers) mp3(f Source, size int64) (mp3.Header, error) {
	info, err := f.Stat()
	if err != nil {
		return mp3.Header{}, err
	}
	s, ok := info.Sys().(*syscall.Stat_t)
	if h == nil || !ok {
		return mp3.ReadHeader(f, size)
	}
	at := state{dev: s.Dev, ino: s.Ino, size: s.Size, changed: s.Ctim, written: s.Mtim}
	if header, ok := h.of[at]; ok {
		return header, nil
	}
	header, err := mp3.ReadHeader(f, size)
	if err != nil {
		return header, err
	}
	if len(h.of) == maxHeaders || h.bytes+header.Bytes() > maxHeaderBytes || h.of == nil {
		h.of, h.bytes = map[state]mp3.Header{}, 0
	}
	h.of[at] = header
	h.bytes += header.Bytes()
	return header, nil
}
