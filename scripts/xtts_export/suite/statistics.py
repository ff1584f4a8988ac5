"""State: buffers that `forward` changes"""

import torch
import torch.nn.functional as F
from torch import nn

from .case import WIDTH, Case

CODES = 6


class _Linear(Case):
    def __init__(self):
        super().__init__()
        self.linear = nn.Linear(WIDTH, WIDTH)


class BatchNorms(_Linear):
    """`nn.BatchNorm1d` of [B, C, T], and of [B·T, C] after a `reshape(-1, C)`"""

    def __init__(self):
        super().__init__()
        self.norm, self.flat = nn.BatchNorm1d(WIDTH), nn.BatchNorm1d(WIDTH, momentum=0.3)

    def forward(self, x):
        y = self.norm(torch.tanh(self.linear(x)).transpose(1, 2)).transpose(1, 2)
        return x + self.flat(torch.sin(y).reshape(-1, WIDTH)).view(x.shape)


class OtherBatchNorms(_Linear):
    """`nn.BatchNorm1d` with `momentum=None`, with `affine=False`, with `track_running_stats=False`, in evaluation mode"""

    def __init__(self):
        super().__init__()
        self.cumulative, self.plain = nn.BatchNorm1d(WIDTH, momentum=None), nn.BatchNorm1d(WIDTH, affine=False)
        self.untracked, self.fixed = nn.BatchNorm1d(WIDTH, track_running_stats=False), nn.BatchNorm1d(WIDTH).eval()

    def forward(self, x):
        y = torch.tanh(self.linear(x)).transpose(1, 2)
        y = self.fixed(torch.sin(self.cumulative(y)) + self.plain(y.square()))
        return x + self.untracked(torch.sin(y)).transpose(1, 2)


class BatchNormOfImages(_Linear):
    """`nn.BatchNorm2d` of [B, C, T, F]"""

    def __init__(self):
        super().__init__()
        self.norm = nn.BatchNorm2d(2)

    def forward(self, x):
        y = torch.tanh(self.linear(x)).unflatten(-1, (2, -1)).transpose(1, 2)
        return x + self.norm(y).transpose(1, 2).flatten(2)


class SpectralNorms(_Linear):
    """`nn.utils.parametrizations.spectral_norm` of linear and convolution"""

    def __init__(self):
        super().__init__()
        self.linear = nn.utils.parametrizations.spectral_norm(self.linear)
        self.conv = nn.utils.parametrizations.spectral_norm(nn.Conv1d(WIDTH, WIDTH, 3, padding=1), n_power_iterations=2)

    def forward(self, x):
        return self.linear(x) + self.conv(x.transpose(1, 2)).transpose(1, 2)


class OldSpectralNorms(_Linear):
    """`nn.utils.spectral_norm`"""

    def __init__(self):
        super().__init__()
        self.linear = nn.utils.spectral_norm(self.linear)
        self.conv = nn.utils.spectral_norm(nn.Conv1d(WIDTH, WIDTH, 3, padding=1))

    def forward(self, x):
        return self.linear(x) + self.conv(x.transpose(1, 2)).transpose(1, 2)


class MovingAverage(_Linear):
    """a moving average in a buffer and a counter, written in place where `self.training`, of the rows that are not empty"""

    def __init__(self):
        super().__init__()
        self.register_buffer("mean", torch.zeros(WIDTH))
        self.register_buffer("batches", torch.tensor(0))

    def forward(self, x, lengths):
        y = self.linear(x)
        if self.training:
            with torch.no_grad():
                rows = (lengths > 0).float()[:, None]
                mean = (y.mean(1) * rows).sum(0) / rows.sum().clamp(min=1)
                self.batches += 1
                self.mean.mul_(0.9).add_(mean, alpha=0.1)
        return y - self.mean / (1 - 0.9 ** self.batches.clamp(min=1))


class AssignedAverage(_Linear):
    """a buffer that gets another tensor: `self.scale = 0.9 * self.scale + ...`, `self.last.data = ...`, and `self.log[0] = ...`"""

    def __init__(self):
        super().__init__()
        self.register_buffer("scale", torch.ones(1))
        self.register_buffer("last", torch.ones(()))
        self.register_buffer("log", torch.zeros(2))

    def forward(self, x, lengths):
        y = self.linear(x)
        rows = (lengths > 0).float()
        power = ((y.square().mean((1, 2)) * rows).sum() / rows.sum().clamp(min=1)).detach()
        self.scale = 0.9 * self.scale + 0.1 * power
        y = y + self.last
        self.last.data = power
        self.log[0] = power
        self.log[1] += power.sqrt()
        return y / self.scale + self.log[1]


