"""Writes golden.json: what other programs compute of the signals of the stages' tests.

    python3 -m venv venv && venv/bin/pip install numpy==2.4.6 scipy==1.17.1 librosa==0.11.0 pyloudnorm==0.2.0 \\
        pyroomacoustics==0.10.1
    venv/bin/python make_golden.py

Python 3.11: its audioop has the codec of ITU-T G.711. Numbers have 9 digits.
"""

import json
import math
import pathlib
import warnings

import librosa
import numpy as np
import pyloudnorm
import pyroomacoustics
import scipy.signal

warnings.simplefilter("ignore", DeprecationWarning)
import audioop  # noqa: E402

RATE = 22050


def noise(n):
    out, s = np.empty(n), 1
    for i in range(n):
        s = (1103515245 * s + 12345) & 0x7FFFFFFF
        out[i] = np.float32(s / (1 << 30) - 1)
    return out


def sine(n, hz, amplitude, rate):
    return np.float32(amplitude * np.sin(2 * np.pi * hz * np.arange(n) / rate)).astype(float)


def steps(rate, *levels):
    """A sine of 1 kHz: (seconds, dBFS), one after the other."""
    return np.concatenate([sine(round(s * rate), 1000, 10 ** (db / 20), rate) for s, db in levels])


def equalizer():
    """scipy designs Butterworth filters, and peaks from the bandwidth; the shelves are those of the cookbook."""
    x, out = noise(200), {}
    for kind, args in {"lowpass": (2, 1000, "low"), "highpass": (2, 1000, "high")}.items():
        out[kind] = scipy.signal.sosfilt(scipy.signal.butter(*args, fs=RATE, output="sos"), x)
    telephone = [scipy.signal.butter(4, hz, kind, fs=RATE, output="sos") for hz, kind in [(300, "high"), (3400, "low")]]
    out["telephone"] = scipy.signal.sosfilt(np.concatenate(telephone), x)
    out["bandpass"] = scipy.signal.lfilter(*scipy.signal.iirpeak(1000, q_of_iirpeak(1000, 0.7), fs=RATE), x)
    w, g = 2 * math.pi * 1000 / RATE, 10 ** (6 / 40)
    c, alpha = math.cos(w), math.sin(w) / (2 * 0.7)
    s = 2 * math.sqrt(g) * alpha
    out["peaking"] = scipy.signal.lfilter([1 + alpha * g, -2 * c, 1 - alpha * g], [1 + alpha / g, -2 * c, 1 - alpha / g], x)
    for kind, sign in {"lowshelf": 1, "highshelf": -1}.items():
        c = sign * math.cos(w)  # one shelf is the other with the frequency axis turned round
        b = np.array([g * (g + 1 - (g - 1) * c + s), 2 * g * (g - 1 - (g + 1) * c), g * (g + 1 - (g - 1) * c - s)])
        a = np.array([g + 1 + (g - 1) * c + s, -2 * (g - 1 + (g + 1) * c), g + 1 + (g - 1) * c - s])
        turn = np.array([1, sign, 1])
        out[kind] = scipy.signal.lfilter(b * turn, a * turn, x)
    return out


def q_of_iirpeak(hz, q):
    """The Q that gives iirpeak the bandwidth of the cookbook, which is warped: tan(bandwidth/2) is sin(w)/(2q)."""
    w = 2 * math.pi * hz / RATE
    return w / (2 * math.atan(math.sin(w) / (2 * q)))


def clipping():
    x = noise(100)
    t = np.max(np.abs(x)) * 10 ** (-6 / 20)
    return {"hard": np.clip(x, -t, t), "soft": t * np.tanh(x / t)}


def companding():
    x = noise(300)
    pcm = np.clip(np.round(x * 32768), -32768, 32767).astype("<i2").tobytes()
    out = {}
    out["g711-a"] = np.frombuffer(audioop.alaw2lin(audioop.lin2alaw(pcm, 2), 2), "<i2") / 32768
    mu = bytes(ulaw_compress(v) for v in np.frombuffer(pcm, "<i2").tolist())
    out["g711-mu"] = np.frombuffer(audioop.ulaw2lin(mu, 2), "<i2") / 32768
    # Six bits: 63 levels about 0. librosa has the law without the rounding.
    levels = np.round(librosa.mu_compress(x, mu=255, quantize=False) * 31) / 31
    out["continuous-mu"] = librosa.mu_expand(levels, mu=255, quantize=False)
    a, whole = 87.6, 1 + math.log(87.6)
    y = np.where(np.abs(x) < 1 / a, a * np.abs(x), 1 + np.log(np.maximum(a * np.abs(x), 1e-9))) / whole
    y = np.round(y * 31) / 31
    out["continuous-a"] = np.sign(x) * np.where(y < 1 / whole, y * whole / a, np.exp(y * whole - 1) / a)
    return out


