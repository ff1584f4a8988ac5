"""The effects of the libraries that bench.py compares with the stages of the same names: functions of a clip."""

import importlib

import numpy as np

MODULES = {"audiomentations": "audiomentations", "librosa": "librosa", "torchaudio": "torchaudio",
           "pyroomacoustics": "pyroomacoustics"}


def effects_of(folder, rate):
    """effect -> library -> function, for the libraries that are installed."""
    all_ = {name: {} for name in NAMES}
    for library, module in MODULES.items():
        try:
            importlib.import_module(module)
        except ImportError:
            continue
        for name, function in globals()[library](folder, rate).items():
            all_[name][library] = function
    return all_


NAMES = ["gain", "loudness", "noise-white", "noise-pink", "background", "reverb", "room", "equalizer-peaking", "equalizer-seven",
         "telephone", "clipping-hard", "clipping-soft", "companding-g711", "companding-mu", "shift", "trim", "dropout", "speed", "tempo",
         "pitch", "chain-six", "chain-of-librosa"]


def audiomentations(folder, rate):
    import audiomentations as a

    def of(*transforms):
        chain = a.Compose(list(transforms))
        return lambda clip: chain(clip, sample_rate=rate)

    seven = a.SevenBandParametricEQ(min_gain_db=-10, max_gain_db=6, p=1)
    reverb = a.ApplyImpulseResponse(f"{folder}/response", p=1)
    room = a.RoomSimulator(
        min_size_x=3, max_size_x=8, min_size_y=2.5, max_size_y=6, min_size_z=2.4, max_size_z=3.5, max_source_x=3, max_source_y=2.5,
        calculation_mode="rt60", min_target_rt60=0.15, max_target_rt60=0.6, use_ray_tracing=False, max_order=12,
        leave_length_unchanged=True, p=1)
    return {
        "gain": of(a.Gain(p=1)),
        "loudness": of(a.LoudnessNormalization(p=1)),
        "noise-white": of(a.AddGaussianSNR(p=1)),
        "noise-pink": of(a.AddColorNoise(min_f_decay=-3.01, max_f_decay=-3.01, p=1)),
        "background": of(a.AddBackgroundNoise(f"{folder}/noise", p=1)),
        "reverb": of(reverb),
        "room": of(room),
        "equalizer-peaking": of(a.PeakingFilter(p=1)),
        "equalizer-seven": of(seven),
        "telephone": of(a.HighPassFilter(300, 300, 24, 24, p=1), a.LowPassFilter(3400, 3400, 24, 24, p=1)),
        "clipping-hard": of(a.ClippingDistortion(p=1)),
        "clipping-soft": of(a.TanhDistortion(p=1)),
        "shift": of(a.Shift(rollover=True, fade_duration=0, p=1)),
        "trim": of(a.Trim(top_db=40, p=1)),
        "dropout": of(a.TimeMask(max_band_part=0.016, fade_duration=0, p=1)),
        "speed": of(a.Resample(round(rate / 1.1), round(rate / 1.1), p=1)),
        "tempo": of(a.TimeStretch(1.1, 1.1, leave_length_unchanged=False, p=1)),
        "pitch": of(a.PitchShift(2, 2, p=1)),
        "chain-six": of(a.Gain(p=1), seven, a.AddGaussianSNR(p=1), reverb, a.TanhDistortion(p=1), a.LoudnessNormalization(p=1)),
    }


def librosa(folder, rate):
    import librosa as l

    def mu(clip):
        return l.mu_expand(l.mu_compress(clip, mu=255, quantize=True), mu=255, quantize=True)

    def speed(clip):
        return l.resample(clip, orig_sr=110, target_sr=100)

    def tempo(clip):
        return l.effects.time_stretch(clip, rate=1.1)

    def pitch(clip):
        return l.effects.pitch_shift(clip, sr=rate, n_steps=2)

    def trim(clip):
        return l.effects.trim(clip, top_db=40)[0]

    return {
        "gain": l.util.normalize,
        "companding-mu": mu,
        "trim": trim,
        "speed": speed,
        "tempo": tempo,
        "pitch": pitch,
        "chain-of-librosa": lambda clip: l.util.normalize(mu(pitch(tempo(speed(trim(clip)))))),
    }


def torchaudio(folder, rate):
    import scipy.io.wavfile
    import torch
    import torchaudio.functional as f
    import torchaudio.transforms as transforms

    torch.set_num_threads(1)
    read = {name: torch.from_numpy(scipy.io.wavfile.read(f"{folder}/{name}/0.wav")[1].astype(np.float32) / 32768)
            for name in ["noise", "response"]}
    loudness = transforms.Loudness(rate)
    pitch_shift = transforms.PitchShift(rate, 2)

    def of(function):
        def call(clip):
            with torch.inference_mode():
                return function(torch.from_numpy(clip)).numpy()
        return call

    def white(x):
        return f.add_noise(x[None], torch.randn(1, len(x)), torch.tensor([20.0]))[0]

    def reverb(x):
        return f.fftconvolve(x, read["response"])[: len(x)]

    def seven(x):
        for hz in [100, 200, 400, 800, 1600, 3200, 6400]:
            x = f.equalizer_biquad(x, rate, hz, 4.0, 1.0)
        return x

    def telephone(x):
        for q in [0.541, 1.307]:
            x = f.lowpass_biquad(f.highpass_biquad(x, rate, 300.0, q), rate, 3400.0, q)
        return x

    def level(x):
        return f.gain(x, float(-23 - loudness(x[None])))

    return {
        "gain": of(lambda x: f.gain(x, 3.0)),
        "loudness": of(level),
        "noise-white": of(white),
        "background": of(lambda x: f.add_noise(x[None], read["noise"][None, 1000 : 1000 + len(x)], torch.tensor([20.0]))[0]),
        "reverb": of(reverb),
        "equalizer-peaking": of(lambda x: f.equalizer_biquad(x, rate, 1000.0, 4.0, 1.0)),
        "equalizer-seven": of(seven),
        "telephone": of(telephone),
        "clipping-hard": of(lambda x: torch.clamp(x, -0.2, 0.2)),
        "clipping-soft": of(lambda x: 0.2 * torch.tanh(x / 0.2)),
        "companding-mu": of(lambda x: f.mu_law_decoding(f.mu_law_encoding(x, 256), 256)),
        "shift": of(lambda x: torch.roll(x, 1000)),
        "speed": of(lambda x: f.resample(x, 110, 100)),
        "pitch": of(pitch_shift),
        "chain-six": of(lambda x: level(0.2 * torch.tanh(reverb(white(seven(f.gain(x, 3.0)))) / 0.2))),
    }


def pyroomacoustics(folder, rate):
    import pyroomacoustics as p
    import scipy.signal

    generator = np.random.default_rng(1)

    def room(clip):
        """As the stage: every image up to the reverberation time."""
        size = generator.uniform([3, 2.5, 2.4], [8, 6, 3.5])
        rt60 = generator.uniform(0.15, 0.6)
        absorption, _ = p.inverse_sabine(max(rt60, 0.2), size)
        order = int(np.ceil(343 * rt60 / min(size)))
        box = p.ShoeBox(size, fs=rate, materials=p.Material(absorption), max_order=order)
        box.add_source(generator.uniform(0.5, size - 0.5))
        box.add_microphone(generator.uniform(0.5, size - 0.5))
        box.compute_rir()
        return scipy.signal.fftconvolve(clip, box.rir[0][0].astype(np.float32))[: len(clip)]

    return {"room": room}
