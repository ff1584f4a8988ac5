package manifest

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
)

// Features is the feature contract: everything that decides the numbers of a mel spectrogram.
// docs/bundle.md gives the meaning of each field.
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

// Normalization is y = (x - Mean) / Std, applied to the logarithm.
type Normalization struct {
	Mean float64 `json:"mean"`
	Std  float64 `json:"std"`
}

// Frames returns the number of frames of a row of n samples: 0 for an empty row, else 1 + n/hop when the
// frames are centred, and the number of whole windows when they are not.
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

// Hash identifies the contract: the hex SHA-256 of its canonical JSON (keys sorted, no white space).
func (f Features) Hash() string {
	b, err := json.Marshal(f)
	if err != nil {
		panic(err) // only numbers that JSON cannot hold, which parsing refuses
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
