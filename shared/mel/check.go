package mel

import (
	"github.com/xtts-host/xtts-host/shared/hint"
	"github.com/xtts-host/xtts-host/shared/manifest"
)

// check refuses settings from which no spectrogram can be computed. The cutter checks the settings of the frames.
func check(f manifest.Features) error {
	refuse := func(advice, format string, args ...any) error {
		return hint.Errorf(advice, "features: "+format, args...)
	}
	nyquist := float64(f.SampleRate) / 2
	switch {
	case f.WinLength < 1 || f.WinLength > f.NFFT:
		return refuse("", "win_length %d is not between 1 and n_fft (%d)", f.WinLength, f.NFFT)
	case f.Window != "hann":
		return refuse("the only window is hann", "window %q is unknown", f.Window)
	case f.Power != 1 && f.Power != 2:
		return refuse("1 is the magnitude, 2 the power", "power is %v", f.Power)
	case f.NMels < 1:
		return refuse("", "n_mels is %d", f.NMels)
	case f.MelScale != "slaney" && f.MelScale != "htk":
		return refuse("slaney or htk", "mel_scale %q is unknown", f.MelScale)
	case f.MelNorm != "slaney" && f.MelNorm != "none":
		return refuse("slaney or none", "mel_norm %q is unknown", f.MelNorm)
	case f.FMin < 0 || !(f.FMin < f.FMax):
		return refuse("", "f_min %v and f_max %v are not a valid band", f.FMin, f.FMax)
	case f.FMax > nyquist:
		return refuse("f_max is at most half the sample rate", "f_max %v Hz is above %v Hz, half of sample_rate %d",
			f.FMax, nyquist, f.SampleRate)
	case f.Log != "ln" && f.Log != "log10":
		return refuse("ln or log10", "log %q is unknown", f.Log)
	case !(f.LogFloor > 0):
		return refuse("", "log_floor is %v: the logarithm needs a number above 0", f.LogFloor)
	case f.Normalization != nil && !(f.Normalization.Std > 0):
		return refuse("", "normalization.std is %v", f.Normalization.Std)
	}
	return nil
}
