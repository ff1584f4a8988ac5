package manifest

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
)

// Features is the feature contract: all settings that determine the values of a mel spectrogram. docs/bundle.md
// specifies each field. Lengths are in samples, frequencies in Hz.
type Features struct {
	SampleRate    int            `json:"sample_rate"`
	NFFT          int            `json:"n_fft"`
	WinLength     int            `json:"win_length"`
	HopLength     int            `json:"hop_length"`
	Window        string         `json:"window"`
	Center        bool           `json:"center"`
	PadMode       string         `json:"pad_mode"`
	Power         float64        `json:"power"`
	NMels         int            `json:"n_mels"`
	MelScale      string         `json:"mel_scale"`
	MelNorm       string         `json:"mel_norm"`
	FMin          float64        `json:"f_min"`
	FMax          float64        `json:"f_max"`
	Log           string         `json:"log"`
	LogFloor      float64        `json:"log_floor"`
	Normalization *Normalization `json:"normalization,omitempty"`
}

// Normalization is y = (x - Mean) / Std, applied after the logarithm.
type Normalization struct {
	Mean float64 `json:"mean"`
	Std  float64 `json:"std"`
}

// Seconds returns the duration of n samples.
func (f Features) Seconds(n int) float64 { return float64(n) / float64(f.SampleRate) }

// Frames returns the number of frames for n samples: 0 for n <= 0; 1 + n/HopLength if frames are centred; else the
// number of whole windows of NFFT samples.
func (f Features) Frames(n int) int {
	switch {
	case n <= 0:
		return 0
	case f.Center:
		return 1 + n/f.HopLength
	case n < f.NFFT:
		return 0
	}
	return 1 + (n-f.NFFT)/f.HopLength
}

// Hash identifies the contract: the hex SHA-256 of its canonical JSON (sorted keys, no white space).
func (f Features) Hash() string {
	b, err := json.Marshal(f)
	if err != nil {
		panic(err) // only for numbers that JSON cannot represent, which parsing refuses
	}
	var m map[string]any
	if err := json.Unmarshal(b, &m); err != nil {
		panic(err)
	}
	if b, err = json.Marshal(m); err != nil { // maps are written with sorted keys
		panic(err)
	}
	sum := sha256.Sum256(b)
	return hex.EncodeToString(sum[:])
}
