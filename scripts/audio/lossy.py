"""Makes shared/audio/testdata: a word of the embedded sample by libvorbis, libopus and LAME.

    .cache/venv-audio/bin/python scripts/audio/lossy.py

NAME.flac has what libsndfile 1.2.2 decodes from NAME.ogg, NAME.opus or NAME.mp3 (libvorbis, libopus, mpg123): the mean of the
channels, with 16 bits.
"""

import io
import pathlib
import zipfile

import numpy as np
import soundfile
import soxr

root = pathlib.Path(__file__).resolve().parents[2]
out = root / "shared/audio/testdata"
out.mkdir(exist_ok=True)

with zipfile.ZipFile(root / "host/data/dataset/sample/sample.zip") as z:
    speech, rate = soundfile.read(io.BytesIO(z.read("wavs/A/0001.wav")))
word = speech[6000:6000 + int(0.3 * rate)]

for name, kind, to, channels, level in [
    ("vorbis-22050-1.ogg", "VORBIS", 22050, 1, 0.7), ("vorbis-44100-2.ogg", "VORBIS", 44100, 2, 0.7),
    ("silk-48000-1.opus", "OPUS", 48000, 1, 1.0), ("celt-48000-2.opus", "OPUS", 48000, 2, 0.6),
    ("mpeg1-44100-1.mp3", "MPEG_LAYER_III", 44100, 1, 0.9), ("mpeg1-32000-2.mp3", "MPEG_LAYER_III", 32000, 2, 0.6),
    ("mpeg2-24000-1.mp3", "MPEG_LAYER_III", 24000, 1, 0.6),
]:
    x = soxr.resample(word, rate, to, "VHQ") if to != rate else word
    x = np.stack([np.roll(x, 7 * c) * (0.9 - 0.2 * c) for c in range(channels)], axis=1)
    container = {"VORBIS": "OGG", "OPUS": "OGG", "MPEG_LAYER_III": "MP3"}[kind]
    soundfile.write(out / name, x, to, kind, format=container, compression_level=level)
    decoded, _ = soundfile.read(out / name, dtype="float64", always_2d=True)
    mean = np.clip(np.round(decoded.sum(axis=1) / channels * 2**15), -2**15, 2**15 - 1).astype(np.int16)
    soundfile.write((out / name).with_suffix(".flac"), mean, to, "PCM_16", format="FLAC", compression_level=1.0)
