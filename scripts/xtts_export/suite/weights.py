"""Parameters"""

import warnings

import torch
import torch.nn.functional as F
from torch import nn

from .case import TABLE, WIDTH, Case


class Tied(Case):
    """tied weights: `head.weight = emb.weight`"""

    def __init__(self):
        super().__init__()
        self.emb, self.linear, self.head = nn.Embedding(TABLE, WIDTH), nn.Linear(WIDTH, WIDTH), nn.Linear(WIDTH, TABLE, bias=False)
        self.head.weight = self.emb.weight

    def forward(self, ids):
        return self.head(torch.tanh(self.linear(self.emb(ids))))


class SharedLayer(Case):
    """one layer under two names, and used twice"""

    def __init__(self):
        super().__init__()
        self.first = nn.Linear(WIDTH, WIDTH)
        self.second = self.first

    def forward(self, x):
        return self.second(torch.relu(self.first(x)))


class WeightNorm(Case):
    """`nn.utils.parametrizations.weight_norm` of linear and convolution"""

    normed = staticmethod(nn.utils.parametrizations.weight_norm)

    def __init__(self):
        super().__init__()
        self.linear, self.conv = self.normed(nn.Linear(WIDTH, WIDTH)), self.normed(nn.Conv1d(WIDTH, WIDTH, 3, padding=1))

    def forward(self, x):
        return self.conv(self.linear(x).transpose(1, 2)).transpose(1, 2)


class FormerWeightNorm(WeightNorm):
    """`nn.utils.weight_norm`"""

    normed = staticmethod(nn.utils.weight_norm)


class _Rows(nn.Module):
    def forward(self, weight):
        return weight / weight.norm(dim=1, keepdim=True)


class OwnParametrization(Case):
    """`nn.utils.parametrize.register_parametrization` with a module of one's own: rows of length 1"""

    def __init__(self):
        super().__init__()
        self.linear, self.scale = nn.Linear(WIDTH, WIDTH), nn.Parameter(torch.ones(WIDTH))
        nn.utils.parametrize.register_parametrization(self.linear, "weight", _Rows())

    def forward(self, x):
        return self.linear(x) * self.scale


class Frozen(Case):
    """`requires_grad_(False)`, `torch.no_grad()`, `detach`"""

    def __init__(self):
        super().__init__()
        self.fixed, self.linear = nn.Linear(WIDTH, WIDTH).requires_grad_(False), nn.Linear(WIDTH, WIDTH)

    def forward(self, x):
        with torch.no_grad():
            gate = torch.sigmoid(self.linear(x))
        return self.fixed(x) * self.linear(x) * gate + self.linear(x).detach()


class Lists(Case):
    """`nn.ModuleList`, `ModuleDict`, `ParameterList`, `Sequential`"""

    def __init__(self):
        super().__init__()
        self.layers = nn.ModuleList(nn.Sequential(nn.Linear(WIDTH, WIDTH), nn.Tanh(), nn.Identity()) for _ in range(2))
        self.heads, self.scales = nn.ModuleDict({"a": nn.Linear(WIDTH, WIDTH)}), nn.ParameterList([nn.Parameter(torch.ones(WIDTH)), nn.Parameter(torch.ones(()))])

    def forward(self, x):
        for layer, scale in zip(self.layers, self.scales, strict=True):
            x = x + layer(x) * scale
        return self.heads["a"](x)


class LargeBuffer(Case):
    """a buffer above 1 MiB, which becomes a frozen parameter"""

    def __init__(self):
        super().__init__()
        self.linear = nn.Linear(WIDTH, 520)
        self.register_buffer("table", torch.randn(520, 520))

    def forward(self, x):
        return self.linear(x) @ self.table * 0.1


class CheckpointedLayer(Case):
    """`torch.utils.checkpoint.checkpoint`"""

    def __init__(self):
        super().__init__()
        self.layer = nn.Sequential(nn.Linear(WIDTH, WIDTH), nn.GELU(), nn.Linear(WIDTH, WIDTH))

    def forward(self, x):
        return x + torch.utils.checkpoint.checkpoint(self.layer, x, use_reentrant=False)


class ReentrantCheckpoint(CheckpointedLayer):
    """the same with `use_reentrant=True`, and `checkpoint_sequential`"""

    def forward(self, x):
        y = torch.utils.checkpoint.checkpoint(self.layer, self.layer(x), use_reentrant=True)
        return x + torch.utils.checkpoint.checkpoint_sequential(self.layer, 2, y, use_reentrant=True)


def _gated(a: torch.Tensor, b: torch.Tensor, channels: int):
    y = a + b
    return torch.tanh(y[:, :, :channels]) * torch.sigmoid(y[:, :, channels:])


with warnings.catch_warnings():
    # PyTorch advises against torch.jit.script; models of the field still have it.
    warnings.simplefilter("ignore", FutureWarning)
    _scripted = torch.jit.script(_gated)


class Scripted(Case):
    """a function of `torch.jit.script`, as WaveNet's gate in VITS"""

    def __init__(self):
        super().__init__()
        self.a, self.b = nn.Linear(WIDTH, 2 * WIDTH), nn.Linear(WIDTH, 2 * WIDTH)

    def forward(self, x):
        return _scripted(self.a(x), self.b(x), WIDTH)


class Bilinear(Case):
    """`nn.Bilinear`, `F.linear` of a computed weight"""

    def __init__(self):
        super().__init__()
        self.bilinear, self.scale = nn.Bilinear(WIDTH, WIDTH, WIDTH), nn.Parameter(torch.ones(WIDTH, 1))

    def forward(self, x):
        y = self.bilinear(x, torch.tanh(x))
        return F.linear(y, F.normalize(self.bilinear.weight[0], dim=1) * self.scale)


class Summed(Case):
    """parameters that are added up, whose gradients are one tensor: `x * (self.a + self.b)`"""

    def __init__(self):
        super().__init__()
        self.a, self.b = nn.Parameter(torch.randn(WIDTH)), nn.Parameter(torch.randn(WIDTH))

    def forward(self, x):
        return x * (self.a + self.b)


class LowRank(Case):
    """LoRA by hand: a frozen layer and a product of two small matrices"""

    def __init__(self):
        super().__init__()
        self.base = nn.Linear(WIDTH, WIDTH).requires_grad_(False)
        self.down, self.up = nn.Linear(WIDTH, 2, bias=False), nn.Linear(2, WIDTH, bias=False)

    def forward(self, x):
        return self.base(x) + self.up(self.down(x)) * (16 / 2)
