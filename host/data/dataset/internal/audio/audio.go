// Package audio opens sound files of common formats and reads them as mono float32 samples.
//
// It reads WAV, FLAC, Ogg Vorbis, Ogg Opus, FLAC in Ogg and MP3, recognized by content, not by name, also after a tag
// of another format. It refuses other formats by name, with the command that converts them. A path may be a symbolic
// link, because data sets often consist of links, but its target must be a regular file: a named pipe, device, socket
// or folder is refused without opening it or waiting for it.
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

	"github.com/xtts-host/xtts-host/host/base/files"
	"github.com/xtts-host/xtts-host/host/data/dataset/internal/flac"
	"github.com/xtts-host/xtts-host/host/data/dataset/internal/mp3"
	"github.com/xtts-host/xtts-host/host/data/dataset/internal/ogg"
	"github.com/xtts-host/xtts-host/host/data/dataset/internal/opus"
	"github.com/xtts-host/xtts-host/host/data/dataset/internal/remark"
	"github.com/xtts-host/xtts-host/host/data/dataset/internal/tag"
	"github.com/xtts-host/xtts-host/host/data/dataset/internal/vorbis"
	"github.com/xtts-host/xtts-host/host/data/dataset/internal/wav"
	"github.com/xtts-host/xtts-host/shared/hint"
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
	Remarks remark.Set // what is wrong with it, although it is read
	file    *files.File
	data    io.ReaderAt // the file, or the part of it that is in the format
	size    int64       // of data
	kept    *headers    // may be nil
	// read is Reader.Read for the file's format.
	read func(r *Reader, dst []float32, from int) error
}

// Open reads the header of a file. The error says what is wrong with the file. It names the file only if it comes from
// the operating system.
func Open(path string) (*File, error) { return open(path, nil) }

func open(path string, kept *headers) (*File, error) {
	f, err := files.Open(path)
	if err != nil {
		return nil, err
	}
	file := &File{file: f, data: f, size: f.Size(), kept: kept}
	if file.Info, err = file.header(); err != nil {
		f.Close()
		err = file.advise(err)
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

// header recognizes the format and reads the header.
func (f *File) header() (Info, error) {
	var start [64]byte
	n, err := f.file.ReadAt(start[:], 0)
	if err != nil && err != io.EOF {
		return Info{}, err
	}
	head := start[:n]
	if tag.Begins(head) { // what follows it decides
		if head, err = f.skipTags(); err != nil {
			return Info{}, err
		}
	}
	var info Info
	switch format := formatOf(head); format {
	case "WAV", "Wave64":
		info, err = f.wav()
	case "FLAC":
		info, err = f.flac()
	case "Ogg":
		info, err = f.ogg()
	case "MP3":
		info, err = f.mp3()
	case "", "AAC": // two bytes are the mark of AAC
		late, fault := mp3.BeginsLate(f.file, f.file.Size())
		switch {
		case fault != nil:
			return Info{}, fault
		case !late:
			return Info{}, refuse(head, format, f.file.Name(), f.Remarks != 0)
		}
		f.data, f.size, f.Remarks = f.file, f.file.Size(), 0 // MP3 skips tags itself
		info, err = f.mp3()
	default:
		return Info{}, refuse(head, format, f.file.Name(), f.Remarks != 0)
	}
	if err == nil && (info.SampleRate < MinRate || info.SampleRate > MaxRate) {
		err = remark.Lost("sample rate of %d Hz is outside %d..%d", info.SampleRate, MinRate, MaxRate)
	}
	return info, err
}

// skipTags returns the first bytes after the tags at the start of the file, which are left out unless they are those of
// MP3: it reads them itself.
func (f *File) skipTags() ([]byte, error) {
	w := tag.Reader{File: f.file, Size: f.size}
	at, err := w.Skip(0)
	if err != nil {
		return nil, err
	}
	head, err := w.Bytes(at, 64)
	if err == nil && formatOf(head) != "MP3" {
		f.data, f.size = io.NewSectionReader(f.file, at, f.size-at), f.size-at
		f.Remarks |= remark.Tag
	}
	return head, err
}

func (f *File) wav() (Info, error) {
	h, err := wav.ReadHeader(f.data, f.size)
	f.read = func(r *Reader, dst []float32, from int) error { return r.readWAV(dst, f.data, h, from) }
	f.Remarks |= h.Remarks
	return Info{h.SampleRate, h.Channels, h.Frames}, err
}

func (f *File) flac() (Info, error) {
	read, err := flac.ReadHeader(f.data, f.size)
	if err == nil && f.kept == nil { // a Reader opens what was opened before
		err = read.CheckEnd(f.data, f.size)
	}
	h := read
	f.read = func(r *Reader, dst []float32, from int) error { return r.flac.Read(dst, f.data, f.size, h, from) }
	f.Remarks |= h.Remarks
	return Info{h.SampleRate, h.Channels, h.Frames}, err
}

func (f *File) mp3() (Info, error) {
	h, err := f.kept.mp3(f.file, f.size)
	f.read = func(r *Reader, dst []float32, from int) error { return r.mp3.Read(dst, f.file, h, from) }
	f.Remarks |= h.Remarks
	return Info{h.SampleRate, h.Channels, h.Frames}, err
}

func (f *File) ogg() (Info, error) {
	s, err := ogg.Open(f.data, f.size)
	if err == nil && f.kept == nil {
		err = s.CheckPages()
	}
	if err != nil {
		return Info{}, err
	}
	f.Remarks |= s.Remarks
	switch {
	case vorbis.Is(s):
		h, err := vorbis.ReadHeader(s)
		f.read = func(r *Reader, dst []float32, from int) error { return r.vorbis.Read(dst, h, from) }
		return Info{h.SampleRate, h.Channels, h.Frames}, err
	case opus.Is(s):
		h, err := opus.ReadHeader(s)
		f.read = func(r *Reader, dst []float32, from int) error { return r.opus.Read(dst, h, from) }
		return Info{opus.SampleRate, h.Channels, h.Frames}, err
	case matches(s.First, flacInOgg+"????fLaC"):
		// The bodies of its pages are those of a FLAC file, after 9 bytes.
		b, err := s.Bodies()
		if err != nil {
			return Info{}, err
		}
		const skip = int64(len(flacInOgg) + 4)
		f.data, f.size = io.NewSectionReader(b, skip, b.Size-skip), b.Size-skip
		return f.flac()
	}
	return Info{}, hint.Errorf(Convert(f.file.Name()), "%s in Ogg is not read", codecOf(s.First))
}

// Reader reads samples of files. The zero value is ready for use. It reuses its buffers, so use one Reader per
// goroutine.
type Reader struct {
	bytes  []byte
	flac   flac.Decoder
	vorbis vorbis.Decoder
	opus   opus.Decoder
	mp3    mp3.Decoder
	kept   headers
}

// Open is like the function Open, for a file that it has opened before: the pages of Ogg are not checked again, and the
// headers of the last MP3 files are not read again.
func (r *Reader) Open(path string) (*File, error) { return open(path, &r.kept) }

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
