// Package audio opens sound files of common formats and reads them as mono float32 samples.
//
// It reads WAV and FLAC, recognized by content, not by name. It refuses other formats by name, with the command that
// converts them. A path may be a symbolic link, because data sets often consist of links, but its target must be a
// regular file: a named pipe, device, socket or folder is refused without opening it or waiting for it.
//
//	f, err := audio.Open(path)
//	...
//	defer f.Close()
//	samples := make([]float32, f.Frames)
//	err = reader.Read(samples, f, 0)
package audio

import (
	"errors"
	"fmt"
	"io"
	"os"

	"github.com/xtts-host/xtts-host/host/dataset/internal/flac"
	"github.com/xtts-host/xtts-host/host/dataset/internal/wav"
	"github.com/xtts-host/xtts-host/shared/hint"
	"github.com/xtts-host/xtts-host/shared/regular"
)

// Sample rates outside these limits indicate a damaged header, and would require a huge resampling filter.
const (
	MinRate = 4000
	MaxRate = 384000
)

// Info describes a file.
type Info struct {
	SampleRate int // Hz, MinRate to MaxRate
	Channels   int // 1 or more
	Frames     int // samples per channel
}

// File is an open sound file. Close it after use. It is safe for concurrent use.
type File struct {
	Info
	file *os.File
	size int64
	wav  wav.Header
	flac flac.Header // valid if it has channels
}

// Open reads the header of a file. The error says what is wrong with the file. It names the file only if it comes from
// the operating system.
func Open(path string) (*File, error) {
	f, size, err := regular.Open(path)
	if err != nil {
		return nil, err
	}
	file := &File{file: f, size: size}
	if file.Info, err = file.header(path); err != nil {
		f.Close()
		return nil, err
	}
	return file, nil
}

// Close closes the file. It is idempotent.
func (f *File) Close() error {
	err := f.file.Close()
	if errors.Is(err, os.ErrClosed) {
		return nil
	}
	return err
}

func (f *File) header(path string) (Info, error) {
	var head [64]byte
	n, err := f.file.ReadAt(head[:], 0)
	if err != nil && err != io.EOF {
		return Info{}, err
	}
	var info Info
	switch format := formatOf(head[:n]); format {
	case "WAV":
		if f.wav, err = wav.ReadHeader(f.file, f.size); err == nil {
			info = Info{f.wav.SampleRate, f.wav.Channels, f.wav.Frames}
		}
	case "FLAC":
		if f.flac, err = flac.ReadHeader(f.file, f.size); err == nil {
			info = Info{f.flac.SampleRate, f.flac.Channels, f.flac.Frames}
		}
	default:
		err = refuse(head[:n], format, path)
	}
	if errors.Is(err, wav.ErrUnsupported) || errors.Is(err, flac.ErrUnsupported) {
		err = hint.Errorf(convert(path), "%w", err)
	}
	if err == nil && (info.SampleRate < MinRate || info.SampleRate > MaxRate) {
		err = fmt.Errorf("sample rate of %d Hz is outside %d..%d", info.SampleRate, MinRate, MaxRate)
	}
	return info, err
}

// Reader reads samples of files. The zero value is ready for use. It reuses its buffers, so use one Reader per
// goroutine.
type Reader struct {
	bytes []byte
	flac  flac.Decoder
}

// block is the number of bytes that are read at a time: enough to make the calls cheap, and few enough to stay in the
// processor's cache.
const block = 64 << 10

// Read fills dst with the samples from, from+1, ... of a file, with from+len(dst) <= f.Frames: the mean of the
// channels, with full scale at -1 and 1. Integer samples are in -1..1. Samples of float files may exceed that slightly.
func (r *Reader) Read(dst []float32, f *File, from int) error {
	if from < 0 || from+len(dst) > f.Frames {
		return fmt.Errorf("samples %d to %d of a file of %d were asked for", from, from+len(dst), f.Frames)
	}
	if f.flac.Channels > 0 {
		return r.flac.Read(dst, f.file, f.size, f.flac, from)
	}
	frame := f.wav.FrameSize()
	frames := max(1, block/frame)
	if need := min(frames, len(dst)) * frame; need > cap(r.bytes) {
		r.bytes = make([]byte, need)
	}
	for len(dst) > 0 {
		n := min(frames, len(dst))
		b := r.bytes[:n*frame]
		if got, err := f.file.ReadAt(b, f.wav.Offset+int64(from)*int64(frame)); got < len(b) {
			return fmt.Errorf("%d of %d bytes could be read: %w", got, len(b), err)
		}
		if err := f.wav.Mono(dst[:n], b); err != nil {
			if e := (*wav.SampleError)(nil); errors.As(err, &e) {
				e.Frame += from
			}
			return err
		}
		dst, from = dst[n:], from+n
	}
	return nil
}
