"""The features of docs/bundle.md, in NumPy. The host computes its own; this is for tuning and for reference."""

import librosa
import numpy as np


def log_mel(waveform: np.ndarray, f: dict) -> dict[str, np.ndarray]:
    """mel_spectrograms f32[1 + n/hop, n_mels] of a waveform f32[n], by a bundle's feature contract."""
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
    return {"mel_spectrograms": y.astype(np.float32)}


def prosody(waveform: np.ndarray, f: dict) -> dict[str, np.ndarray]:
    """pitch and energy f32[1 + n/hop] of a waveform f32[n]. The host's stage decides by YIN alone which frames have a voice; pYIN, which decides better, will do here."""
    frame = 4 * f["sample_rate"] // 65
    framing = {"frame_length": frame, "hop_length": f["hop_length"], "center": f["center"], "pad_mode": f["pad_mode"]}
    frequency, voiced, _ = librosa.pyin(waveform.astype(np.float64), fmin=65, fmax=1000, sr=f["sample_rate"], **framing)
    loudness = librosa.feature.rms(y=waveform.astype(np.float64), **framing)[0]
    return {"pitch": np.where(voiced, np.log(np.where(voiced, frequency, 1)), 0).astype(np.float32),
            "energy": np.log(np.maximum(loudness, 1e-5)).astype(np.float32)}
