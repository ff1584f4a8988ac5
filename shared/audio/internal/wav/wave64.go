package wav

import (
	"bytes"
	"encoding/binary"

	"github.com/xtts-host/xtts-host/shared/audio/internal/remark"
)

// The ends of the identifiers of Wave64 (Sonic Foundry; Sony, "Wave64 file format"), which begin with those of WAV in
// small letters.
var (
	riff64  = []byte("riff\x2e\x91\xcf\x11\xa5\xd6\x28\xdb\x04\xc1\x00\x00")
	chunk64 = []byte("\xf3\xac\xd3\x11\x8c\xd1\x00\xc0\x4f\x8e\xdb\x8a")
)

func isWave64(b []byte) bool {
	return len(b) >= 40 && bytes.Equal(b[:16], riff64) && string(b[24:28]) == "wave" && bytes.Equal(b[28:40], chunk64)
}

// wave64 reads the chunks of a Wave64 file: their sizes have 64 bits and count the header of 24 bytes, and they begin
// at multiples of 8 bytes.
func (f *file) wave64() (Header, error) {
	var h Header
	var b [40]byte
	at := int64(40)
	for range maxChunks {
		if at+24 > f.size {
			return Header{}, remark.Lost("no data chunk in %d bytes", f.size)
		}
		if err := f.read(b[:24], at); err != nil {
			return Header{}, err
		}
		id, n := string(b[:4]), int64(binary.LittleEndian.Uint64(b[16:]))-24
		at += 24
		if id == "data" && bytes.Equal(b[4:16], chunk64) {
			if n < 0 || n > f.size-at && n > pretended { // written to a pipe
				n = unknown
			}
			return f.samples(h, at, n)
		}
		if n < 0 || n > f.size-at {
			return Header{},
				remark.Lost("truncated: the %q chunk declares %d bytes, but the file has %d", id, n, f.size-at)
		}
		if id == "fmt " && bytes.Equal(b[4:16], chunk64) {
			chunk := b[:min(n, int64(len(b)))]
			err := f.read(chunk, at)
			if err == nil {
				h, err = parseFormat(chunk)
			}
			if err != nil {
				return Header{}, err
			}
		}
		at += (n + 7) &^ 7
	}
	return Header{}, remark.Lost("no data chunk among the first %d chunks", maxChunks)
}
