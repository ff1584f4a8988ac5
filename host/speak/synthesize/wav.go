package synthesize

import (
	"bufio"
	"encoding/binary"
	"errors"
	"io"
	"math"
	"syscall"

	"github.com/xtts-host/xtts-host/host/base/disk"
	"github.com/xtts-host/xtts-host/host/base/exit"
	"github.com/xtts-host/xtts-host/host/base/files"
	"github.com/xtts-host/xtts-host/shared/hint"
	"github.com/xtts-host/xtts-host/shared/wav"
)

// unknown is the size of data in a header that was written before the data.
const unknown = math.MaxUint32 - wav.HeaderSize + 8

// mostSamples is what the size in the header can say.
const mostSamples = unknown / 2

// sound is a WAV file that is written while it is made.
type sound struct {
	out     *bufio.Writer
	file    *files.Draft // nil for a stream
	path    string
	rate    int
	samples int
}

// stream writes a WAV file to out, with sizes that say that they are unknown.
func stream(out io.Writer, rate int) (*sound, error) {
	s := &sound{out: bufio.NewWriter(out), rate: rate}
	_, err := s.out.Write(wav.Header(rate, unknown))
	return s, err
}

// create writes a WAV file that appears with finish.
func create(at files.Path, rate int) (*sound, error) {
	f, err := at.Create()
	if err != nil {
		return nil, err
	}
	s := &sound{out: bufio.NewWriter(f), file: f, path: at.String(), rate: rate}
	_, err = s.out.Write(wav.Header(rate, 0))
	return s, err
}

// write appends samples. A stream gets them at once.
func (s *sound) write(wave []float32) error {
	s.samples += len(wave)
	for _, v := range wave {
		if _, err := s.out.Write(binary.LittleEndian.AppendUint16(nil, uint16(wav.Sample(v)))); err != nil {
			return s.explain(err)
		}
	}
	if s.file != nil && s.samples > mostSamples {
		return hint.Errorf("divide the text, or name the standard output: --out -", "%s: a WAV file has at most 4 GiB",
			s.path)
	}
	if s.file == nil {
		return s.explain(s.out.Flush())
	}
	return nil
}

// finish completes the file.
func (s *sound) finish() error {
	err := s.out.Flush()
	if s.file == nil || err != nil {
		return s.explain(err)
	}
	_, err = s.file.WriteAt(wav.Header(s.rate, uint32(2*s.samples)), 0)
	if err == nil {
		err = s.file.Commit()
	}
	return s.explain(err)
}

// discard removes a file that was not finished.
func (s *sound) discard() {
	if s.file != nil {
		s.file.Discard()
	}
}

// explain adds the free space to the error of a full disk, and the next step.
func (s *sound) explain(err error) error {
	switch {
	case err == nil:
		return nil
	case s.file == nil && !errors.Is(err, syscall.EPIPE):
		return hint.Errorf("write a file: --out speech.wav", "%w", err)
	case s.file == nil:
		return hint.Errorf("the program that reads the sound has ended, or write a file: --out speech.wav", "%w", err)
	}
	return exit.Advise(disk.Explain(err, s.path, int64(2*s.samples)),
		"make room, or name a file on another disk with --out")
}

// WriteWave writes samples of [-1, 1] as a WAV file of 16 bits.
func WriteWave(at files.Path, rate int, wave []float32) error {
	out, err := create(at, rate)
	if err != nil {
		return err
	}
	defer out.discard()
	if err := out.write(wave); err != nil {
		return err
	}
	return out.finish()
}
