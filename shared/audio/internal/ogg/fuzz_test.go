package ogg_test

import (
	"bytes"
	"encoding/binary"
	"os"
	"path/filepath"
	"testing"

	"github.com/xtts-host/xtts-host/shared/audio/internal/ogg"
	"github.com/xtts-host/xtts-host/shared/audio/internal/opus"
	"github.com/xtts-host/xtts-host/shared/audio/internal/vorbis"
)

// seal corrects the checksums of all pages, so that the fuzzer reaches the codecs.
func seal(b []byte) []byte {
	b = bytes.Clone(b)
	for at := 0; at+27 <= len(b) && string(b[at:at+4]) == "OggS"; {
		end := at + 27 + int(b[at+26])
		if end > len(b) {
			break
		}
		for _, s := range b[at+27 : end] {
			end += int(s)
		}
		if end > len(b) {
			break
		}
		binary.LittleEndian.PutUint32(b[at+22:], ogg.Checksum(b[at:end]))
		at = end
	}
	return b
}

// For any packets: an error, or readable samples.
func FuzzCodecs(f *testing.F) {
	files, err := filepath.Glob("../../testdata/*.o*")
	if err != nil || len(files) == 0 {
		f.Fatal(files, err)
	}
	for _, file := range files {
		b, err := os.ReadFile(file)
		if err != nil {
			f.Fatal(err)
		}
		f.Add(b)
	}
	f.Fuzz(func(t *testing.T, b []byte) {
		b = seal(b)
		s, err := ogg.Open(bytes.NewReader(b), int64(len(b)))
		if err != nil {
			return
		}
		if h, err := vorbis.ReadHeader(s); err == nil {
			new(vorbis.Decoder).Read(make([]float32, min(h.Frames, 50_000)), h, 0)
			new(vorbis.Decoder).Read(make([]float32, h.Frames/3-h.Frames/4), h, h.Frames/2)
		}
		if h, err := opus.ReadHeader(s); err == nil {
			new(opus.Decoder).Read(make([]float32, min(h.Frames, 50_000)), h, 0)
		}
	})
}
