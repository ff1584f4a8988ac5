// Package audio reads recordings: WAV, FLAC, Ogg Vorbis, Ogg Opus, FLAC in Ogg and MP3, as mono float32 samples. It is
// how the host reads a data set, and how a plugin reads noise and impulse responses, with the same bits. It needs no
// cgo and no other program.
//
// [Read] returns a whole file at a sample rate. The averages of the channels are resampled, and lie in -1..1:
//
//	echo, err := audio.Read("hall.flac", cfg.Features.SampleRate)
//
// A [Decoder] reads any part, at a rate, and a [Reader] does at the file's own:
//
//	f, err := audio.Open("street.ogg")
//	...
//	defer f.Close()
//	noise := make([]float32, audio.Samples(f.Frames, f.SampleRate, rate))
//	err = audio.NewDecoder(rate).Read(noise, f, f.Whole(), 0)
//
// The content of a file decides its format, not its name, also after a tag of another format. Other formats are refused
// by name, with the command that converts the file as the hint of the error (package hint). A path may be a symbolic
// link, because data sets often consist of links, but its target must be a regular file: a named pipe, device, socket
// or folder is refused without opening it or waiting for it.
package audio

import (
	"errors"
	"io"
	"io/fs"
	"os"

	"github.com/xtts-host/xtts-host/shared/audio/internal/flac"
	"github.com/xtts-host/xtts-host/shared/audio/internal/mp3"
	"github.com/xtts-host/xtts-host/shared/audio/internal/ogg"
	"github.com/xtts-host/xtts-host/shared/audio/internal/opus"
	"github.com/xtts-host/xtts-host/shared/audio/internal/remark"
	"github.com/xtts-host/xtts-host/shared/audio/internal/tag"
	"github.com/xtts-host/xtts-host/shared/audio/internal/vorbis"
	"github.com/xtts-host/xtts-host/shared/audio/internal/wav"
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

// Source is what a file is read from. The host's is a file whose reads wait for a disk that fails for a while.
type Source interface {
	io.ReaderAt // safe for concurrent use
	io.Closer
	Name() string // for the commands of hints
	Size() int64
	Stat() (fs.FileInfo, error)
}

// Remarks is what is wrong with a file that is read all the same. Its method String says it; 0 is nothing. The bits
// keep their meaning.
type Remarks = remark.Set

// File is an open sound file. Close it after use. It is safe for concurrent use.
type File struct {
	Info
	Remarks Remarks // what is wrong with it, although it is read
	file    Source
	data    io.ReaderAt // the file, or the part of it that is in the format
	size    int64       // of data
	kept    *headers    // may be nil
	// read is Reader.Read for the file's format.
	read func(r *Reader, dst []float32, from int) error
}

// Open opens a file and reads its header. The error says what is wrong with the file. It names the file only if it
// comes from the operating system.
func Open(path string) (*File, error) { return opened(path, New) }

// New reads the header of a file that is open. The File closes the source; New does if it returns an error.
func New(src Source) (*File, error) { return newFile(src, nil) }

func newFile(src Source, kept *headers) (*File, error) {
	file := &File{file: src, data: src, size: src.Size(), kept: kept}
	var err error
	if file.Info, err = file.header(); err != nil {
		src.Close()
		return nil, file.advise(err)
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
