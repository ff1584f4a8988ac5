package specaugment

import (
	"context"
	_ "embed"

	"github.com/xtts-host/xtts-host/plugins/internal/gpustage"
	"github.com/xtts-host/xtts-host/shared/manifest"
	"github.com/xtts-host/xtts-host/shared/stage"
)

// graph applies the masks of a batch. scripts/xtts_export/stages.py generates it.
//
//go:embed specaugment.onnx
var graph []byte

// The inputs and outputs of the graph that are not ports: one boolean per frame, or per band, of a row.
const (
	validFrames  = "valid"
	maskedFrames = "masked_frames"
	maskedBands  = "masked_bands"
	result       = "masked"
)

// load prepares the graph for the buckets of cfg.
func (s *Stage) load(cfg *stage.Config) error {
	g := gpustage.Graph{Name: "specaugment", Model: graph}
	for bucket := range cfg.Buckets() {
		shape := cfg.Shape(bucket, melSpectrograms)
		frames, bands := shape[1], shape[2]
		g.Buckets = append(g.Buckets, gpustage.Bucket{
			Rows: shape[0],
			Inputs: []gpustage.Tensor{
				{Name: melSpectrograms, DType: manifest.F32, Row: shape[1:]},
				{Name: validFrames, DType: manifest.Bool, Row: []int{frames, 1}, Own: true},
				{Name: maskedFrames, DType: manifest.Bool, Row: []int{frames, 1}, Own: true},
				{Name: maskedBands, DType: manifest.Bool, Row: []int{1, bands}, Own: true},
			},
			Outputs: []gpustage.Tensor{{Name: result, DType: manifest.F32, Row: shape[1:]}},
			Tables:  []gpustage.Table{gpustage.NewTable("pad", []float32{float32(cfg.Pad(bucket, melSpectrograms))})},
		})
	}
	return s.gpu.Open(s.OpenGPU, cfg, g)
}

// onGPU is the GPU version of Process. The lengths of the rows have been checked.
func (s *Stage) onGPU(ctx context.Context, b *stage.Batch) error {
	call, err := s.gpu.Program().Begin(ctx, b.Bucket())
	if err != nil {
		return err
	}
	defer call.End()
	shape := b.Shape(melSpectrograms)
	frames, bands := shape[1], shape[2]
	var flags [3][]bool
	for i, name := range []string{validFrames, maskedFrames, maskedBands} {
		flags[i] = gpustage.View[bool](call.Host(name))
		clear(flags[i])
	}
	for row, n := range b.Int32(melLengths) {
		valid, times, freqs := flags[0][row*frames:], flags[1][row*frames:], flags[2][row*bands:]
		fill(valid[:n], true)
		d := s.config.draw(int(n), bands, b.Rand(row))
		s.config.report(b, row, d)
		d.warp.apply(b.Float32(melSpectrograms)[row*frames*bands:][:int(n)*bands], bands)
		for _, m := range d.freqMasks {
			fill(freqs[m.first:m.end], true)
		}
		for _, m := range d.timeMasks {
			fill(times[m.first:m.end], true)
		}
	}
	return call.Run(gpustage.Bytes{melSpectrograms: b.Bytes(melSpectrograms)},
		gpustage.Bytes{result: b.Bytes(melSpectrograms)})
}
