// Package meltest has the signal and the golden numbers with which log-mel spectrograms are tested.
package meltest

import (
	_ "embed"
	"encoding/json"
	"math"
	"slices"
	"testing"

	"github.com/xtts-host/xtts-host/shared/manifest"
)

// golden are librosa's results in float64. make_golden.py writes it.
//
//go:embed golden.json
var golden []byte

// Case is one of the golden cases.
type Case struct {
	Name     string
	Features manifest.Features
	Samples  int
	Frames   int
	LogMel   []float64 `json:"log_mel"`
}

// Cases returns the golden cases.
func Cases(t *testing.T) []Case {
	t.Helper()
	var file struct {
		Signal []float32
		Cases  []Case
	}
	if err := json.Unmarshal(golden, &file); err != nil {
		t.Fatal(err)
	}
	if got := Signal(len(file.Signal)); !slices.Equal(got, file.Signal) {
		t.Fatalf("the signal begins with %v, the file's with %v", got, file.Signal)
	}
	return file.Cases
}

// Apart returns the largest distance between values and the golden ones.
func (c Case) Apart(mel []float32) float64 {
	if len(mel) != len(c.LogMel) {
		return math.Inf(1)
	}
	var worst float64
	for i, want := range c.LogMel {
		worst = max(worst, math.Abs(float64(mel[i])-want))
	}
	return worst
}

// Signal returns the signal of make_golden.py.
func Signal(n int) []float32 {
	out := make([]float32, n)
	for i := range out {
		h := uint64(i+1) * 0x9E3779B97F4A7C15
		h = (h ^ h>>30) * 0xBF58476D1CE4E5B9
		h = (h ^ h>>27) * 0x94D049BB133111EB
		h ^= h >> 31
		noise := float64(h>>40)/(1<<23) - 1
		slow := math.Abs(float64(i%105*2-105))/105 - 0.5
		fast := math.Abs(float64(i%7*2-7))/7 - 0.5
		out[i] = float32(slow + fast/16 + noise/math.Pow(2, float64(3+i/500)))
	}
	return out
}

// Base returns the feature contract of MyXTTS without a normalization.
func Base() manifest.Features {
	return manifest.Features{
		SampleRate: 22050, NFFT: 1024, WinLength: 1024, HopLength: 256, Window: "hann", Center: true,
		PadMode: "constant", Power: 1, NMels: 80, MelScale: "slaney", MelNorm: "slaney", FMax: 11025, Log: "ln",
		LogFloor: 1e-5,
	}
}