class Codebook(_Linear):
    """a VQ codebook that follows its vectors by moving averages (`one_hot(...)` products, `.data.mul_`, `copy_`), straight through"""

    def __init__(self):
        super().__init__()
        codes = torch.randn(CODES, WIDTH)
        self.register_buffer("codes", codes)
        self.register_buffer("counts", torch.ones(CODES))
        self.register_buffer("sums", codes.clone())

    def forward(self, x, lengths):
        y = self.linear(x)
        distance = y.square().sum(-1, keepdim=True) - 2 * y @ self.codes.t() + self.codes.square().sum(-1)
        chosen = F.one_hot(distance.argmin(-1), CODES).float()
        quantized = chosen @ self.codes
        if self.training:
            valid = (torch.arange(x.shape[1])[None, :] < lengths[:, None]).float()[..., None]
            flat = (chosen * valid).reshape(-1, CODES)
            self.counts.data.mul_(0.9).add_(flat.sum(0), alpha=0.1)
            self.sums.data.mul_(0.9).add_(flat.t() @ y.detach().reshape(-1, WIDTH), alpha=0.1)
            self.codes.data.copy_(self.sums / (self.counts + 1e-5)[:, None])
        return y + (quantized - y).detach() + 0.1 * y


class BatchNormOfFrames(_Linear):
    """batch norm of [T, C, B], whose first axis is not the rows"""

    refused = "batch norm normalizes a tensor of 3 axes, whose first axis is not the rows of the batch"
    way_out = BatchNorms

    def __init__(self):
        super().__init__()
        self.norm = nn.BatchNorm1d(WIDTH)

    def forward(self, x):
        return self.norm(self.linear(x).permute(1, 2, 0)).permute(2, 0, 1)  # blamed


class TrackingInstanceNorm(_Linear):
    """`nn.InstanceNorm1d` with `track_running_stats=True`"""

    refused = "instance norm that keeps running statistics"
    way_out = BatchNorms

    def __init__(self):
        super().__init__()
        self.norm = nn.InstanceNorm1d(WIDTH, track_running_stats=True)

    def forward(self, x):
        return self.norm(self.linear(x).transpose(1, 2)).transpose(1, 2)  # blamed


class CountsEmptyRows(_Linear):
    """a moving average over all rows, empty ones too"""

    refused = "an empty row changes state.mean, where it must not count"
    way_out = MovingAverage

    def __init__(self):
        super().__init__()
        self.register_buffer("mean", torch.zeros(WIDTH))

    def forward(self, x):
        y = self.linear(x)
        self.mean.copy_(0.9 * self.mean + 0.1 * y.detach().mean((0, 1)))  # blamed
        return y - self.mean


class PlainAttribute(_Linear):
    """a moving average in an attribute that is no buffer"""

    refused = "which outlives the step"
    way_out = MovingAverage

    def __init__(self):
        super().__init__()
        self.mean = torch.zeros(WIDTH)

    def forward(self, x):
        y = self.linear(x)
        self.mean.mul_(0.9)  # blamed
        return y - self.mean


class ActNorm(_Linear):
    """actnorm (Glow, VITS): what the first batch decides is in buffers, by `torch.where` and a flag, what is learned is added"""

    def __init__(self):
        super().__init__()
        self.register_buffer("begun", torch.tensor(False))
        self.register_buffer("mean", torch.zeros(WIDTH))
        self.register_buffer("scale", torch.ones(WIDTH))
        self.shift, self.logs = nn.Parameter(torch.zeros(WIDTH)), nn.Parameter(torch.zeros(WIDTH))

    def forward(self, x, lengths):
        y = self.linear(x)
        if self.training:
            with torch.no_grad():
                valid = (torch.arange(x.shape[1])[None, :] < lengths[:, None]).float()[..., None]
                count = valid.sum().clamp(min=1)
                mean = (y * valid).sum((0, 1)) / count
                scale = (((y - mean).square() * valid).sum((0, 1)) / count + 1e-6).rsqrt()
                self.mean.copy_(torch.where(self.begun, self.mean, mean))
                self.scale.copy_(torch.where(self.begun, self.scale, scale))
                self.begun.fill_(True)
        return (y - self.mean) * self.scale * self.logs.exp() + self.shift


class ActNormOfParameters(_Linear):
    """actnorm that writes the first batch's statistics into parameters; run the module once before the export, or"""

    refused = "writes into shift, which outlives the step"
    way_out = ActNorm

    def __init__(self):
        super().__init__()
        self.shift, self.begun = nn.Parameter(torch.zeros(WIDTH)), False

    def forward(self, x):
        y = self.linear(x)
        if not self.begun:
            self.shift.data.copy_(-y.detach().mean((0, 1)))  # blamed
            self.begun = True
        return y + self.shift
