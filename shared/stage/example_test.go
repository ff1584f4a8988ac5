package stage_test

import (
	"context"
	"math"
	"testing"

	"github.com/xtts-host/xtts-host/shared/manifest"
	"github.com/xtts-host/xtts-host/shared/stage"
	"github.com/xtts-host/xtts-host/shared/stage/stagetest"
)

// Gain makes each clip louder or quieter by a random amount.
type Gain struct {
	maxDB float64
}

func (g *Gain) Configure(ctx context.Context, cfg *stage.Config) error {
	c := struct {
		MaxDB float64 `json:"max_db"`
	}{MaxDB: 6}
	if err := cfg.Decode(&c); err != nil {
		return err
	}
	g.maxDB = c.MaxDB
	return nil
}

func (g *Gain) Process(ctx context.Context, b *stage.Batch) error {
	wave, lengths, width := b.Float32("waveform"), b.Int32("waveform_lengths"), b.Shape("waveform")[1]
	for row, n := range lengths {
		db := g.maxDB * (2*b.Rand(row).Float64() - 1)
		gain := float32(math.Pow(10, db/20))
		clip := wave[row*width:][:n] // empty for an empty row; padding follows it
		for i := range clip {
			clip[i] *= gain
		}
	}
	return nil
}

// A complete plugin: this main function and the type Gain.
func ExampleServe() {
	main := func() {
		stage.Serve(stage.Plugin{
			ID:      "gain",
			Version: "1.0.0",
			Stages: map[string]func() stage.Stage{
				"gain": func() stage.Stage { return new(Gain) },
			},
		})
	}
	_ = main
}

func TestExampleConforms(t *testing.T) {
	stagetest.Run(t, func() stage.Stage { return new(Gain) }, stagetest.Options{
		Manifest: "testdata/plugin.json",
		Stage:    "gain",
		Config:   `{"max_db": 3}`,
		Buckets:  []manifest.Bucket{{"T_wav": 4000}, {"T_wav": 8000}},
	})
}
