package plugintry

import (
	"fmt"
	"math"

	"github.com/xtts-host/xtts-host/host/base/disk"
	"github.com/xtts-host/xtts-host/host/base/units"
	"github.com/xtts-host/xtts-host/shared/wav"
)

// writeSound writes a WAV file of 16 bits, and compares the waveform with the one before the stage.
func writeSound(file string, before, after []float32, rate int) (string, error) {
	clipped, samples := 0, make([]int16, len(after))
	for i, v := range after {
		if v < -1 || v > 1 {
			clipped++
		}
		samples[i] = wav.Sample(v)
	}
	if err := disk.Replace(file, wav.File(rate, samples)); err != nil {
		return "", written(err)
	}
	text := fmt.Sprintf("%.2f s -> %.2f s, peak %.3f -> %.3f, RMS %.3f -> %.3f",
		float64(len(before))/float64(rate), float64(len(after))/float64(rate), peak(before), peak(after), rms(before),
		rms(after))
	if clipped > 0 {
		text += fmt.Sprintf("; clipped in the file: %s beyond full scale", units.Count(clipped, "sample"))
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
