"""Group norm whose gradient has a gradient: PyTorch's own formula for the second one makes numbers of sizes.

Where no gradient of the gradient is asked for, as nearly always, both passes are PyTorch's operators.
"""

import math
from collections.abc import Callable

import torch
from torch import Tensor

aten = torch.ops.aten


class _GroupNorm(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x: Tensor, weight: Tensor | None, bias: Tensor | None, groups: int, eps: float) -> Tensor:
        sizes = x.shape[0], x.shape[1], math.prod(x.shape[2:]), groups
        y, mean, rstd = torch.native_group_norm(x, weight, bias, *sizes, eps)
        ctx.save_for_backward(x, weight, mean, rstd)
        ctx.sizes, ctx.eps = sizes, eps
        return y

    @staticmethod
    def backward(ctx, slope: Tensor) -> tuple[Tensor | None, ...]:
        x, weight, mean, rstd = ctx.saved_tensors
        wanted = list(ctx.needs_input_grad[:3])
        if not torch.is_grad_enabled():
            return *aten.native_group_norm_backward(slope, x, mean, rstd, weight, *ctx.sizes, wanted), None, None
        # The statistics depend on x, too.
        by_group = x.reshape(ctx.sizes[0], ctx.sizes[3], -1)
        mean = by_group.mean(-1)
        rstd = (by_group.var(-1, correction=0) + ctx.eps).rsqrt()
        return *gradients(slope, x, mean, rstd, weight, *ctx.sizes, wanted), None, None


def group_norm(x: Tensor, groups: int, weight: Tensor | None = None, bias: Tensor | None = None, eps: float = 1e-5,
               cudnn_enabled: bool = True) -> Tensor:
    """torch.group_norm."""
    return _GroupNorm.apply(x, weight, bias, groups, eps)


def gradients(grad: Tensor, x: Tensor, mean: Tensor, rstd: Tensor, weight: Tensor | None, rows: int, channels: int, size: int,
              groups: int, wanted: list[bool]) -> tuple[Tensor | None, ...]:
    """With means. PyTorch's own formula multiplies by 1 / count, which is computed from shapes: on the CPU, with a copy to
    the GPU in every step."""
    by_group = lambda y: y.reshape(rows, groups, -1)
    by_channel = lambda y: y.reshape(rows, channels, -1)
    normal = (by_group(x) - mean.reshape(rows, groups, 1)) * rstd.reshape(rows, groups, 1)
    slope = by_group(grad if weight is None else by_channel(grad) * weight[:, None])
    centred = slope - slope.mean(-1, keepdim=True) - normal * (slope * normal).mean(-1, keepdim=True)
    results: tuple[Callable[[], Tensor], ...] = (
        lambda: (centred * rstd.reshape(rows, groups, 1)).reshape(x.shape),
        lambda: (by_channel(grad) * by_channel(normal)).sum((0, 2)),
        lambda: by_channel(grad).sum((0, 2)),
    )
    return tuple(result() if want else None for result, want in zip(results, wanted, strict=True))
