"""Activations"""

import torch
import torch.nn.functional as F
from torch import nn

from .case import WIDTH, Case


class _Activation(Case):
    def __init__(self):
        super().__init__()
        self.linear = nn.Linear(WIDTH, WIDTH)

    def forward(self, x):
        return self.activate(self.linear(x))


class Gelu(_Activation):
    """`F.gelu`, exact and by tanh"""

    def activate(self, y):
        return F.gelu(y) + F.gelu(y, approximate="tanh")


class Silu(_Activation):
    """`nn.SiLU`, `y * torch.sigmoid(y)`"""

    def activate(self, y):
        return F.silu(y) * (1 + y * torch.sigmoid(y))


class Gated(_Activation):
    """`F.glu`, `chunk` with a gate"""

    def activate(self, y):
        a, b = y.chunk(2, dim=-1)
        return torch.cat([F.glu(y, dim=-1), torch.tanh(a) * torch.sigmoid(b)], -1)


class Smooth(_Activation):
    """`nn.Softplus`, `nn.Mish`, `F.logsigmoid`, `nn.Softsign`"""

    def activate(self, y):
        return F.softplus(y) + F.mish(y) + F.logsigmoid(y) + F.softsign(y) + F.softplus(y, beta=2, threshold=1)


class Pieces(_Activation):
    """`F.relu`, `leaky_relu`, `elu`, `selu`, `celu`, `relu6`, `hardtanh`, `hardswish`, `hardsigmoid`, `rrelu`"""

    def activate(self, y):
        y = F.relu(y) + F.leaky_relu(y, 0.1) + F.elu(y) + F.selu(y) + F.celu(y, 0.5)
        return y + F.relu6(4 * y) + F.hardtanh(y) + F.hardswish(y) + F.hardsigmoid(y) + F.rrelu(y)


class Prelu(_Activation):
    """`nn.PReLU`, one slope and one for each channel"""

    def __init__(self):
        super().__init__()
        self.one, self.each = nn.PReLU(), nn.PReLU(WIDTH)

    def activate(self, y):
        return self.one(y) + self.each(y.transpose(1, 2)).transpose(1, 2)


class Snake(_Activation):
    """`x + sin(a x)² / a`"""

    def __init__(self):
        super().__init__()
        self.a = nn.Parameter(torch.ones(WIDTH))

    def activate(self, y):
        return y + torch.sin(self.a * y).square() / (self.a + 1e-9)
