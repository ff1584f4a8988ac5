package logmel

import (
	"context"
	_ "embed"
	"math"
	"slices"

	"github.com/xtts-host/xtts-host/plugins/internal/gpustage"
	"github.com/xtts-host/xtts-host/shared/manifest"
	"github.com/xtts-host/xtts-host/shared/mel"
	"github.com/xtts-host/xtts-host/shared/stage"
)

// graph computes a batch for any contract: everything that depends on the contract is an input.
// scripts/xtts_export/stages.py generates it, and explains why it computes in f64.
//
//go:embed logmel.onnx
var graph []byte

// notFinite is the output that is NaN for a row with a sample that is not finite, and 0 for others.
const notFinite = "check"

// framesTogether bounds the memory of the graph's intermediate values, about 32 KiB per frame with an n_fft of 1024.
var framesTogether = 8192 // tests lower it

// load prepares the graph for the buckets of cfg.
func (s *Stage) load(cfg *stage.Config) error {
	g := gpustage.Graph{Name: "logmel", Model: graph, Tables: tables(s.extractor)}
	for bucket := range cfg.Buckets() {
		shape := func(port string) []int { return cfg.Shape(bucket, port) }
		g.Buckets = append(g.Buckets,
			batches(s.extractor, shape(waveform), shape(melSpectrograms), cfg.Pad(bucket, melSpectrograms)))
	}
	return s.gpu.Open(s.OpenGPU, cfg, g)
}

// onGPU is the GPU version of Process. The lengths of the rows have been checked.
func (s *Stage) onGPU(ctx context.Context, b *stage.Batch) error {
	e := s.extractor
	f := e.Features()
	samples, frames := b.Int32(waveformLengths), b.Int32(melLengths)
	for row, n := range samples {
		frames[row] = int32(f.Frames(int(n)))
	}
	call, err := s.gpu.Program().Begin(ctx, b.Bucket())
	if err != nil {
		return err
	}
	defer call.End()
	in := gpustage.Bytes{
		waveform: b.Bytes(waveform), waveformLengths: b.Bytes(waveformLengths), melLengths: b.Bytes(melLengths),
	}
	if err := call.Run(in, gpustage.Bytes{melSpectrograms: b.Bytes(melSpectrograms)}); err != nil {
		return err
	}
	cutter := e.Cutter()
	wave, width := b.Float32(waveform), b.Shape(waveform)[1]
	out, size := b.Float32(melSpectrograms), b.Shape(melSpectrograms)[1]*f.NMels
	for row, c := range gpustage.View[float32](call.Host(notFinite)) {
		n := int(samples[row])
		if n == 0 || c == 0 && frames[row] > 0 {
			continue
		}
		if _, err := cutter.Count(wave[row*width:][:n]); err != nil {
			b.Reject(row, err.Error())
			frames[row] = 0
			fill(out[row*size:(row+1)*size], float32(b.Pad(melSpectrograms)))
		}
	}
	return nil
}

// tables are the graph's inputs that depend only on the contract. They have the same values as on the CPU, without the
// zeros of the window and only with the bins that a filter uses, padded to a multiple of 8 for the matrix kernels.
func tables(e *mel.Extractor) []gpustage.Table {
	f, own := e.Features(), e.Tables()
	length, before := f.WinLength, (f.NFFT-f.WinLength)/2
	bins := (own.End - own.First + 7) / 8 * 8
	sin, cos := make([]float64, f.NFFT), make([]float64, f.NFFT) // of one turn: exact, unlike large angles
	for i := range sin {
		sin[i], cos[i] = math.Sincos(2 * math.Pi * float64(i) / float64(f.NFFT))
	}
	cosines, sines := make([]float64, length*bins), make([]float64, length*bins)
	for i := range length {
		for k := range own.End - own.First {
			at := (before + i) * (own.First + k) % f.NFFT
			cosines[i*bins+k], sines[i*bins+k] = cos[at], sin[at]
		}
	}
	bank := make([]float64, bins*f.NMels)
	for m, b := range own.Bands {
		for k, w := range b.Weights {
			bank[(b.First-own.First+k)*f.NMels+m] = w
		}
	}
	return []gpustage.Table{
		gpustage.NewTable("reflect", []bool{f.PadMode == "reflect"}),
		gpustage.NewTable("window", own.Window[before:][:length], length),
		gpustage.NewTable("cosines", cosines, length, bins),
		gpustage.NewTable("sines", sines, length, bins),
		gpustage.NewTable("half_power", []float64{f.Power / 2}),
		gpustage.NewTable("bank", bank, bins, f.NMels),
		gpustage.NewTable("floor", []float64{f.LogFloor}),
		gpustage.NewTable("scale", []float64{own.Scale}),
		gpustage.NewTable("shift", []float64{own.Shift}),
	}
}

// batches describes the batches whose ports have these shapes.
func batches(e *mel.Extractor, wave, spectrogram []int, pad float64) gpustage.Bucket {
	f, cutter, rows, frames := e.Features(), e.Cutter(), wave[0], spectrogram[1]
	first, before := cutter.First(), (f.NFFT-f.WinLength)/2
	numbers, samples := make([]int32, frames), make([]int32, frames*f.WinLength)
	for t := range frames {
		numbers[t] = int32(t)
		for i := range f.WinLength {
			samples[t*f.WinLength+i] = int32(t*f.HopLength + before + i)
		}
	}
	// Include samples up to the row's end that no frame reaches, because every sample is checked.
	positions := make([]int32, max((frames-1)*f.HopLength+f.NFFT, wave[1]-first))
	for i := range positions {
		positions[i] = int32(first + i)
	}
	ones := slices.Repeat([]float32{1}, len(positions))
	return gpustage.Bucket{
		Rows:     rows,
		Together: max(1, framesTogether/frames),
		Inputs: []gpustage.Tensor{
			{Name: waveform, DType: manifest.F32, Row: wave[1:]},
			{Name: waveformLengths, DType: manifest.I32, Row: []int{1}},
			{Name: melLengths, DType: manifest.I32, Row: []int{1, 1}},
		},
		Outputs: []gpustage.Tensor{
			{Name: melSpectrograms, DType: manifest.F32, Row: spectrogram[1:]},
			{Name: notFinite, DType: manifest.F32, Row: []int{1}, Own: true},
		},
		Tables: []gpustage.Table{
			gpustage.NewTable("positions", positions, len(positions)),
			gpustage.NewTable("ones", ones, len(ones), 1),
			gpustage.NewTable("frames", samples, frames, f.WinLength),
			gpustage.NewTable("frame_numbers", numbers, frames, 1),
			gpustage.NewTable("pad", []float32{float32(pad)}),
		},
	}
}
