"""Positions"""

import math

import torch
import torch.nn.functional as F
from torch import nn

from .case import WIDTH, Case


class _Attending(Case):
    """Queries and keys of [B, T, WIDTH]."""

    def __init__(self):
        super().__init__()
        self.q, self.k = nn.Linear(WIDTH, WIDTH), nn.Linear(WIDTH, WIDTH)

    def attended(self, q, k, x, bias=0.0):
        return torch.softmax(q @ k.transpose(-1, -2) + bias, dim=-1) @ x


class BufferedPositions(Case):
    """sinusoidal positions in a `register_buffer("pe", ...)`, sliced to the length"""

    persistent = True

    def __init__(self):
        super().__init__()
        self.linear = nn.Linear(WIDTH, WIDTH)
        position = torch.arange(64)[:, None] * torch.exp(torch.arange(0, WIDTH, 2) * (-math.log(10000.0) / WIDTH))
        table = torch.zeros(64, WIDTH)
        table[:, 0::2], table[:, 1::2] = torch.sin(position), torch.cos(position)
        self.register_buffer("pe", table[None], persistent=self.persistent)

    def forward(self, x):
        return self.linear(x + self.pe[:, :x.size(1)])


class TransientPositions(BufferedPositions):
    """the same with `persistent=False`"""

    persistent = False


class ComputedPositions(Case):
    """sinusoidal positions computed in `forward`, `torch.outer`, `stack` and `flatten`"""

    def __init__(self):
        super().__init__()
        self.linear = nn.Linear(WIDTH, WIDTH)

    def forward(self, x):
        angles = torch.outer(torch.arange(x.shape[1]).float(), 1 / 10000 ** (torch.arange(0, WIDTH, 2) / WIDTH))
        return self.linear(x + torch.stack([angles.sin(), angles.cos()], dim=-1).flatten(-2))


class Ramp(Case):
    """positions from 0 to 1: `torch.linspace(0, 1, x.shape[1])`"""

    def __init__(self):
        super().__init__()
        self.linear = nn.Linear(WIDTH, WIDTH)

    def forward(self, x):
        return self.linear(x) * torch.linspace(-1, 2, x.shape[1])[:, None] + torch.linspace(0, 1, WIDTH)


class LearnedPositions(Case):
    """a learned table of positions: `nn.Embedding` of `torch.arange`, and a sliced `nn.Parameter`"""

    def __init__(self):
        super().__init__()
        self.table, self.rows, self.linear = nn.Embedding(64, WIDTH), nn.Parameter(torch.randn(1, 64, WIDTH)), nn.Linear(WIDTH, WIDTH)

    def forward(self, x):
        positions = torch.arange(x.shape[1], device=x.device).unsqueeze(0).expand(x.shape[0], -1)
        return self.linear(x + self.table(positions) + self.rows[:, :x.shape[1]])


class Rotary(_Attending):
    """rotary positions by `rotate_half`"""

    def rotated(self, y, sin, cos):
        a, b = y.chunk(2, dim=-1)
        return y * cos + torch.cat((-b, a), dim=-1) * sin

    def forward(self, x):
        angles = torch.einsum("i,j->ij", torch.arange(x.shape[1]).float(), 1.0 / (10000 ** (torch.arange(0, WIDTH, 2).float() / WIDTH)))
        angles = torch.cat((angles, angles), dim=-1)
        return self.attended(self.rotated(self.q(x), angles.sin(), angles.cos()), self.rotated(self.k(x), angles.sin(), angles.cos()), x)


class ComplexRotary(_Attending):
    """rotary positions by complex numbers: `torch.polar`, `view_as_complex`, `view_as_real`"""

    def rotated(self, y, turns):
        return torch.view_as_real(torch.view_as_complex(y.float().reshape(*y.shape[:-1], -1, 2)) * turns).flatten(2)

    def forward(self, x):
        angles = torch.outer(torch.arange(x.shape[1]).float(), 1.0 / (10000 ** (torch.arange(0, WIDTH, 2).float() / WIDTH)))
        turns = torch.polar(torch.ones_like(angles), angles)
        return self.attended(self.rotated(self.q(x), turns), self.rotated(self.k(x), turns), x)


class Alibi(_Attending):
    """ALiBi: a slope times the distance"""

    def forward(self, x):
        t = torch.arange(x.shape[1])
        bias = -(t[None, :] - t[:, None]).abs()[None] * torch.tensor([0.5, 0.25])[:, None, None]
        q, k = (y.unflatten(-1, (2, -1)).transpose(1, 2) for y in (self.q(x), self.k(x)))
        return self.attended(q, k, x.unflatten(-1, (2, -1)).transpose(1, 2), bias).transpose(1, 2).flatten(2)


class Buckets(_Attending):
    """T5's buckets of distances: `torch.where`, `log`, `clamp`, an embedding of [T, T]"""

    def __init__(self):
        super().__init__()
        self.table = nn.Embedding(8, 1)

    def forward(self, x):
        t = torch.arange(x.shape[1])
        distance = (t[:, None] - t[None, :]).clamp(min=0)
        far = 4 + (torch.log(distance.float().clamp(min=1) / 4) / math.log(8) * 4).long()
        bias = self.table(torch.where(distance < 4, distance, torch.clamp(far, 4, 7))).squeeze(-1)
        return self.attended(self.q(x), self.k(x), x, bias)


class RelativeWindow(_Attending):
    """VITS' relative positions: a padded table of a window, relative to absolute by `F.pad` and `view`"""

    def __init__(self, window=4):
        super().__init__()
        self.window, self.table = window, nn.Parameter(torch.randn(1, 2 * window + 1, WIDTH) * 0.1)

    def embeddings(self, length):
        pad, start = max(length - (self.window + 1), 0), max((self.window + 1) - length, 0)
        return F.pad(self.table, [0, 0, pad, pad])[:, start:start + 2 * length - 1]

    def absolute(self, x):
        batch, length, _ = x.size()
        flat = F.pad(x, [0, 1]).view(batch, length * 2 * length)
        return F.pad(flat, [0, length - 1]).view(batch, length + 1, 2 * length - 1)[:, :length, length - 1:]

    def forward(self, x):
        q = self.q(x)
        return self.attended(q, self.k(x), x, self.absolute(q @ self.embeddings(x.size(1)).transpose(-2, -1)))


class RelativeShift(_Attending):
    """Transformer-XL's shift of relative scores: `cat` with zeros and `view`"""

    def forward(self, x):
        t = torch.arange(x.shape[1] - 1, -x.shape[1], -1.0)
        p = torch.sin(t[:, None] / 10 ** torch.arange(WIDTH))
        scores = self.q(x) @ p.t()
        batch, rows, columns = scores.size()
        shifted = torch.cat([scores.new_zeros(batch, rows, 1), scores], dim=-1).view(batch, columns + 1, rows)
        return self.attended(self.q(x), self.k(x), x, shifted[:, 1:].view_as(scores)[:, :, :columns // 2 + 1])
