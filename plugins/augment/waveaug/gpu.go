package waveaug

import (
	"context"
	_ "embed"
	"slices"

	"github.com/xtts-host/xtts-host/plugins/internal/gpustage"
	"github.com/xtts-host/xtts-host/shared/manifest"
	"github.com/xtts-host/xtts-host/shared/stage"
)

// graph does the arithmetic of a batch. scripts/xtts_export/stages.py generates it. All random numbers are drawn in Go,
// including those of the noise, because no operator reproduces the bits of Go's generator, and a row must not depend on
// the device. The noise is sent as f32, which changes a sample by 6e-8 of the noise.
//
//go:embed waveaug.onnx
var graph []byte

// The inputs and outputs of the graph that are not ports.
const (
	factor      = "factor"      // f64: gain and polarity
	noisy       = "noisy"       // bool
	noise       = "noise"       // f32[B, T_wav]; undefined if there is no noise
	noisePower  = "noise_power" // f64: multiplied by the drawn ratio
	augmented   = "augmented"
	signalPower = "signal_power" // f64: not finite for a row with a sample that is not finite
)

// samplesTogether bounds the memory of the graph's intermediate values, about 64 bytes per sample.
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
	return s.gpu.Open(s.OpenGPU, cfg, g)
}

// onGPU is the GPU version of Process. The lengths of the rows have been checked.
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
		d.report(b, row)
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
	stage.EachRow(len(lengths), func(row int) { limit(b, row) })
	return nil
}
