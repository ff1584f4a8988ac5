package dataset

import (
	"math"
	"math/bits"
	"os"
	"path/filepath"
	"strconv"
	"testing"

	"gonum.org/v1/gonum/dsp/fourier"
)

// scripts/test-audio.sh generates the clips and references. It needs Python and sets the folder. Decoded samples must
// equal those of libsndfile to the bit.
//
// Resampled clips are compared with soxr's quality HQ: the RMS of the error must be 90 dB below full scale. Up to 0.8
// of the lower Nyquist frequency it must also be 90 dB below the clip itself. Above that, soxr's own response falls (by
// 0.007 dB at 0.9), and in the transition band, from 0.91 on, no two filters agree. With those bands the error must be
// 78 dB below the clip.
func TestFormats(t *testing.T) {
	dir := os.Getenv("AUDIO_REFERENCES")
	if dir == "" {
		t.Skip("scripts/test-audio.sh makes the references and runs this test")
	}
	const band, limitFull, limit, limitAll = 0.8, -90, -90, -78
	for _, rate := range []int{22050, 24000} {
		ix := open(t, Config{Dir: dir, SampleRate: rate})
		if len(ix.Rows) != 22 {
			t.Fatalf("%d rows, rejected: %v", len(ix.Rows), ix.Rejected)
		}
		for i := range ix.Rows {
			row := &ix.Rows[i]
			file := row.ID
			if row.FileRate != rate {
				file += "-" + strconv.Itoa(rate)
			}
			data, err := os.ReadFile(filepath.Join(dir, "reference", file+".f32"))
			if err != nil {
				t.Fatal(err)
			}
			want, got := floats(data), make([]float32, row.Samples)
			if err := NewDecoder(rate).Decode(got, row, 0); err != nil {
				t.Errorf("%s: %v", row.ID, err)
				continue
			}
			if n := len(got) - len(want); n < -1 || n > 1 || n != 0 && row.FileRate == rate {
				t.Errorf("%s at %d Hz: %d samples, the reference has %d", row.ID, rate, len(got), len(want))
				continue
			}
			n := min(len(got), len(want))
			if row.FileRate != rate {
				full := level(got[:n], want[:n])
				inBand, all := difference(got[:n], want[:n], band*float64(min(rate, row.FileRate))/float64(rate))
				t.Logf("%-22s -> %d Hz: error %6.1f dBFS; to the clip %6.1f dB up to %v of Nyquist, %6.1f dB in all",
					row.ID, rate, full, inBand, band, all)
				if full > limitFull || inBand > limit || all > limitAll {
					t.Errorf("%s at %d Hz: errors of %.1f dBFS, %.1f dB and %.1f dB, want %d, %d and %d", row.ID, rate,
						full, inBand, all, limitFull, limit, limitAll)
				}
			}
		}
		if rate == 22050 {
			exact(t, dir, ix)
		}
	}
}

// exact compares every clip at its own rate.
func exact(t *testing.T, dir string, ix *Index) {
	t.Helper()
	for _, row := range ix.Rows {
		data, err := os.ReadFile(filepath.Join(dir, "reference", row.ID+".f32"))
		if err != nil {
			t.Fatal(err)
		}
		want := floats(data)
		row.Samples = row.Frames
		got := make([]float32, row.Frames)
		if err := NewDecoder(row.FileRate).Decode(got, &row, 0); err != nil || len(got) != len(want) {
			t.Errorf("%s: %d samples, want %d, %v", row.ID, len(got), len(want), err)
			continue
		}
		for i := range got {
			if got[i] != want[i] {
				t.Errorf("%s: sample %d is %v, libsndfile reads %v", row.ID, i, got[i], want[i])
				break
			}
		}
		t.Logf("%-22s equals libsndfile's %d samples", row.ID, len(want))
	}
}

// level returns the RMS of the difference in dB relative to full scale.
func level(got, want []float32) float64 {
	sum := 0.0
	for i := range got {
		d := float64(got[i]) - float64(want[i])
		sum += d * d
	}
	return 10 * math.Log10(sum/float64(len(got)))
}

// difference returns the energy of got-want in dB relative to that of want, below a share of the Nyquist frequency and
// over the whole band.
func difference(got, want []float32, share float64) (inBand, all float64) {
	e := make([]float64, 1<<bits.Len(uint(len(got)))) // zeros do not change the energy, and a power of 2 is fast
	total := 0.0
	for i := range got {
		e[i] = float64(got[i]) - float64(want[i])
		total += float64(want[i]) * float64(want[i])
	}
	fft := fourier.NewFFT(len(e))
	low, sum := 0.0, 0.0
	for i, c := range fft.Coefficients(nil, e) {
		power := real(c)*real(c) + imag(c)*imag(c)
		sum += power
		if 2*fft.Freq(i) <= share {
			low += power
		}
	}
	// Half of the spectrum has half of the energy, times the length (Parseval).
	scale := 2 / (float64(len(e)) * total)
	return 10 * math.Log10(low*scale), 10 * math.Log10(sum*scale)
}
