package audio

import (
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"
	"strings"
	"syscall"

	"github.com/xtts-host/xtts-host/shared/audio/internal/remark"
	"github.com/xtts-host/xtts-host/shared/audio/internal/wav"
	"github.com/xtts-host/xtts-host/shared/hint"
)

// replace is the advice for a file in which nothing can be saved.
const replace = again + ", or remove its lines from the list"

const again = "copy the recording from its source again"

// withoutFile is advice for a file that no list names: it can be removed.
func withoutFile(advice string) string {
	const remove = "remove the file"
	switch advice {
	case "":
		return remove
	case replace:
		advice = again
	}
	return advice + ", or " + remove
}

// advise adds the command that makes the file readable to an error about its contents. FFmpeg reads damaged files up to
// the damage or beyond it.
func (f *File) advise(err error) error {
	if err == nil {
		return nil
	}
	var system syscall.Errno
	var path *fs.PathError
	switch {
	case hint.Of(err) != "" || errors.As(err, &system) || errors.As(err, &path):
		return err
	case errors.As(err, new(*wav.SampleError)): // a conversion would hide it
		return err
	case remark.IsLost(err):
		return hint.Errorf(replace, "%w", err)
	case remark.IsTruncated(err):
		return hint.Errorf(again+", or save what is there: "+command(f.file.Name()),
			"%w", err)
	}
	return hint.Errorf(Convert(f.file.Name()), "%w", err)
}

// Convert returns the advice to convert the file to a supported format.
func Convert(path string) string { return "convert with: " + command(path) }

// command returns the command that converts a file. A WAV or FLAC file keeps its name, so that the list still names it.
// For another one, metadata.csv finds the FLAC file of the same name first.
func command(path string) string {
	ext := filepath.Ext(path)
	old, stem := hint.Word(path), strings.TrimSuffix(path, ext)
	switch strings.ToLower(ext) {
	case ".flac":
		return inPlace(old, "flac -sample_fmt s32 -bits_per_raw_sample 24", hint.Word(stem+".new.flac"))
	case ".wav":
		return inPlace(old, "pcm_s24le", hint.Word(stem+".new.wav"))
	}
	return fmt.Sprintf("ffmpeg -i %s -c:a flac %s", old, hint.Word(stem+".flac"))
}

func inPlace(old, codec, other string) string {
	return fmt.Sprintf("ffmpeg -i %s -c:a %s %s && mv %[3]s %[1]s", old, codec, other)
}
