"""Times the heavy stages of plugins/augment on a GPU, by PyTorch alone, for 16 clips of 5 s at 22,050 Hz in float32.

    python3 scripts/bench_augment/gpu.py [--device cuda] [--repeats 50] > gpu.json

The clips begin and end in the memory of the host, which is pinned for a GPU. "whole" is the time of the copy to the
GPU, the computation and the copy back, "device" that of the computation alone, and "copies" that of the two copies
alone. Times are in ms for all clips: the median of the repeats, with the least and the greatest, and the 10th and 90th
percentile. Filters and responses are on the GPU before: a run would need memory there for all responses of its folder.

Before it measures an effect, the script compares it with its formula, and fails if they differ.
"""

import argparse
import json
import math
import statistics
import time

import torch

RATE, SECONDS, CLIPS = 22050, 5, 16
SAMPLES = RATE * SECONDS


def smooth(n):
    """The least number from n on whose prime factors are at most 7: FFTs of such sizes are fast."""
    while True:
        rest = n
        for factor in [2, 3, 5, 7]:
            while rest % factor == 0:
                rest //= factor
        if rest == 1:
            return n
        n += 1


class Reverb:
    """Convolution with a response of 1 s for each clip, which keeps the power, by FFTs of the whole clip."""

    def __init__(self, device):
        n = torch.arange(RATE)
        noise = torch.rand(CLIPS, RATE, generator=torch.Generator().manual_seed(1)) * 2 - 1
        self.responses = (0.5 * noise * torch.exp(-6.9 * n / RATE)).to(device)
        self.responses[:, 0] = 0.99
        self.size = smooth(SAMPLES + RATE - 1)

    def __call__(self, x):
        spectrum = torch.fft.rfft(x, self.size) * torch.fft.rfft(self.responses, self.size)
        y = torch.fft.irfft(spectrum, self.size)[:, : x.shape[1]]
        return y * torch.sqrt(x.square().sum(1, keepdim=True) / y.square().sum(1, keepdim=True))

    def check(self, x, y):
        power = y.double().square().sum(1) / x.double().square().sum(1)
        at = torch.tensor([0, 100, RATE + 7, SAMPLES - 1])
        x, h, y = x[0].double().cpu(), self.responses[0].double().cpu(), y[0].double().cpu()
        want = torch.stack([x[max(0, i - RATE + 1) : i + 1] @ h[: i + 1].flip(0) for i in at.tolist()])
        gain = y[at[2]] / want[2]
        return max(float((power - 1).abs().max()), float((y[at] - gain * want).abs().max()))


