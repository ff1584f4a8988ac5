"""Tensors that `forward` keeps for the next call"""

import functools
import math

import torch
from torch import nn

from .case import WIDTH, Case
from .spectrum import _Wave
from .statistics import MovingAverage, _Linear

banks, windows = {}, {}


class KeptPositions(_Linear):
    """a table of positions in an attribute that `forward` fills, and fills again for a longer batch (`extend_pe`, rotary caches)"""

    def __init__(self):
        super().__init__()
        self.table = None

    def extend(self, x):
        if self.table is not None and self.table.shape[1] >= x.shape[1]:
            return
        angles = torch.arange(x.shape[1])[:, None] * torch.exp(torch.arange(0, WIDTH, 2) * -(math.log(1e4) / WIDTH))
        self.table = torch.stack([angles.sin(), angles.cos()], -1).flatten(1)[None].to(x.device, x.dtype)

    def forward(self, x):
        self.extend(x)
        return self.linear(x) + self.table[:, :x.shape[1]]


class KeptBanks(_Wave):
    """a mel loss whose filter bank and window are made once, in global dicts (`mel_spectrogram_torch` of HiFi-GAN and VITS)"""

    def mel(self, wave):
        key = str(wave.device)
        if key not in banks:
            banks[key] = (torch.arange(9) - torch.arange(6)[:, None]).abs().neg().exp().to(wave.device)
            windows[key] = torch.hann_window(16).to(wave.device)
        wave = nn.functional.pad(wave[:, None], (6, 6), mode="reflect").squeeze(1)
        z = torch.view_as_real(torch.stft(wave, 16, 4, 16, windows[key], center=False, return_complex=True))
        return torch.log(torch.clamp(banks[key] @ (z.square().sum(-1) + 1e-6).sqrt(), min=1e-5))

    def error(self, y, wave):
        return (self.mel(y) - self.mel(wave)).abs().mean((1, 2))


@functools.lru_cache(maxsize=None)
def ramp(count: int) -> torch.Tensor:
    return torch.arange(count).cos()


class OtherKept(_Linear):
    """masks in a dict of the module, a table by `functools.lru_cache`, a buffer that `forward` registers, attention weights in an attribute and in a list"""

    def __init__(self):
        super().__init__()
        self.masks, self.weights, self.history = {}, None, []
        self.register_buffer("slope", None)

    def forward(self, x):
        key = f"{x.shape[1]}"
        if key not in self.masks:
            self.masks[key] = torch.full((x.shape[1], x.shape[1]), -1e9).triu(1)
        if self.slope is None:
            self.slope = torch.full((WIDTH,), 0.5)
        y = self.linear(x) * ramp(WIDTH) * self.slope
        self.weights = torch.softmax(y @ y.mT + self.masks[key], -1)
        self.history.append(self.weights.detach())
        return self.weights @ y


def filtered(x, bank={}):  # noqa: B006
    key = f"{x.shape[-1]}_{x.device}"
    if key not in bank:
        bank[key] = (torch.arange(WIDTH) - torch.arange(WIDTH)[:, None]).abs().neg().exp().to(x.device)
    return x @ bank[key]


def slopes():
    table = None

    def slope(x):
        nonlocal table
        if table is None:
            table = torch.linspace(0.5, 1, WIDTH).to(x.device)
        return x * table
    return slope


@functools.lru_cache(maxsize=4)
def places(count: int) -> torch.Tensor:
    return torch.arange(count)[:, None] / count


class HeldTables(_Linear):
    """tables in a default argument (`def mel(x, fb={})`), a variable of a closure, a dict and an attribute of a class; of a length: by `functools.lru_cache`, and in a dict with the length as the key"""

    windows, ramp = {}, None

    def __init__(self):
        super().__init__()
        self.slope = slopes()

    def forward(self, x):
        count = x.shape[1]
        if count not in HeldTables.windows:
            HeldTables.windows[count] = torch.hann_window(WIDTH)
        if type(self).ramp is None:
            type(self).ramp = torch.arange(WIDTH).cos()
        return self.slope(filtered(self.linear(x))) * self.windows[count] * self.ramp + places(count)


class ClassAverage(_Linear):
    """a moving average in an attribute of the class"""

    refused = "forward gives ClassAverage.mean another tensor, which outlives the step"
    way_out = MovingAverage
    mean = None

    def forward(self, x):
        now = x.detach().mean((0, 1))
        ClassAverage.mean = now if ClassAverage.mean is None else 0.9 * ClassAverage.mean + 0.1 * now  # blamed
        return self.linear(x) - ClassAverage.mean


def averaging():
    mean = None

    def average(x):
        nonlocal mean
        mean = x if mean is None else 0.9 * mean + 0.1 * x  # blamed
        return mean
    return average


class ClosureAverage(_Linear):
    """a moving average in a variable of a closure"""

    refused = "forward gives average.mean another tensor, which outlives the step"
    way_out = MovingAverage

    def __init__(self):
        super().__init__()
        self.average = averaging()

    def forward(self, x):
        return self.linear(x) - self.average(x.detach().mean((0, 1)))


class LazyAttribute(_Linear):
    """a moving average in an attribute that is `None` before the first call"""

    refused = "forward gives mean another tensor, which outlives the step"
    way_out = MovingAverage

    def __init__(self):
        super().__init__()
        self.mean = None

    def forward(self, x):
        if self.mean is None:
            self.mean = x.detach().mean((0, 1))  # blamed
        else:
            self.mean = 0.9 * self.mean + 0.1 * x.detach().mean((0, 1))
        return self.linear(x) - self.mean


class Counter(_Linear):
    """a number that counts calls, and decides how much something weighs"""

    refused = "forward changes calls from 0 to 1, and the next call has the new value"
    way_out = MovingAverage

    def __init__(self):
        super().__init__()
        self.calls = 0

    def forward(self, x):
        self.calls += 1  # blamed
        return self.linear(x) * min(1.0, self.calls / 1000)


class Queue(_Linear):
    """a queue of former batches in a list, as negatives or for a teacher"""

    refused = "forward gives queue another value, which outlives the step"
    way_out = MovingAverage

    def __init__(self):
        super().__init__()
        self.queue = []

    def forward(self, x):
        y = self.linear(x)
        for former in self.queue[-3:]:
            y = y + former
        self.queue.append(x.detach().mean((0, 1)))  # blamed
        return y


class _Average:
    """A helper that is no module."""

    def __init__(self):
        self.values = {}

    def update(self, name: str, x: torch.Tensor) -> torch.Tensor:
        self.values[name] = x if name not in self.values else 0.9 * self.values[name] + 0.1 * x  # blamed
        return self.values[name]


class HelperAverage(_Linear):
    """a moving average in an object that is no `nn.Module`"""

    refused = "forward gives average.values another tensor, which outlives the step"
    way_out = MovingAverage

    def __init__(self):
        super().__init__()
        self.average = _Average()

    def forward(self, x):
        return self.linear(x) - self.average.update("x", x.detach().mean((0, 1)))


class GivenAttribute(_Linear):
    """a moving average that is another tensor in each call, in an attribute that is no buffer"""

    refused = "forward gives mean another tensor, which outlives the step"
    way_out = MovingAverage

    def __init__(self):
        super().__init__()
        self.mean = torch.zeros(WIDTH)

    def forward(self, x):
        self.mean = 0.9 * self.mean + 0.1 * x.mean((0, 1))  # blamed
        return self.linear(x) - self.mean
