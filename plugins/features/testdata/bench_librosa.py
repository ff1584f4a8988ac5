"""Measures how fast librosa computes the features of the two BenchmarkCompute: 5 s of audio, contract of myxtts-nano, one thread.

Run with OMP_NUM_THREADS=1; prints seconds of audio per second, the median of 30 runs.
"""

import statistics
import time

import librosa
import numpy as np

RATE, SECONDS = 22050, 5
wave = np.random.default_rng(0).standard_normal(RATE * SECONDS, dtype=np.float32) * np.float32(0.1)


def mel() -> np.ndarray:
    power = librosa.feature.melspectrogram(
        y=wave, sr=RATE, n_fft=1024, hop_length=256, win_length=1024, window="hann", center=True, pad_mode="constant",
        power=1.0, n_mels=80, fmin=0, fmax=11025, htk=False, norm="slaney",
    )
    return (np.log(np.maximum(power, 1e-5)) + 5.6) / 2.8


def prosody() -> tuple[np.ndarray, np.ndarray]:
    f0 = librosa.yin(wave, fmin=65, fmax=1000, sr=RATE, frame_length=1360, hop_length=256, trough_threshold=0.15)
    rms = librosa.feature.rms(y=wave, frame_length=1360, hop_length=256)
    return np.log(f0), np.log(np.maximum(rms, 1e-5))


for work in (mel, prosody):
    work()
    times = []
    for _ in range(30):
        start = time.perf_counter()
        work()
        times.append(time.perf_counter() - start)
    print(f"librosa {librosa.__version__}, {work.__name__}: {SECONDS / statistics.median(times):.0f} audio seconds per second")
