// Package audio opens sound files of the formats that people have and reads them as mono float32 samples.
//
// WAV and FLAC are read; the bytes tell which, whatever the file's name. Other formats are refused by name, with the
// command that converts them. A path may be a symbolic link, since data sets are often made of links, but what it leads
// to must be a regular file: a named pipe, device, socket or folder is refused without opening or waiting for it.
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

// Sample rates outside these are damaged headers rather than recordings, and would ask for a resampling filter of any
// size.
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
	flac flac.Header // in use when it has channels
}

// Open reads the header of a file. The error says what is wrong with it; it names the file only where the operating
// system's does.
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

// Close closes the file. Closing it again does nothing.
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

// Reader reads samples of files. The zero value is ready for use. It reuses its buffers, so give each goroutine one of
// its own.
type Reader struct {
	bytes []byte
	flac  flac.Decoder
}

// block is the number of frames' bytes that are read at a time: enough to make the calls cheap, few enough to stay in
// the processor's cache.
const block = 64 << 10

// Read fills dst with the samples from, from+1, ... of a file, from+len(dst) <= f.Frames: the mean of the channels, with
// full scale at -1 and 1. Integer samples lie in -1..1; float samples of a file may lie a little outside.
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
