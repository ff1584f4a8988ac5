package plugintry

import (
	"encoding/binary"
	"fmt"
	"math"

	"github.com/xtts-host/xtts-host/host/base/disk"
)

// writeSound writes a WAV file of 16 bits, and compares the waveform with the one before the stage.
func writeSound(file string, before, after []float32, rate int) (string, error) {
	data := uint32(2 * len(after))
	b := append([]byte("RIFF"), binary.LittleEndian.AppendUint32(nil, 36+data)...)
	b = append(b, "WAVEfmt "...)
	b = binary.LittleEndian.AppendUint32(b, 16)
	b = binary.LittleEndian.AppendUint16(b, 1) // integers
	b = binary.LittleEndian.AppendUint16(b, 1) // channel
	b = binary.LittleEndian.AppendUint32(b, uint32(rate))
	b = binary.LittleEndian.AppendUint32(b, uint32(2*rate))
	b = binary.LittleEndian.AppendUint16(b, 2)
	b = binary.LittleEndian.AppendUint16(b, 16)
	b = append(b, "data"...)
	b = binary.LittleEndian.AppendUint32(b, data)
	clipped := 0
	for _, v := range after {
		if v < -1 || v > 1 {
			clipped++
		}
		b = binary.LittleEndian.AppendUint16(b, uint16(int16(min(max(math.Round(32768*float64(v)), -32768), 32767))))
	}
	if err := disk.Replace(file, b); err != nil {
		return "", written(err)
	}
	text := fmt.Sprintf("%.2f s -> %.2f s, peak %.3f -> %.3f, RMS %.3f -> %.3f",
		float64(len(before))/float64(rate), float64(len(after))/float64(rate), peak(before), peak(after), rms(before),
		rms(after))
	if clipped > 0 {
		text += fmt.Sprintf("; %d samples beyond full scale are clipped in the file", clipped)
	}
	return text, nil
}

func peak(wave []float32) (most float64) {
	for _, v := range wave {
		most = max(most, math.Abs(float64(v)))
	}
	return most
}

func rms(wave []float32) float64 {
	sum := 0.0
	for _, v := range wave {
		sum += float64(v) * float64(v)
	}
	return math.Sqrt(sum / float64(len(wave)))
}
