"""Recordings, for stages that mix in noise or impulse responses. Needs soundfile and soxr: pip install xtts_plugin[audio].

    from xtts_plugin import audio

    noise = audio.read("street.ogg", config.features["sample_rate"])

Go's SDK reads the same formats: WAV, FLAC, Ogg Vorbis, Ogg Opus and MP3. At a file's own rate, WAV and FLAC have the
same bits there. Lossy formats are decoded, and others resampled, by other libraries (docs/audio.md).
"""
import os
import shlex
import stat

import numpy as np

from .errors import UserError

MIN_RATE, MAX_RATE = 4000, 384000  # Hz, of files and of results
MAX_SECONDS = 3600  # of a file: read parts of a longer one with soundfile.SoundFile
_LOUDEST = 8.0  # the largest sample of a float file, 18 dB over full scale: what is beyond is no overshoot


def read(path, rate):
    """A whole file as mono float32 samples at a rate in Hz, in -1..1: the mean of the channels, resampled.

    A file that cannot be read is a UserError that names it and says why.
    """
    path = os.fspath(path)
    if not MIN_RATE <= rate <= MAX_RATE:
        raise ValueError(f"a sample rate of {rate} Hz was asked for, outside {MIN_RATE}..{MAX_RATE}")
    soundfile, soxr = _library("soundfile"), _library("soxr")
    try:
        if not stat.S_ISREG(os.stat(path).st_mode):  # a pipe would wait for a writer
            raise UserError(f"{path}: not a regular file", "name a recording")
        with soundfile.SoundFile(path) as file:
            own = file.samplerate
            _check(path, own, file.frames)
            channels = file.read(dtype="float64", always_2d=True).T
    except OSError as e:
        raise UserError(f"{path}: {e.strerror}", "name a recording that can be read") from e
    except soundfile.SoundFileError as e:
        new = os.path.splitext(path)[0] + (".new.flac" if path.lower().endswith(".flac") else ".flac")
        hint = f"convert with: ffmpeg -i {shlex.quote(path)} -c:a flac {shlex.quote(new)}, or remove the file"
        raise UserError(f"{path}: {getattr(e, 'error_string', e)}", hint) from e
    total = np.zeros(channels.shape[1])
    for channel in channels:  # in order, as Go's SDK adds them
        if not np.abs(channel).max(initial=0) <= _LOUDEST:
            raise UserError(f"{path}: samples are not finite, or beyond {_LOUDEST:g} times full scale",
                            "record it again, or remove the file")
        total += channel
    mono = (total / len(channels)).astype(np.float32)
    if own != rate:
        length = -(-len(mono) * rate // own)
        mono = soxr.resample(mono, own, rate, "HQ")[:length]
        mono = np.pad(mono, (0, length - len(mono)))  # soxr may round the length down
    return np.clip(mono, -1, 1)


def _check(path, rate, frames):
    reason = ""
    if frames == 0:
        reason = "the audio has no samples"
    elif not MIN_RATE <= rate <= MAX_RATE:
        reason = f"sample rate of {rate} Hz is outside {MIN_RATE}..{MAX_RATE}"
    elif frames > MAX_SECONDS * rate:
        reason = f"it has {frames // rate} s, more than {MAX_SECONDS}"
    if reason:
        raise UserError(f"{path}: {reason}", "name another recording, cut this one, or remove the file")


def _library(name):
    try:
        return __import__(name)
    except (ImportError, OSError) as e:  # soundfile raises OSError without libsndfile
        raise UserError(f"xtts_plugin.audio needs {name}, which the Python that runs the plugin does not have",
                        "add soundfile and soxr to the plugin's requirements.txt, and run make in its folder") from e
