package dataset

import (
	"fmt"

	"github.com/xtts-host/xtts-host/host/base/files"
	"github.com/xtts-host/xtts-host/shared/audio"
)

// openAudio opens a recording and reads its header.
func openAudio(path string) (*audio.File, error) {
	src, err := files.Open(path)
	if err != nil {
		return nil, err
	}
	return audio.New(src)
}

// Decoder reads clips at one sample rate. It reuses its buffers, which grow to the longest part of a clip that was
// requested, so use one Decoder per goroutine.
type Decoder struct{ audio *audio.Decoder }

// NewDecoder returns a decoder that converts to a sample rate in Hz.
func NewDecoder(sampleRate int) *Decoder { return &Decoder{audio.NewDecoder(sampleRate)} }

// Decode fills dst with the row's samples from, from+1, ..., in [-1,1], averaged over the channels. The row must have
// that many: from+len(dst) <= row.Samples. Decode reads only the needed part of the file. Samples beyond full scale,
// from a float file or an overshoot of the filter, are clipped.
//
// It fails if the file cannot be read, if it differs from the indexed file, or if float samples are not finite or
// beyond 8 times full scale. The error does not name the file.
func (d *Decoder) Decode(dst []float32, row *Row, from int) error {
	if len(dst) == 0 || from < 0 || from+len(dst) > row.Samples {
		return fmt.Errorf("samples %d to %d of a clip of %d were asked for", from, from+len(dst), row.Samples)
	}
	src, err := files.Open(row.Path)
	if err != nil {
		return err
	}
	f, err := d.audio.New(src)
	if err != nil {
		return err
	}
	defer f.Close()
	if f.SampleRate != row.FileRate || f.Channels != row.FileChannels || f.Frames < row.Offset+row.Frames {
		return fmt.Errorf("changed since it was indexed: now %d frames of %s at %d Hz", f.Frames, channels(f.Channels),
			f.SampleRate)
	}
	return d.audio.Read(dst, f, audio.Part{Offset: row.Offset, Frames: row.Frames}, from)
}

// Clip returns the whole clip of a row. reason says why a run leaves it out, as Filler finds it. An error means that
// the machine is out of files or memory. Clip uses the memory of buffer if it is large enough.
func (d *Decoder) Clip(buffer []float32, row *Row) (samples []float32, reason string, err error) {
	samples = grow(buffer, row.Samples)
	if err = d.Decode(samples, row, 0); err == nil {
		err = flaw(samples, row)
	}
	if err == nil || hostTrouble(err) != nil {
		return samples, "", err
	}
	return samples, reasonOf(err), nil
}

func channels(n int) string {
	if n == 1 {
		return "1 channel"
	}
	return fmt.Sprintf("%d channels", n)
}

// grow returns a slice of n elements, using s if it is large enough. The elements have arbitrary values.
func grow[T any](s []T, n int) []T {
	if n > cap(s) {
		return make([]T, n)
	}
	return s[:n]
}
