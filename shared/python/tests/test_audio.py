"""xtts_plugin.audio. shared/audio/python_test.go compares it with the reader of Go."""
import os
import shlex
import sys

import numpy as np
import pytest
import soundfile

from xtts_plugin import UserError, audio

RATE = 16000


def tone(seconds, rate=RATE, hz=440):
    return 0.5 * np.sin(2 * np.pi * hz / rate * np.arange(int(seconds * rate)))


@pytest.fixture
def stereo(tmp_path):
    path = tmp_path / "stereo.flac"
    left = np.round(tone(0.5) * 32768).astype(np.int16)
    soundfile.write(path, np.stack([left, -left // 2], axis=1), RATE, subtype="PCM_16")
    return path, ((left.astype(np.float64) + -left // 2) / 2 / 32768).astype(np.float32)


def test_own_rate(stereo):
    """The mean of the channels, to the bit."""
    got = audio.read(stereo[0], RATE)
    assert got.dtype == np.float32 and np.array_equal(got, stereo[1])


@pytest.mark.parametrize("own, rate", [(16000, 24000), (48000, 22050), (22050, 16000), (11025, 48000)])
def test_resampled(tmp_path, own, rate):
    """The tone at the other rate, but at its ends, with the length that the host gives a clip."""
    path, frames = tmp_path / "x.wav", int(0.5 * own) + 1
    soundfile.write(path, tone(1, own)[:frames], own, subtype="FLOAT")
    got = audio.read(str(path), rate)
    assert got.dtype == np.float32 and len(got) == -(-frames * rate // own)
    assert np.abs(got - tone(1, rate)[:len(got)])[1000:-1000].max() < 1e-4


def test_loud_float(tmp_path):
    path = tmp_path / "x.wav"
    soundfile.write(path, np.array([0.5, 1.5, -7.0]), RATE, subtype="FLOAT")
    assert audio.read(path, RATE).tolist() == [0.5, 1, -1]
    for bad in (np.nan, np.inf, -9):
        soundfile.write(path, np.array([0.5, bad]), RATE, subtype="FLOAT")
        with pytest.raises(UserError, match="x.wav: samples are not finite, or beyond 8 times"):
            audio.read(path, RATE)


def test_refused(tmp_path, stereo):
    """The message names the file and the reason, and has a hint."""
    empty, text, long, pipe = (tmp_path / name for name in ("empty.wav", "text.wav", "long.wav", "pipe"))
    soundfile.write(empty, np.zeros(0), RATE)
    text.write_text("hello")
    soundfile.write(long, np.zeros(3601 * 4000, np.int16), 4000, subtype="PCM_U8")
    os.mkfifo(pipe)
    slow = tmp_path / "slow.wav"
    soundfile.write(slow, np.zeros(9), 3999)
    for path, reason in ((empty, "no samples"), (text, "Format not recognised"), (long, "it has 3601 s, more than 3600"),
                         (pipe, "not a regular file"), (tmp_path, "not a regular file"), (slow, "3999 Hz is outside"),
                         (tmp_path / "nothing", "No such file")):
        with pytest.raises(UserError, match=reason) as e:
            audio.read(path, RATE)
        assert str(e.value).startswith(f"{path}: ") and e.value.hint
    for rate in (0, 3999, 400000):
        with pytest.raises(ValueError, match=f"sample rate of {rate} Hz"):
            audio.read(stereo[0], rate)


@pytest.mark.parametrize("name, new", [("a b.flac", "a b.new.flac"), ("x.wav", "x.flac")])
def test_damaged(tmp_path, name, new):
    """A good header is not enough. The hint is a command that can be used as it is."""
    path = tmp_path / name
    soundfile.write(path, np.random.default_rng(1).uniform(-0.3, 0.3, RATE), RATE, format="FLAC")
    data = bytearray(path.read_bytes())
    data[len(data) // 2:] = bytes(0xA5 ^ b for b in data[len(data) // 2:])
    path.write_bytes(data)
    with pytest.raises(UserError, match="flac decoder") as e:
        audio.read(path, RATE)
    assert str(e.value).startswith(f"{path}: ")
    assert e.value.hint == (f"convert with: ffmpeg -i {shlex.quote(str(path))} -c:a flac "
                            f"{shlex.quote(str(tmp_path / new))}, or remove the file")


@pytest.mark.parametrize("name", ["soundfile", "soxr"])
def test_library_missing(monkeypatch, stereo, name):
    monkeypatch.setitem(sys.modules, name, None)
    with pytest.raises(UserError, match=f"needs {name}") as e:
        audio.read(stereo[0], RATE)
    assert "requirements.txt" in e.value.hint
