#!/usr/bin/env python3
"""Writes golden.json: log-mel spectrograms of a computed signal, in float64, by librosa and numpy.

    python3 -m venv /tmp/golden && /tmp/golden/bin/pip install librosa==0.11.0 numpy==2.2.6
    /tmp/golden/bin/python shared/mel/meltest/make_golden.py

The STFT and the mel filters are librosa's; power, logarithm and normalisation follow docs/bundle.md. No audio is
stored: signal() uses integer arithmetic and a few exact divisions, so any language computes the same samples.
"""
import json
import pathlib

import librosa
import numpy as np

BASE = dict(sample_rate=22050, n_fft=1024, win_length=1024, hop_length=256, window="hann", center=True, pad_mode="constant",
            power=1, n_mels=80, mel_scale="slaney", mel_norm="slaney", f_min=0, f_max=11025, log="ln", log_floor=1e-5)

# name, differences from BASE, samples
CASES = [
    ("xtts", {}, 3000),
    ("power, reflect, log10", dict(power=2, pad_mode="reflect", log="log10", log_floor=1e-10), 3000),
    ("normalized", dict(normalization=dict(mean=-6.0, std=2.5)), 1500),
    ("htk without norm, short window, not centred", dict(center=False, mel_scale="htk", mel_norm="none", win_length=800, f_min=60, f_max=7600), 3500),
    ("a size that is no power of two", dict(sample_rate=16000, n_fft=400, win_length=400, hop_length=160, power=2, f_max=8000, n_mels=40), 2000),
    ("24 kHz, 100 bands", dict(sample_rate=24000, n_mels=100, f_max=12000, pad_mode="reflect", log_floor=1e-7), 2000),
    ("odd window, htk with norm", dict(n_fft=512, win_length=401, hop_length=128, mel_scale="htk", n_mels=30, f_min=20, f_max=11025, power=2), 1500),
    ("one sample", dict(pad_mode="reflect"), 1),
    ("shorter than the padding", dict(pad_mode="reflect", power=2), 300),
]


def signal(n):
    """A loud triangle wave of 105 samples, a sixteenth of it in a faster one, and noise that fades by steps of a half, in float32."""
    out = np.empty(n, np.float32)
    for i in range(n):
        h = (i + 1) * 0x9E3779B97F4A7C15 & 0xFFFFFFFFFFFFFFFF
        h = (h ^ h >> 30) * 0xBF58476D1CE4E5B9 & 0xFFFFFFFFFFFFFFFF
        h = (h ^ h >> 27) * 0x94D049BB133111EB & 0xFFFFFFFFFFFFFFFF
        h ^= h >> 31
        noise = (h >> 40) / 2.0**23 - 1
        slow = abs(i % 105 * 2 - 105) / 105.0 - 0.5
        fast = abs(i % 7 * 2 - 7) / 7.0 - 0.5
        out[i] = np.float32(slow + fast / 16 + noise / 2.0 ** (3 + i // 500))
    return out


def log_mel(x, f):
    x = x.astype(np.float64)
    if f["center"]:
        # Reflection of a signal shorter than the padding is numpy's, repeated; librosa refuses it.
        half = f["n_fft"] // 2
        x = np.pad(x, half, mode="reflect") if f["pad_mode"] == "reflect" else np.pad(x, half)
    spec = librosa.stft(x, n_fft=f["n_fft"], hop_length=f["hop_length"], win_length=f["win_length"], window="hann",
                        center=False, dtype=np.complex128)
    mel = librosa.filters.mel(sr=f["sample_rate"], n_fft=f["n_fft"], n_mels=f["n_mels"], fmin=f["f_min"], fmax=f["f_max"],
                              htk=f["mel_scale"] == "htk", norm="slaney" if f["mel_norm"] == "slaney" else None, dtype=np.float64)
    y = (mel @ np.abs(spec) ** f["power"]).T
    y = np.maximum(y, f["log_floor"])
    y = np.log(y) if f["log"] == "ln" else np.log10(y)
    norm = f.get("normalization")
    return (y - norm["mean"]) / norm["std"] if norm else y


def main():
    cases = []
    for name, changes, n in CASES:
        f = BASE | changes
        y = log_mel(signal(n), f)
        cases.append(dict(name=name, features=f, samples=n, frames=y.shape[0], log_mel=[float(f"{v:.7g}") for v in y.ravel()]))
    first = [float(v) for v in signal(8)]
    text = json.dumps(dict(signal=first, cases=cases), separators=(",", ":")).replace('{"name"', '\n{"name"')
    path = pathlib.Path(__file__).with_name("golden.json")
    path.write_text(text + "\n")
    print(path.name, len(text), "bytes;", [(c["name"], c["frames"]) for c in cases])


if __name__ == "__main__":
    main()
