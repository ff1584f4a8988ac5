package waveaug

import (
	"context"
	_ "embed"
	"slices"

	"github.com/xtts-host/xtts-host/plugins/internal/gpustage"
	"github.com/xtts-host/xtts-host/shared/manifest"
	"github.com/xtts-host/xtts-host/shared/stage"
)

// graph does the arithmetic of a batch; scripts/export/stages.py writes it. Every number is drawn here, also those of the noise: no
// operator gives the bits of Go's generator, and a row must not sound otherwise on another device. The noise crosses in f32, which
// moves a sample by 6e-8 of it.
//
//go:embed waveaug.onnx
var graph []byte

// The names of the graph's inputs and outputs, beside those that are ports.
const (
	factor      = "factor"      // f64: gain and polarity
	noisy       = "noisy"       // bool
	noise       = "noise"       // f32[B, T_wav]; anything where there is none
	noisePower  = "noise_power" // f64: times the ratio that was drawn
	augmented   = "augmented"
	signalPower = "signal_power" // f64: not finite in a row with a sample that is not
)

// samplesTogether bounds what the graph's intermediate values take: some 64 bytes a sample.
const samplesTogether = 4 << 20

// load prepares the graph for the buckets of cfg.
func (s *Stage) load(cfg *stage.Config) error {
	g := gpustage.Graph{Name: "waveaug", Model: graph}
	for bucket := range cfg.Buckets() {
		shape := cfg.Shape(bucket, waveform)
		positions := make([]int32, shape[1])
		for i := range positions {
			positions[i] = int32(i)
		}
		one := []int{1}
		g.Buckets = append(g.Buckets, gpustage.Bucket{
			Rows:     shape[0],
			Together: max(1, samplesTogether/shape[1]),
			Inputs: []gpustage.Tensor{
				{Name: waveform, DType: manifest.F32, Row: shape[1:]},
				{Name: waveformLengths, DType: manifest.I32, Row: one},
				{Name: factor, DType: manifest.F64, Row: one, Own: true},
				{Name: noisy, DType: manifest.Bool, Row: one, Own: true},
				{Name: noisePower, DType: manifest.F64, Row: one, Own: true},
				{Name: noise, DType: manifest.F32, Row: shape[1:], Own: true},
			},
			Outputs: []gpustage.Tensor{
				{Name: augmented, DType: manifest.F32, Row: shape[1:]},
				{Name: signalPower, DType: manifest.F64, Row: one, Own: true},
			},
			Tables: []gpustage.Table{
				gpustage.NewTable("positions", positions, len(positions)),
				gpustage.NewTable("ones", slices.Repeat([]float64{1}, len(positions)), len(positions), 1),
			},
		})
	}
	return s.gpu.Take(s.OpenGPU, cfg, g)
}

// onGPU does what Process does on the CPU. The rows' lengths have been checked.
func (s *Stage) onGPU(ctx context.Context, b *stage.Batch) error {
	call, err := s.gpu.Program().Begin(ctx, b.Bucket())
	if err != nil {
		return err
	}
	defer call.End()
	lengths, width := b.Int32(waveformLengths), b.Shape(waveform)[1]
	factors, isNoisy := gpustage.View[float64](call.Host(factor)), gpustage.View[bool](call.Host(noisy))
	noises, powers := gpustage.View[float32](call.Host(noise)), gpustage.View[float64](call.Host(noisePower))
	stage.EachRow(len(lengths), func(row int) {
		r := b.Rand(row)
		d := s.config.draw(r)
		factors[row], isNoisy[row], powers[row] = d.factor, d.noisy, 1
		if d.noisy {
			powers[row] = d.snr * drawNoise(noises[row*width:][:lengths[row]], r)
		}
	})
	in := gpustage.Bytes{waveform: b.Bytes(waveform), waveformLengths: b.Bytes(waveformLengths)}
	if err := call.Run(in, gpustage.Bytes{augmented: b.Bytes(waveform)}); err != nil {
		return err
	}
	for row, power := range gpustage.View[float64](call.Host(signalPower)) {
		if power-power != 0 {
			b.Reject(row, errNotFinite.Error())
		}
	}
	return nil
}
