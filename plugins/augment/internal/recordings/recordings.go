// Package recordings reads the recordings of a data folder for stages that mix them in or convolve with them. Those
// that fit into the memory of a setting are kept; of the others, a row reads what it needs from the file. Both have the
// same bits.
package recordings

import (
	"errors"
	"fmt"
	"sync"

	"github.com/xtts-host/xtts-host/shared/audio"
	"github.com/xtts-host/xtts-host/shared/hint"
	"github.com/xtts-host/xtts-host/shared/stage"
)

// Folder has the recordings of a data folder, at the sample rate of the waveforms, in the order of their names. It is
// safe for concurrent use.
type Folder struct {
	all      []recording
	rate     int
	decoders sync.Pool // of *audio.Decoder
}

// recording is one file. samples is nil if the file is read when a row needs it.
type recording struct {
	file    stage.DataFile
	length  int
	samples []float32
}

// Open reads the recordings of a folder. It keeps those that fit into so many MB of memory, in their order. A recording
// that cannot be read is skipped with a warning. Without any that can be read, the run is refused.
func Open(cfg *stage.Config, name string, memoryMB int) (*Folder, error) {
	data, ok := cfg.Data[name]
	if !ok {
		return nil, hint.Errorf(fmt.Sprintf("name it with --plugin-data %s.%s=DIR", cfg.Name, name),
			"the data folder %q of the stage is missing", name)
	}
	f := &Folder{rate: cfg.Features.SampleRate}
	read := make([]recording, len(data.Files))
	errs := make([]error, len(data.Files))
	stage.EachRow(len(read), func(i int) { read[i], errs[i] = f.header(data.Files[i]) })
	room := memoryMB << 20 / 4
	keep := make([]bool, len(read))
	for i := range read {
		if errs[i] == nil && read[i].length <= room {
			keep[i] = true
			room -= read[i].length
		}
	}
	stage.EachRow(len(read), func(i int) {
		if keep[i] {
			read[i].samples = make([]float32, read[i].length)
			errs[i] = f.decode(read[i].samples, &read[i], 0)
		}
	})
	streamed := 0
	for i, err := range errs {
		if err != nil {
			cfg.Log.Warn("a recording is skipped", "file", data.Files[i].Name, "error", err, "hint", hint.Of(err))
			continue
		}
		if f.all = append(f.all, read[i]); !keep[i] {
			streamed++
		}
	}
	if len(f.all) == 0 {
		return nil, hint.Errorf("the log says why for each file; put recordings into the folder that xtts-host reads",
			"data folder %q, %s: no recording can be read", name, data.Path)
	}
	if streamed > 0 {
		cfg.Log.Warn("recordings are read again for each row that draws them, which is slower", "files", streamed,
			"of", len(f.all), "hint", "set memory_mb to more than "+fmt.Sprint(memoryMB))
	}
	return f, nil
}

// header opens a file and returns how long it is at the folder's rate.
func (f *Folder) header(file stage.DataFile) (recording, error) {
	opened, err := audio.Open(file.Path())
	if err != nil {
		return recording{}, err
	}
	defer opened.Close()
	if opened.Frames == 0 {
		return recording{}, errors.New("the audio has no samples")
	}
	return recording{file: file, length: audio.Samples(opened.Frames, opened.SampleRate, f.rate)}, nil
}

// decode reads samples of a file from one on.
func (f *Folder) decode(dst []float32, r *recording, from int) error {
	d, _ := f.decoders.Get().(*audio.Decoder)
	if d == nil {
		d = audio.NewDecoder(f.rate)
	}
	defer f.decoders.Put(d)
	opened, err := d.Open(r.file.Path())
	if err != nil {
		return err
	}
	defer opened.Close()
	return d.Read(dst, opened, opened.Whole(), from)
}

// Count is the number of recordings, at least one.
func (f *Folder) Count() int { return len(f.all) }

// Name is the name of a recording in the folder.
func (f *Folder) Name(i int) *string { return &f.all[i].file.Name }

// Length is the number of samples of a recording, at least one.
func (f *Folder) Length(i int) int { return f.all[i].length }

// Read fills dst with the samples from, from+1, ... of recording i, which begins anew at its end.
func (f *Folder) Read(dst []float32, i, from int) error {
	r := &f.all[i]
	for len(dst) > 0 {
		n := min(len(dst), r.length-from)
		if r.samples != nil {
			copy(dst[:n], r.samples[from:])
		} else if err := f.decode(dst[:n], r, from); err != nil {
			return hint.Errorf("leave the data folder as it is while a run trains; begin the run anew without the file",
				"recording %s: %w", r.file.Path(), err)
		}
		dst, from = dst[n:], 0
	}
	return nil
}
