"""Waveform to mel spectrogram by a bundle's feature contract (docs/audio.md), and back by the algorithm of Griffin and Lim."""

import numpy as np

from .files import Refused


class Features:
    """The feature contract of a bundle. It covers contracts like that of myxtts-nano and refuses others."""

    def __init__(self, contract: dict):
        self.rate, self.size, self.hop = contract["sample_rate"], contract["n_fft"], contract["hop_length"]
        expected = {"win_length": self.size, "window": "hann", "center": True, "pad_mode": "constant", "power": 1, "log": "ln",
                    "mel_scale": "slaney", "mel_norm": "slaney"}
        for name, value in expected.items():
            if contract[name] != value:
                raise Refused(f"the feature contract has {name} {contract[name]}, expected {value}", "use a run of builtin:myxtts-nano")
        self.floor = contract["log_floor"]
        self.mean, self.std = contract["normalization"]["mean"], contract["normalization"]["std"]
        self.window = 0.5 - 0.5 * np.cos(2 * np.pi * np.arange(self.size) / self.size)
        self.filters = _filters(self.rate, self.size, contract["n_mels"], contract["f_min"], contract["f_max"])

    def mel(self, samples: np.ndarray) -> np.ndarray:
        """f32[T_mel, n_mels], normalized: one frame more than whole hops."""
        mel = np.abs(self._spectrum(samples)) @ self.filters.T
        return ((np.log(np.maximum(mel, self.floor)) - self.mean) / self.std).astype(np.float32)

    def waveform(self, mel: np.ndarray, rounds: int = 60) -> np.ndarray:
        """Samples whose mel spectrogram is close to mel, by Griffin-Lim with momentum (Perraudin and others, 2013)."""
        target = np.exp(mel.astype(np.float64) * self.std + self.mean)
        magnitude = self._magnitude(target)
        rng = np.random.default_rng(0)
        phase = np.exp(2j * np.pi * rng.random(magnitude.shape))
        previous = np.zeros_like(phase)
        for _ in range(rounds):
            rebuilt = self._spectrum(self._overlap_add(magnitude * phase))
            ahead = rebuilt + 0.99 * (rebuilt - previous)
            phase, previous = ahead / np.maximum(np.abs(ahead), 1e-12), rebuilt
        return self._overlap_add(magnitude * phase)

    def _magnitude(self, mel: np.ndarray, rounds: int = 50) -> np.ndarray:
        """A spectrum that is not negative and has these mel bands, by multiplicative updates (Lee and Seung, 2001)."""
        spectrum = np.maximum(mel @ np.linalg.pinv(self.filters).T, 1e-6)
        wanted, gram = mel @ self.filters, self.filters.T @ self.filters
        for _ in range(rounds):
            spectrum *= wanted / np.maximum(spectrum @ gram, 1e-10)
        return spectrum

    def _spectrum(self, samples: np.ndarray) -> np.ndarray:
        padded = np.pad(samples.astype(np.float64), self.size // 2)
        frames = np.lib.stride_tricks.sliding_window_view(padded, self.size)[::self.hop]
        return np.fft.rfft(frames * self.window)

    def _overlap_add(self, spectrum: np.ndarray) -> np.ndarray:
        frames = np.fft.irfft(spectrum, self.size) * self.window
        length = self.size + self.hop * (len(frames) - 1)
        total, weight = np.zeros(length), np.full(length, 1e-8)
        for i, frame in enumerate(frames):
            at = slice(i * self.hop, i * self.hop + self.size)
            total[at] += frame
            weight[at] += self.window**2
        half = self.size // 2
        return (total / weight)[half:length - half]


def _filters(rate: int, size: int, bands: int, low: float, high: float) -> np.ndarray:
    """f64[bands, 1 + size / 2]: triangles on the Slaney mel scale, each with area 1."""
    edges = _hertz(np.linspace(_mel(low), _mel(high), bands + 2))
    bins = np.arange(1 + size // 2) * rate / size
    rising = (bins - edges[:-2, None]) / (edges[1:-1] - edges[:-2])[:, None]
    falling = (edges[2:, None] - bins) / (edges[2:] - edges[1:-1])[:, None]
    return np.maximum(0, np.minimum(rising, falling)) * (2 / (edges[2:] - edges[:-2]))[:, None]


# Linear to 1000 Hz, which is 15 mel, then logarithmic: 27 mel for a factor of 6.4.
_STEP = np.log(6.4) / 27


def _mel(hertz: float) -> float:
    return hertz * 3 / 200 if hertz < 1000 else 15 + np.log(hertz / 1000) / _STEP


def _hertz(mel: np.ndarray) -> np.ndarray:
    return np.where(mel < 15, mel * 200 / 3, 1000 * np.exp((np.maximum(mel, 15) - 15) * _STEP))
