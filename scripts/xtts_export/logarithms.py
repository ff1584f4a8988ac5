"""Sums of exponentials by their logarithms, for numbers whose exponentials are too large or too small."""

import itertools
import math

import torch
from torch import Tensor

from . import recurrence


def _logaddexp(x: Tensor, y: Tensor) -> Tensor:
    # Equal infinities have no difference.
    apart = torch.where(x == y, 0.0, x - y)
    return torch.maximum(x, y) + torch.log1p(torch.exp(-apart.abs()))


def _logaddexp2(x: Tensor, y: Tensor) -> Tensor:
    return _logaddexp(x * math.log(2), y * math.log(2)) / math.log(2)


def _logcumsumexp(x: Tensor, dim: int) -> Tensor:
    """One after the other: what the largest of all leaves of the first ones is 0."""
    if not x.dim():
        return x
    parts = x.movedim(dim, 0)
    if isinstance(x.shape[dim], int):
        return torch.stack(list(itertools.accumulate(parts.unbind(0), _logaddexp)), 0).movedim(0, dim)

    def step(carry, items, constants):
        total = _logaddexp(carry[0], items[0])
        return (total,), (total,)

    _, (y,) = recurrence.scan(step, [torch.full_like(parts[0], -math.inf)], [parts])
    return y.movedim(0, dim)


FUNCTIONS = tuple((owner, name, function) for owner in (torch, Tensor) for name, function in (
    ("logaddexp", _logaddexp), ("logaddexp2", _logaddexp2), ("logcumsumexp", _logcumsumexp)))
