package mp3

import (
	"errors"
	"fmt"
	"io"
)

// warmUp is how many frames before a sample a decoder must have decoded: a sample depends on the frequencies of three
// granules, and a frame of MPEG-2 is one granule.
const warmUp = 2

// Decoder reads samples. The zero value is ready for use. It reuses its buffers, so use one Decoder per goroutine.
type Decoder struct {
	old   oldFrames
	other otherFrames
	mono  [1152]float32 // of one frame
}

// frames decodes the frames of a feed, one after another.
type frames interface {
	start(f *feed) error
	// next fills dst with the mean of the channels of the next frame.
	next(dst []float32) error
}

// Read fills dst with the samples from, from+1, ... of a file: the mean of the channels. The file must have that many:
// from+len(dst) <= h.Frames. A part has the same bits as in the whole file.
func (d *Decoder) Read(dst []float32, r io.ReaderAt, h Header, from int) error {
	if from < 0 || from+len(dst) > h.Frames {
		return fmt.Errorf("samples %d to %d of %d were asked for", from, from+len(dst), h.Frames)
	}
	for _, p := range h.parts {
		if n := min(len(dst), p.samples-from); n > 0 {
			if err := d.read(dst[:n], r, h, p, from+p.skip); err != nil {
				return err
			}
			dst, from = dst[n:], from+n
		}
		from -= p.samples
	}
	return nil
}

// read reads samples of a part of the file, counted from its first frame.
func (d *Decoder) read(dst []float32, r io.ReaderAt, h Header, p part, from int) (err error) {
	f := newFeed(r, h, p, p.begin+from/h.first.samples)
	defer func() {
		// The decoders index their tables with what they read.
		if r := recover(); r != nil {
			err = fmt.Errorf("MP3 frame at byte %d: damaged: %v", f.offset, r)
		}
		if f.err != nil {
			err = f.err
		}
	}()
	at := (f.index - p.begin) * h.first.samples
	var dec frames = &d.old
	if h.other {
		dec = &d.other
	}
	if err := dec.start(f); err != nil {
		return fmt.Errorf("MP3 frame at byte %d: %w", f.offset, err)
	}
	mono := d.mono[:h.first.samples]
	for done := 0; done < len(dst); at += h.first.samples {
		if err := dec.next(mono); err != nil {
			return fmt.Errorf("MP3 frame at byte %d: %w", f.offset, err)
		}
		if skip := from + done - at; skip < h.first.samples {
			done += copy(dst[done:], mono[skip:])
		}
	}
	return nil
}

// errEnd cannot happen: a header declares no more samples than its frames have.
var errEnd = errors.New("no more frames")
