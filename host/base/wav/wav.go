// Package wav makes WAV files of 16 bits with one channel:
//
//	data := wav.File(24000, []int16{0, wav.Sample(0.5)})
package wav

import (
	"encoding/binary"
	"math"
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
