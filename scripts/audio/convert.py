"""Converts a clip of the embedded sample to 22 formats and writes the expected samples of each.

    python convert.py OUT

OUT becomes a data set: metadata.csv and wavs/<id>.wav or .flac. OUT/reference/<id>.f32 has the samples that libsndfile reads
(the channels added as float64 in their order, the sum divided by their number, rounded to float32), and <id>-<rate>.f32 has
them resampled by soxr at quality HQ. Both are little-endian float32 without a header.
"""

import io
import pathlib
import sys
import zipfile

import numpy as np
import soundfile
import soxr

# container, sample type, rate, channels
FORMATS = [
    ("WAV", "PCM_U8", 8000, 1),
    ("WAV", "PCM_16", 8000, 1),
    ("WAV", "PCM_16", 11025, 2),
    ("WAV", "PCM_24", 16000, 1),
    ("WAV", "PCM_32", 22050, 1),
    ("WAV", "FLOAT", 22050, 2),
    ("WAV", "DOUBLE", 24000, 1),
    ("WAV", "ALAW", 8000, 1),
    ("WAVEX", "ULAW", 16000, 2),
    ("WAVEX", "PCM_16", 24000, 6),
    ("WAVEX", "PCM_24", 32000, 2),
    ("WAVEX", "PCM_32", 44100, 6),
    ("WAVEX", "FLOAT", 44100, 1),
    ("WAVEX", "DOUBLE", 48000, 2),
    ("WAVEX", "PCM_U8", 48000, 1),
    ("RF64", "PCM_24", 96000, 2),
    ("FLAC", "PCM_S8", 16000, 1),
    ("FLAC", "PCM_16", 22050, 1),
    ("FLAC", "PCM_16", 24000, 2),
    ("FLAC", "PCM_24", 44100, 6),
    ("FLAC", "PCM_24", 96000, 1),
    ("FLAC", "PCM_16", 48000, 2),
]
TARGETS = [22050, 24000]
CLIP = "wavs/A/0001.wav"

root = pathlib.Path(__file__).resolve().parents[2]
out = pathlib.Path(sys.argv[1])
(out / "wavs").mkdir(parents=True)
(out / "reference").mkdir()

with zipfile.ZipFile(root / "host/data/dataset/sample/sample.zip") as z:
    speech, rate = soundfile.read(io.BytesIO(z.read(CLIP)))

lines = []
for container, kind, to, channels in FORMATS:
    name = f"{container}-{kind}-{to}-{channels}".lower()
    x = soxr.resample(speech, rate, to, "VHQ") if to != rate else speech
    # The channels differ in level and delay, so that a wrong order or mean is detected.
    x = np.stack([np.roll(x, 7 * c) * (0.9 - 0.1 * c) for c in range(channels)], axis=1)
    file = out / "wavs" / (name + (".flac" if container == "FLAC" else ".wav"))
    soundfile.write(file, x, to, kind, format=container)

    x, _ = soundfile.read(file, dtype="float64", always_2d=True)
    total = np.zeros(len(x))
    for c in range(channels):
        total = total + x[:, c]
    mono = (total / channels).astype("<f4")
    mono.tofile(out / "reference" / f"{name}.f32")
    for target in TARGETS:
        if target != to:
            soxr.resample(mono.astype("float64"), to, target, "HQ").astype("<f4").tofile(
                out / "reference" / f"{name}-{target}.f32")
    lines.append(f"{name}|speech")
(out / "metadata.csv").write_text("\n".join(lines) + "\n")