class Speed:
    """A speed of 1.1, by the filter of the stage "speed": 10 phases of a Kaiser-windowed sinc, 11 samples apart."""

    up, down, half = 10, 11, 27

    def __init__(self, device):
        window, cut, beta = 24 * self.down / self.up, self.up / self.down, 0.1102 * (90 - 8.7)
        offsets = [p * self.down // self.up for p in range(self.up)]
        weight = torch.zeros(self.up, 2 * self.half + offsets[-1], dtype=torch.float64)
        for p, offset in enumerate(offsets):
            t = torch.arange(2 * self.half, dtype=torch.float64) - self.half + 1 - p * self.down % self.up / self.up
            kaiser = torch.special.i0(beta * torch.sqrt((1 - (t / window) ** 2).clamp(min=0))) / torch.special.i0(
                torch.tensor(beta, dtype=torch.float64))
            taps = torch.sinc(cut * t) * kaiser * (t.abs() < window)
            weight[p, offset : offset + 2 * self.half] = taps / taps.sum()
        self.weight = weight[:, None].to(device, torch.float32)

    def __call__(self, x):
        x = torch.nn.functional.pad(x[:, None], (self.half - 1, self.half + 2 * self.down))
        y = torch.nn.functional.conv1d(x, self.weight, stride=self.down)
        return y.transpose(1, 2).reshape(len(y), -1)[:, : -(-SAMPLES * self.up // self.down)]

    def check(self, x, y):
        t = torch.arange(SAMPLES, dtype=torch.float64)
        sine = torch.sin(2 * math.pi * 440 / RATE * t)
        got = self(sine.to(x.device, torch.float32).expand(CLIPS, -1))[0].double().cpu()
        want = torch.sin(2 * math.pi * 440 / RATE * 1.1 * t[: len(got)])
        return float((got - want)[100:-100].abs().max())


class Tempo:
    """A tempo of 1.1 by a phase vocoder of 2048 samples every 512, as librosa's time_stretch.

    The stage "tempo" has WSOLA instead, of which each block waits for the one before.
    """

    size, hop, tempo = 2048, 512, 1.1

    def __init__(self, device):
        self.window = torch.hann_window(self.size, device=device)
        self.advance = (math.pi * self.hop * torch.linspace(0, 1, self.size // 2 + 1, device=device))[:, None]

    def __call__(self, x):
        spectrum = torch.stft(x, self.size, self.hop, window=self.window, return_complex=True)
        times = torch.arange(0, spectrum.shape[2], self.tempo, device=x.device)
        at, between = times.long(), times % 1
        spectrum = torch.nn.functional.pad(spectrum, (0, 2))
        a, b = spectrum[:, :, at], spectrum[:, :, at + 1]
        turn = b.angle() - a.angle() - self.advance
        turn = turn - 2 * math.pi * torch.round(turn / (2 * math.pi)) + self.advance
        phase = torch.cat([a.angle()[:, :, :1], turn[:, :, :-1]], 2).cumsum(2)
        stretched = torch.polar((1 - between) * a.abs() + between * b.abs(), phase)
        return torch.istft(stretched, self.size, self.hop, window=self.window, length=round(SAMPLES / self.tempo))

    def check(self, x, y):
        """A sine keeps its frequency and level."""
        hz = 50 * RATE / self.size
        sine = torch.sin(2 * math.pi * hz / RATE * torch.arange(SAMPLES, dtype=torch.float64))
        got = self(sine.to(x.device, torch.float32).expand(CLIPS, -1))[0].double().cpu()[5000:-5000]
        turns = torch.exp(-2j * math.pi * hz / RATE * torch.arange(len(got), dtype=torch.float64))
        return abs(float((got * turns).mean().abs()) - 0.5)


def synchronize(device):
    if device.type == "cuda":
        torch.cuda.synchronize(device)


def timed(function, device, repeats):
    """Median, extremes and percentiles of the times of a function, after five calls that are not measured."""
    times = []
    for i in range(repeats + 5):
        synchronize(device)
        began = time.perf_counter()
        function()
        synchronize(device)
        if i >= 5:
            times.append(1000 * (time.perf_counter() - began))
    times.sort()
    names = {"median": statistics.median(times), "min": times[0], "max": times[-1],
             "p10": times[len(times) // 10], "p90": times[len(times) * 9 // 10]}
    return {name: round(value, 4) for name, value in names.items()}


def measure(effect, host, device, repeats):
    clips = host.to(device)
    result = effect(clips)
    error = effect.check(clips, result)
    if not error < 1e-3:
        raise SystemExit(f"{type(effect).__name__}: the result differs from the formula by {error}")
    out = torch.empty(result.shape, pin_memory=device.type == "cuda")

    def copies():
        clips.copy_(host, non_blocking=True)
        out.copy_(result, non_blocking=True)

    def whole():
        clips.copy_(host, non_blocking=True)
        out.copy_(effect(clips), non_blocking=True)

    return {"error": error, "whole": timed(whole, device, repeats),
            "device": timed(lambda: effect(clips), device, repeats), "copies": timed(copies, device, repeats)}


def main():
    arguments = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    arguments.add_argument("--device", default="cuda")
    arguments.add_argument("--repeats", type=int, default=50)
    given = arguments.parse_args()
    device = torch.device(given.device)
    torch.backends.cudnn.allow_tf32 = False  # float32, as in the stages
    host = torch.rand(CLIPS, SAMPLES, generator=torch.Generator().manual_seed(2)) - 0.5
    name = "CPU"
    if device.type == "cuda":
        host, name = host.pin_memory(), torch.cuda.get_device_name(device)
    with torch.inference_mode():
        ms = {e.__name__.lower(): measure(e(device), host, device, given.repeats) for e in [Reverb, Speed, Tempo]}
    print(json.dumps({"device": name, "torch": torch.__version__, "clips": CLIPS, "samples": SAMPLES, "rate": RATE,
                      "repeats": given.repeats, "threads": torch.get_num_threads(), "ms": ms}, indent=1))


if __name__ == "__main__":
    main()
