"""Makes shared/audio/internal/flac/testdata: FLAC files by libFLAC with computed samples (see signal in flac_test.go).

    .cache/venv-audio/bin/python scripts/audio/flac.py
"""

import pathlib

import numpy as np
import soundfile

out = pathlib.Path(__file__).resolve().parents[2] / "shared/audio/internal/flac/testdata"
out.mkdir(exist_ok=True)
LENGTH = 2500  # samples of each part


def signal(i, c):
    """Returns sample i of channel c, in 8 bits. The parts are silence, a triangle, noise, and a triangle with a wasted bit."""
    part, i = divmod(i, LENGTH)
    triangle = abs((i * (c + 3)) % 400 - 200) // 2 - 50
    noise = (i * i * 40503 + i * 977 * (c + 1)) // 64 % 256 - 128
    return [0, triangle, noise, 2 * triangle][part]


for bits, kind, rate, channels, level in [
    (8, "PCM_S8", 16000, 1, 1.0), (16, "PCM_16", 24000, 2, 1.0), (24, "PCM_24", 44100, 3, 0.5), (16, "PCM_16", 12345, 1, 0.0),
]:
    # libsndfile takes 32 bits and keeps the upper ones. The second term fills the bits below the signal's 8 bits.
    x = [[signal(i, c) * 2**24 + (i * i % 251 * 2 ** (32 - bits) if bits > 8 else 0) for c in range(channels)]
         for i in range(4 * LENGTH)]
    x = np.array(x, dtype=np.int64).astype(np.int32)
    soundfile.write(out / f"{bits}-{rate}-{channels}.flac", x, rate, kind, compression_level=level)