def ulaw_compress(sample):
    """ulaw_compress of ITU-T G.191. audioop differs from it in 508 samples, which are negative and at a threshold."""
    magnitude = min((((~sample if sample < 0 else sample) >> 2) + 33), 0x1FFF)
    segment = 1 + (magnitude >> 6).bit_length()
    code = (8 - segment) << 4 | 15 - (magnitude >> segment & 15)
    return code | (0x80 if sample >= 0 else 0)


def loudness():
    """What pyloudnorm measures, in LUFS, at several rates. Its default filters differ from those of BS.1770-4, DeMan are these."""
    out = {}
    for rate in [16000, 22050, 24000, 44100, 48000]:
        t = np.arange(3 * rate) / rate
        x = np.float32(0.3 * np.sin(2 * np.pi * 220 * t) * (t % 1 < 0.6) + 0.05 * np.sin(2 * np.pi * 3000 * t)).astype(float)
        out[str(rate)] = pyloudnorm.Meter(rate, filter_class="DeMan").integrated_loudness(x)
    return out


def trim():
    x = np.concatenate([0.001 * noise(9000), noise(12000), 0.001 * noise(7000)])
    _, (start, end) = librosa.effects.trim(x, top_db=40, frame_length=2048, hop_length=512)
    return {"start": int(start), "end": int(end)}


def shift():
    x = noise(50)
    return {"later": np.roll(x, 7), "earlier": np.roll(x, -7)}


def reverb():
    """The start of a convolution whose response has its peak at sample 40, with the power of the row."""
    x, h = noise(3000), noise(500) * np.exp(-np.arange(500) / 80)
    h = np.round(h * 0.5 * 32768) / 32768  # a recording of 16 bits
    h[40] = -0.9375
    y = scipy.signal.fftconvolve(x, h)[40:3040]
    return (y * np.sqrt(np.sum(x**2) / np.sum(y**2)))[::20]


def room():
    """pyroomacoustics finds the images, this adds them up. The places are those of the test."""
    rate, rt60, half = 8000, 0.1, 16
    size, speaker, microphone = [4.1, 3.2, 2.7], [1.0, 2.1, 1.4], [2.9, 0.8, 1.1]
    volume, surface = math.prod(size), 2 * (size[0] * size[1] + size[1] * size[2] + size[2] * size[0])
    reflection = math.exp(-12 * math.log(10) / 343 * volume / (surface * rt60))
    box = pyroomacoustics.ShoeBox(size, fs=rate, materials=pyroomacoustics.Material(1 - reflection**2), max_order=45)
    box.set_sound_speed(343.0)
    box.add_source(speaker)
    box.add_microphone(microphone)
    box.image_source_model()
    source = box.sources[0]
    distances = np.linalg.norm(source.images - np.array(microphone)[:, None], axis=0)
    direct = math.dist(speaker, microphone)
    out = np.zeros(int(rt60 * rate) + 2 * half)
    n = np.arange(len(out))
    for distance, gain in zip(distances, source.damping[0]):
        if distance <= direct + (len(out) - 2 * half) * 343 / rate:
            t = n - half - (distance - direct) / 343 * rate
            out += gain / distance * np.where(np.abs(t) < half, 0.5 * (1 + np.cos(np.pi * t / half)) * np.sinc(t), 0)
    return {"reflection": reflection, "response": out[::2]}


def specaugment():
    """12 frames of 2 bands: frame 5 moves to 8, or frame 7 to 2."""
    mel = noise(24).reshape(12, 2)
    out = {}
    for name, (source, target) in {"later": (5, 8), "earlier": (7, 2)}.items():
        places = np.interp(np.arange(12), [0, target, 11], [0, source, 11])
        out[name] = np.stack([np.interp(places, np.arange(12), mel[:, band]) for band in range(2)], 1).ravel()
    return out


STAGES = [equalizer, clipping, companding, loudness, trim, shift, reverb, room, specaugment]


def rounded(v):
    if isinstance(v, dict):
        return {k: rounded(x) for k, x in v.items()}
    if isinstance(v, (list, tuple, np.ndarray)):
        return [rounded(x) for x in v]
    return v if isinstance(v, int) else float(f"{v:.9g}")


if __name__ == "__main__":
    lines = [f"{json.dumps(f.__name__)}: {json.dumps(rounded(f()), separators=(',', ':'))}" for f in STAGES]
    pathlib.Path(__file__).with_name("golden.json").write_text("{\n" + ",\n".join(lines) + "\n}\n")
