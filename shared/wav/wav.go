// Package wav makes WAV files of 16 bits with one channel:
//
//	data := wav.File(24000, []int16{0, wav.Sample(0.5)})
package wav

import (
	"encoding/binary"
	"math"
	"math/rand/v2"
)

// HeaderSize is the size of the header: RIFF, fmt and the beginning of data.
const HeaderSize = 44

// Header returns the header before so many bytes of samples.
func Header(rate int, size uint32) []byte {
	b := append([]byte("RIFF"), binary.LittleEndian.AppendUint32(nil, HeaderSize-8+size)...)
	b = append(b, "WAVEfmt "...)
	b = binary.LittleEndian.AppendUint32(b, 16)
	b = binary.LittleEndian.AppendUint16(b, 1) // integers
	b = binary.LittleEndian.AppendUint16(b, 1) // channel
	b = binary.LittleEndian.AppendUint32(b, uint32(rate))
	b = binary.LittleEndian.AppendUint32(b, uint32(2*rate))
	b = binary.LittleEndian.AppendUint16(b, 2)
	b = binary.LittleEndian.AppendUint16(b, 16)
	b = append(b, "data"...)
	return binary.LittleEndian.AppendUint32(b, size)
}

// Sample returns the nearest number of 16 bits to a sample. Full scale is 1, and what is beyond is clipped.
func Sample(v float32) int16 {
	return int16(min(max(math.Round(32768*float64(v)), -32768), 32767))
}

// File returns a file.
func File(rate int, samples []int16) []byte {
	b := Header(rate, uint32(2*len(samples)))
	for _, s := range samples {
		b = binary.LittleEndian.AppendUint16(b, uint16(s))
	}
	return b
}

// Noises returns three short files of noise, always the same at a rate: a data folder for the test of a stage.
func Noises(rate int) (files [][]byte) {
	rng := rand.New(rand.NewPCG(1, 1))
	for _, seconds := range []float64{0.3, 0.7, 1.5} {
		samples := make([]int16, int(seconds*float64(rate)))
		for i := range samples {
			samples[i] = int16(rng.IntN(1<<14) - 1<<13)
		}
		files = append(files, File(rate, samples))
	}
	return files
}
