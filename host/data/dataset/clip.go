package dataset

import (
	"errors"
	"path/filepath"
	"strings"

	"github.com/xtts-host/xtts-host/shared/audio"
)

// OpenClip reads the header of one audio file that is in no list. The clip's id is the file's name without its ending.
func OpenClip(path string, sampleRate int) (*Row, error) {
	r, err := openRecording(path)
	if err != nil {
		return nil, err
	}
	return r.At(sampleRate)
}

// openRecording is OpenClip without a sample rate.
func openRecording(path string) (*Row, error) {
	f, err := openAudio(path)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	if f.Frames == 0 {
		return nil, errors.New("the audio has no samples")
	}
	return &Row{
		ID: strings.TrimSuffix(filepath.Base(path), filepath.Ext(path)), Path: path, Frames: f.Frames,
		FileRate: f.SampleRate, FileChannels: f.Channels, Remarks: f.Remarks,
	}, nil
}

// At returns the row with the number of its samples at another rate.
func (r *Row) At(sampleRate int) (*Row, error) {
	at := *r
	at.Samples = audio.Samples(r.Frames, r.FileRate, sampleRate)
	return &at, nil
}
