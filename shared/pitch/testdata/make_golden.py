#!/usr/bin/env python3
"""Writes golden.json: pitch and energy of voice.wav, in float64, by librosa.

    python3 -m venv /tmp/golden && /tmp/golden/bin/pip install librosa==0.11.0 numpy==2.2.6
    /tmp/golden/bin/python shared/pitch/testdata/make_golden.py

voice.wav is the first second of clip B/0001 of the sample corpus in host/data/dataset/sample: 22,050 Hz, 16 bits, CC0 1.0.
librosa.yin returns a frequency for every frame and does not decide which are voiced. Its difference function omits the energy
of the samples at a frame's end that have no partner, and is not divided by the number of pairs, so its normalised values
differ. In voiced frames the minima are at the same lags.
"""
import json
import pathlib
import wave

import librosa
import numpy as np

FOLDER = pathlib.Path(__file__).parent
FRAME, HOP, F_MIN, F_MAX, THRESHOLD = 2048, 256, 65, 1000, 0.15
RMS = [(2048, "constant"), (1024, "reflect"), (1361, "reflect")]


def main():
    with wave.open(str(FOLDER / "voice.wav")) as f:
        rate = f.getframerate()
        y = np.frombuffer(f.readframes(f.getnframes()), "<i2") / 32768.0
    f0 = librosa.yin(y, fmin=F_MIN, fmax=F_MAX, sr=rate, frame_length=FRAME, hop_length=HOP, trough_threshold=THRESHOLD,
                     center=True, pad_mode="constant")
    energy = []
    for length, mode in RMS:
        rms = librosa.feature.rms(y=y, frame_length=length, hop_length=HOP, center=True, pad_mode=mode, dtype=np.float64)[0]
        energy.append(dict(frame_length=length, pad_mode=mode, log_rms=[float(f"{v:.7g}") for v in np.log(np.maximum(rms, 1e-5))]))
    golden = dict(sample_rate=rate, hop_length=HOP, frame_length=FRAME, f_min=F_MIN, f_max=F_MAX, threshold=THRESHOLD,
                  f0=[float(f"{v:.6g}") for v in f0], energy=energy)
    path = FOLDER / "golden.json"
    path.write_text(json.dumps(golden, separators=(",", ":")).replace('"energy"', '\n"energy"').replace('{"frame_length"', '\n{"frame_length"') + "\n")
    print(path.name, path.stat().st_size, "bytes;", len(f0), "frames")


if __name__ == "__main__":
    main()
