package audio

import (
	"errors"
	"fmt"
	"io"

	"github.com/xtts-host/xtts-host/shared/audio/internal/flac"
	"github.com/xtts-host/xtts-host/shared/audio/internal/mp3"
	"github.com/xtts-host/xtts-host/shared/audio/internal/opus"
	"github.com/xtts-host/xtts-host/shared/audio/internal/vorbis"
	"github.com/xtts-host/xtts-host/shared/audio/internal/wav"
)

// Reader reads samples of files at their own rate. The zero value is ready for use. It reuses its buffers, so use one
// Reader per goroutine.
type Reader struct {
	bytes  []byte
	flac   flac.Decoder
	vorbis vorbis.Decoder
	opus   opus.Decoder
	mp3    mp3.Decoder
	kept   headers
}

// Open is like the function Open, for a file that was opened before: the pages of Ogg are not checked again, and the
// headers of the last MP3 files are not read again.
func (r *Reader) Open(path string) (*File, error) { return opened(path, r.New) }

// New is Open for a source.
func (r *Reader) New(src Source) (*File, error) { return newFile(src, &r.kept) }

// block is the number of bytes that are read at a time: enough to make the calls cheap, and few enough to stay in the
// processor's cache.
const block = 64 << 10

// Read fills dst with the samples from, from+1, ... of a file, with from+len(dst) <= f.Frames: the mean of the
// channels, with full scale at -1 and 1. Integer samples are in -1..1. Samples of float files, Vorbis and Opus may
// exceed that slightly.
func (r *Reader) Read(dst []float32, f *File, from int) error {
	if from < 0 || from+len(dst) > f.Frames {
		return fmt.Errorf("samples %d to %d of a file of %d were asked for", from, from+len(dst), f.Frames)
	}
	return f.advise(f.read(r, dst, from))
}

func (r *Reader) readWAV(dst []float32, file io.ReaderAt, h wav.Header, from int) error {
	frame := h.FrameSize()
	frames := max(1, block/frame)
	if need := min(frames, len(dst)) * frame; need > cap(r.bytes) {
		r.bytes = make([]byte, need)
	}
	for len(dst) > 0 {
		n := min(frames, len(dst))
		b := r.bytes[:n*frame]
		if got, err := file.ReadAt(b, h.Offset+int64(from)*int64(frame)); got < len(b) {
			return fmt.Errorf("%d of %d bytes could be read: %w", got, len(b), err)
		}
		if err := h.Mono(dst[:n], b); err != nil {
			if e := (*wav.SampleError)(nil); errors.As(err, &e) {
				e.Frame += from
			}
			return err
		}
		dst, from = dst[n:], from+n
	}
	return nil
}
