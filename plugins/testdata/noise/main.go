// Command noise adds recordings of noise to waveforms. It is the example of docs/plugin-reference.md for data folders.
package main

import (
	"context"
	"errors"

	"github.com/xtts-host/xtts-host/shared/audio"
	"github.com/xtts-host/xtts-host/shared/hint"
	"github.com/xtts-host/xtts-host/shared/stage"
)

type noise struct{ recordings [][]float32 }

func (n *noise) Configure(_ context.Context, cfg *stage.Config) error {
	for _, file := range cfg.Data["noise"].Files {
		samples, err := audio.Read(file.Path(), cfg.Features.SampleRate)
		if err != nil {
			cfg.Log.Warn("a recording is skipped", "file", file.Name, "error", err, "hint", hint.Of(err))
			continue
		}
		n.recordings = append(n.recordings, samples)
	}
	if len(n.recordings) == 0 {
		return errors.New("no recording can be read")
	}
	return nil
}

func (n *noise) Process(_ context.Context, b *stage.Batch) error {
	wave, lengths, width := b.Float32("waveform"), b.Int32("waveform_lengths"), b.Shape("waveform")[1]
	stage.EachRow(b.Rows(), func(row int) {
		draws, clip := b.Rand(row), wave[row*width:][:lengths[row]]
		recording := n.recordings[draws.IntN(len(n.recordings))]
		at, level := draws.IntN(len(recording)), 0.5*draws.Float32()
		for i := range clip {
			clip[i] += level * recording[(at+i)%len(recording)]
		}
	})
	return nil
}

func main() {
	stages := map[string]func() stage.Stage{"noise": func() stage.Stage { return new(noise) }}
	stage.Serve(stage.Plugin{ID: "noise", Version: "1.0.0", Stages: stages})
}
