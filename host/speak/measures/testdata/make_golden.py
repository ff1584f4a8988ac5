#!/usr/bin/env python3
"""Writes golden.json: the measures of speech, in float64, by librosa, scipy and the formulas of docs/speech-measures.md.

    python3 -m venv /tmp/golden && /tmp/golden/bin/pip install librosa==0.11.0 numpy==2.2.6 scipy==1.15.3
    /tmp/golden/bin/python host/speak/measures/testdata/make_golden.py

The recording is shared/pitch/testdata/voice.wav. The speech is the same, 1/0.9 as long and a tenth lower, by linear
interpolation; the loop is a part of it three times. Pitches are made by a formula: package pitch has numbers of its own.
"""
import json
import pathlib
import wave

import librosa
import numpy as np
import scipy.fft

FOLDER = pathlib.Path(__file__).parent
VOICE = FOLDER.parents[3] / "shared/pitch/testdata/voice.wav"


def read():
    with wave.open(str(VOICE)) as f:
        return f.getframerate(), np.frombuffer(f.readframes(f.getnframes()), "<i2").astype(np.float64)


def slower(y):
    x = np.arange(int((len(y) - 2) / 0.9)) * 0.9
    j = np.floor(x).astype(int)
    return np.floor((1 - (x - j)) * y[j] + (x - j) * y[j + 1] + 0.5)


def cepstra(y, rate):
    hop = int(rate / 100 + 0.5)
    mel = librosa.feature.melspectrogram(
        y=y, sr=rate, n_fft=1024, win_length=4 * hop, hop_length=hop, window="hann", center=True, pad_mode="constant",
        power=1.0, n_mels=80, fmin=0, fmax=8000, htk=False, norm="slaney")
    return scipy.fft.dct(np.log(np.maximum(mel.T, 1e-5)), type=2, norm="ortho", axis=1)[:, 1:14] * np.sqrt(2 / 80)


def silent(y, rate):
    hop = int(rate / 100 + 0.5)
    rms = librosa.feature.rms(y=y, frame_length=2 * hop, hop_length=hop, center=True, pad_mode="constant")[0]
    return (rms < 1e-3) | (rms < 1e-2 * rms.max())


def pitch(frames, factor):
    t = np.arange(frames)
    return np.where(t % 11 < 7, factor * (120 + 40 * np.sin(0.1 * t)), 0.0)


def repeated(c, quiet):
    """Each window of 40 frames against each one that begins 30 frames before or more."""
    n, marked = len(c), np.zeros(len(c), bool)
    d = 10 / np.log(10) * np.sqrt(2 * ((c[:, None] - c[None]) ** 2).sum(-1))
    loud = ~(quiet[:, None] | quiet[None])
    for late in range(n - 39):
        for early in range(late - 29):
            i = np.arange(40)
            use = loud[late + i, early + i]
            if use.sum() >= 30 and d[late + i, early + i][use].mean() < 4:
                marked[late:late + 40] = True
    return (marked & ~quiet).sum() / (~quiet).sum()


def main():
    rate, voice = read()
    speech = slower(voice)
    loop = np.tile(voice[4000:16000], 3)
    a, b, c = (cepstra(x / 32768, rate) for x in (voice, speech, loop))
    cost, path = librosa.sequence.dtw(X=a.T, Y=b.T, metric="euclidean")
    i, j = path.T
    distances = 10 / np.log(10) * np.sqrt(2 * ((a[i] - b[j]) ** 2).sum(1))
    f, g = pitch(len(a), 1.0)[i], pitch(len(b), 1.1)[j]
    both = (f > 0) & (g > 0)
    golden = dict(
        sample_rate=rate, cepstrum=a[40].tolist(), silence=float(silent(voice / 32768, rate).mean()), mcd_db=float(distances.mean()),
        path=len(path), f0_cents=float(np.sqrt(np.mean((1200 * np.log2(g[both] / f[both])) ** 2))),
        voicing_error=float(np.mean((f > 0) != (g > 0))), repeated=float(repeated(c, silent(loop / 32768, rate))))
    out = FOLDER / "golden.json"
    out.write_text(json.dumps(golden, indent=1) + "\n")
    print(out.read_text())


if __name__ == "__main__":
    main()
