"""Batch norm over the rows that are not empty.

Statistics are those of torch.nn.functional.batch_norm on the batch without its empty rows, padded frames counted: an empty row must not
count (docs/bundle.md). The running variance is of the sample (n - 1), the one that normalizes is not, as in PyTorch.
"""

import contextlib
from collections.abc import Callable, Iterator
from functools import partial, wraps
from unittest import mock

import sympy
import torch
from torch import Tensor, nn

from . import refusal
from .refusal import Refusal

functional = torch.nn.functional


@contextlib.contextmanager
def counting(rows: Callable[[], Tensor | None]) -> Iterator[None]:
    """Batch norm counts the rows that the function returns, a bool[B]; None is all. It is called when they are needed."""
    with (mock.patch.object(functional, "batch_norm", _named(functional.batch_norm, partial(_batch_norm, rows))),
          mock.patch.object(nn.modules.batchnorm._BatchNorm, "forward", _forward),
          mock.patch.object(functional, "instance_norm", _named(functional.instance_norm, partial(_instance_norm, functional.instance_norm)))):
        yield


def _named(original: Callable, function: Callable) -> Callable:
    """function with the name of the original, which PyTorch's tracing asks for."""
    return wraps(original)(lambda *args, **options: function(*args, **options))


def _instance_norm(function: Callable, x: Tensor, running_mean: Tensor | None = None, running_var: Tensor | None = None, weight: Tensor | None = None,
                   bias: Tensor | None = None, use_input_stats: bool = True, *rest, **options) -> Tensor:
    if running_mean is not None and use_input_stats:
        raise Refusal("instance norm that keeps running statistics takes their mean over all rows, empty ones too",
                      "leave track_running_stats out, or use batch norm", refusal.here())
    return function(x, running_mean, running_var, weight, bias, use_input_stats, *rest, **options)


def _forward(self: nn.modules.batchnorm._BatchNorm, x: Tensor) -> Tensor:
    """PyTorch's own, whose factor of a cumulative average is a number in Python."""
    self._check_input_dim(x)
    factor = self.momentum
    if self.training and self.num_batches_tracked is not None:
        self.num_batches_tracked.add_(1)
        if self.momentum is None:
            factor = 1 / self.num_batches_tracked.float()
    of_batch = self.training or self.running_mean is None and self.running_var is None
    kept = (self.running_mean, self.running_var) if not self.training or self.track_running_stats else (None, None)
    return functional.batch_norm(x, *kept, self.weight, self.bias, of_batch, factor, self.eps)


def _batch_norm(rows: Callable[[], Tensor | None], x: Tensor, running_mean: Tensor | None, running_var: Tensor | None, weight: Tensor | None = None,
                bias: Tensor | None = None, training: bool = False, momentum: float | Tensor = 0.1, eps: float = 1e-5) -> Tensor:
    channels = [1, -1] + [1] * (x.dim() - 2)
    y = x.float()
    if training:
        mean, variance, count = _statistics(y, _weights(rows(), y))
        if running_mean is not None:
            _follow(running_mean, mean, momentum)
            _follow(running_var, variance * (count / (count - 1).clamp(min=1)), momentum)
    else:
        mean, variance = running_mean, running_var
    y = (y - mean.view(channels)) * (variance + eps).rsqrt().view(channels)
    if weight is not None:
        y = y * weight.view(channels)
    return y if bias is None else y + bias.view(channels)


def _statistics(y: Tensor, counted: Tensor) -> tuple[Tensor, Tensor, Tensor]:
    """Mean and variance of each channel over rows and places, and how many elements a channel has."""
    inside = counted.view([-1] + [1] * (y.dim() - 1))
    places = list(range(2, y.dim()))
    number = counted.float().sum()
    total = number.clamp(min=1)

    def average(z: Tensor) -> Tensor:
        # What an empty row has must not count, also if it is NaN.
        z = torch.where(inside, z, 0.0)
        return (z.mean(places) if places else z).sum(0) / total

    mean = average(y)
    # That of no rows is 1: one of 0 would multiply what the empty rows have by 1 / sqrt(eps), layer after layer until it is infinite.
    variance = average((y - mean.view([1, -1] + [1] * len(places))).square()) + (1 - number).clamp(min=0)
    return mean, variance, inside.float().expand(-1, 1, *y.shape[2:]).sum()


def _follow(running: Tensor, new: Tensor, momentum: float | Tensor) -> None:
    with torch.no_grad():
        running.copy_((1 - momentum) * running + momentum * new.detach())


def _weights(rows: Tensor | None, y: Tensor) -> Tensor:
    """Which elements of axis 0 count, where each row of the batch may have become several, one after the other."""
    if rows is None:
        return y.new_ones(y.shape[0], dtype=torch.bool)
    first, batch = y.shape[0], rows.shape[0]
    if not _multiple(first, batch):
        raise Refusal(f"batch norm normalizes {_text(y)}, whose first axis is not the rows of the batch, nor several for each row",
                      "give it [rows, channels, ...], or y.reshape(-1, channels) of [rows, ..., channels]: an empty row must not count", refusal.here())
    return rows if _expression(first) == _expression(batch) else rows[:, None].expand(-1, first // batch).reshape(-1)


def _multiple(first: int | torch.SymInt, batch: int | torch.SymInt) -> bool:
    """Whether one size is the other times something that does not depend on it."""
    if isinstance(batch, int):
        return isinstance(first, int) and first % batch == 0
    share = sympy.cancel(_expression(first) / _expression(batch))
    return not sympy.denom(share).free_symbols & _expression(batch).free_symbols


def _expression(size: int | torch.SymInt) -> sympy.Expr:
    return size.node.expr if isinstance(size, torch.SymInt) else sympy.Integer(size)


def _text(y: Tensor) -> str:
    return f"a tensor of {y.dim()} axes" if any(isinstance(n, torch.SymInt) for n in y.shape) else str(list(y.shape))
