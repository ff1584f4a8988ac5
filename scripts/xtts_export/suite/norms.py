"""Normalization and statistics"""

import torch
import torch.nn.functional as F
from torch import nn

from .case import WIDTH, Case


class _Linear(Case):
    def __init__(self):
        super().__init__()
        self.linear = nn.Linear(WIDTH, WIDTH)


class LayerNorms(_Linear):
    """`nn.LayerNorm` with and without weights, after a transpose"""

    def __init__(self):
        super().__init__()
        self.norm, self.plain = nn.LayerNorm(WIDTH), nn.LayerNorm(WIDTH, elementwise_affine=False)

    def forward(self, x):
        y = self.norm(self.linear(x).transpose(1, 2).transpose(1, -1))
        return y + self.plain(self.linear(y))


class GroupNorms(_Linear):
    """`nn.GroupNorm` over a dynamic length, then a transpose and `reshape(-1, ...)`"""

    def __init__(self):
        super().__init__()
        self.norm = nn.GroupNorm(2, WIDTH)

    def forward(self, x):
        y = self.norm(self.linear(x).transpose(1, 2)).transpose(1, 2)
        return self.linear(y.reshape(-1, WIDTH)).view(x.shape)


class InstanceNorms(_Linear):
    """`nn.InstanceNorm1d`, with and without weights"""

    def __init__(self):
        super().__init__()
        self.norm, self.plain = nn.InstanceNorm1d(WIDTH, affine=True), nn.InstanceNorm1d(WIDTH)

    def forward(self, x):
        y = self.linear(x).transpose(1, 2)
        return self.linear((self.norm(y) + self.plain(y)).transpose(1, 2)) + y.transpose(1, 2)


class RmsNorms(_Linear):
    """`nn.RMSNorm`, and its formula by `rsqrt`"""

    def __init__(self):
        super().__init__()
        self.norm, self.weight = nn.RMSNorm(WIDTH), nn.Parameter(torch.ones(WIDTH))

    def forward(self, x):
        y = self.linear(x)
        return self.norm(y) + self.weight * (y * torch.rsqrt(y.pow(2).mean(-1, keepdim=True) + 1e-6))


class ScaleNorm(_Linear):
    """`F.normalize`, `cosine_similarity`, `norm`, `torch.linalg.vector_norm`"""

    def forward(self, x):
        y = self.linear(x)
        cosine = F.cosine_similarity(y, x + 0.1, dim=-1)[..., None]
        return F.normalize(y, dim=-1) + cosine + y.norm(dim=-1, keepdim=True) + torch.linalg.vector_norm(y, dim=(1, 2))[:, None, None]


class AdaptiveNorm(_Linear):
    """layer norm with shift and scale from a condition (`chunk`, `unsqueeze`)"""

    def __init__(self):
        super().__init__()
        self.condition = nn.Sequential(nn.SiLU(), nn.Linear(WIDTH, 2 * WIDTH))

    def forward(self, x):
        shift, scale = self.condition(x.mean(1)).chunk(2, dim=1)
        return F.layer_norm(self.linear(x), (WIDTH,), eps=1e-6) * (1 + scale.unsqueeze(1)) + shift.unsqueeze(1)


class Deviations(_Linear):
    """`std` and `var` over one and several axes, with and without correction, `torch.var_mean`"""

    def forward(self, x):
        y = self.linear(x) + x
        a = y.std(dim=(1, 2), keepdim=True) + y.var(dim=-1, keepdim=True, unbiased=False) + y.std(1, correction=0, keepdim=True)
        variance, mean = torch.var_mean(y, dim=1, keepdim=True)
        return (y - mean) / (variance + 1e-5).sqrt() * a


class Extremes(_Linear):
    """`max`, `min` with indices, `amax`, `aminmax`, `argmax`, `median`-free statistics"""

    def forward(self, x):
        y = self.linear(x)
        values, places = y.max(dim=-1, keepdim=True)
        return y * values + y.min(-1, keepdim=True).values + y.amax((1, 2), keepdim=True) + places * 0.1 + y.argmax(1, keepdim=True) * 0.01


class WholeExtremes(_Linear):
    """`amax`, `amin`, `max` and `min` over all axes, as for the peak of a waveform"""

    def forward(self, x):
        y = self.linear(x)
        peak = torch.max(y.abs()) + x.amin().abs() + torch.amax(x, dim=())
        return y / peak + y.min() - 0.1 * y.detach().max()


class LogSums(_Linear):
    """`torch.logsumexp`, `log_softmax`, `softmin`, `cumsum`"""

    def forward(self, x):
        y = self.linear(x)
        return torch.logsumexp(y, dim=-1, keepdim=True) + F.log_softmax(y, dim=1) + F.softmin(y, -1) + y.cumsum(1)
