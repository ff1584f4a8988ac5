"""The log-mel features of docs/bundle.md, in NumPy. The host computes its own; this is for tuning and for reference."""

import librosa
import numpy as np


def log_mel(waveform: np.ndarray, f: dict) -> np.ndarray:
    """f32[1 + n/hop, n_mels] of a waveform f32[n], by a bundle's feature contract."""
    spectrum = np.abs(librosa.stft(
        waveform.astype(np.float64), n_fft=f["n_fft"], hop_length=f["hop_length"], win_length=f["win_length"],
        window=f["window"], center=f["center"], pad_mode=f["pad_mode"]))
    basis = librosa.filters.mel(
        sr=f["sample_rate"], n_fft=f["n_fft"], n_mels=f["n_mels"], fmin=f["f_min"], fmax=f["f_max"],
        htk=f["mel_scale"] == "htk", norm="slaney" if f["mel_norm"] == "slaney" else None, dtype=np.float64)
    logarithm = {"ln": np.log, "log10": np.log10}[f["log"]]
    y = logarithm(np.maximum(basis @ spectrum ** f["power"], f["log_floor"])).T
    if "normalization" in f:
        y = (y - f["normalization"]["mean"]) / f["normalization"]["std"]
    return y.astype(np.float32)
