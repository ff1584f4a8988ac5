"""Choices, scans and whole numbers of sizes"""

import math

import torch
import torch.nn.functional as F
from torch._higher_order_ops import associative_scan

from .shapes import _Linear


class Cond(_Linear):
    """`torch.cond` by a value and by a size: a graph computes both branches for the former"""

    def forward(self, x):
        y = self.linear(x)
        y = torch.cond(y.mean() > 0, lambda a: a.tanh(), lambda a: 2 * a, (y,))
        return torch.cond(x.shape[1] > 3, lambda a: a.sin(), lambda a: a, (y,))


class AssociativeScan(_Linear):
    """`associative_scan` of PyTorch, forward and `reverse`, as state-space models have it: a recurrence"""

    def forward(self, x):
        y = self.linear(x)
        _, state = associative_scan(lambda a, b: (a[0] * b[0], b[0] * a[1] + b[1]), (torch.sigmoid(y), y), dim=1, combine_mode="generic")
        return state + associative_scan(torch.logaddexp, y, 1, reverse=True, combine_mode="generic")


class RoundedSizes(_Linear):
    """several whole numbers of one size: `round(n * 0.5)`, `math.floor(n / 4)`, `int(n * 0.41)`, `math.ceil(n * 0.3)`, computed in f64 as in Python"""

    def forward(self, x):
        y, n = self.linear(x), x.shape[1]
        for count in round(n * 0.5), math.floor(n / 4), int(n * 0.41), math.ceil(n * 0.3), round(n / 3):
            y = y + y[:, :count].mean(1, keepdim=True)
        return y


class AnyRatio(_Linear):
    """`F.interpolate` by any factor: `scale_factor=0.7`, `nearest` and `linear`, with and without `recompute_scale_factor`"""

    def forward(self, x):
        y = self.linear(x).mT
        parts = (F.interpolate(y, scale_factor=0.7), F.interpolate(y, scale_factor=1.13, mode="linear"),
                 F.interpolate(y, scale_factor=math.pi / 2, mode="linear", recompute_scale_factor=True),
                 F.interpolate(y, scale_factor=math.sqrt(2), mode="linear", align_corners=True))
        return torch.cat(parts, 2).mT


class RandomSlopes(_Linear):
    """`nn.RReLU()`, `F.rrelu(x, training=True)`: slopes from the seed"""

    draws = True

    def __init__(self):
        super().__init__()
        self.activation = torch.nn.RReLU()

    def forward(self, x):
        return self.activation(self.linear(x)) + F.rrelu(self.linear(x - 1), training=self.training)
