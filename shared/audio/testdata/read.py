"""read.py FOLDER RATE FILE ...: writes recordings into FOLDER, and the samples of all there and of each FILE that xtts_plugin.audio
reads at RATE, or at the file's own if that is 0: NAME.f32, which begins with the file's own rate. python_test.go compares them.
"""
import pathlib
import sys

import numpy as np
import soundfile

from xtts_plugin import audio

folder, rate = pathlib.Path(sys.argv[1]), int(sys.argv[2])
random = np.random.default_rng(1)
for subtype in ("PCM_U8", "PCM_16", "PCM_24", "PCM_32", "FLOAT", "DOUBLE", "ULAW", "ALAW"):
    for channels in (1, 2, 11):
        noise = random.uniform(-1, 1, (4000, channels)) * np.sin(np.linspace(0, 3, 4000))[:, None]
        soundfile.write(folder / f"{subtype}-{channels}.wav", noise, 16000, subtype=subtype)
for file in [*map(pathlib.Path, sys.argv[3:]), *folder.glob("*.wav")]:
    own = soundfile.info(file).samplerate
    (folder / f"{file.name}.f32").write_bytes(np.float32(own).tobytes() + audio.read(file, rate or own).tobytes())
