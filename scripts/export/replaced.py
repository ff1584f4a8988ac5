"""PyTorch's functions that run on the example's sizes, or as one kernel that ONNX lacks, written with others."""

import contextlib
import sys
from collections.abc import Iterator
from unittest import mock

import torch
from torch import Tensor


@contextlib.contextmanager
def functions() -> Iterator[None]:
    with contextlib.ExitStack() as replaced:
        for owner, name, function in _FUNCTIONS:
            replaced.enter_context(mock.patch.object(owner, name, function))
        yield


def _baddbmm(x: Tensor, a: Tensor, b: Tensor, *, beta: float = 1, alpha: float = 1) -> Tensor:
    product = torch.bmm(a, b)
    return (x if beta == 1 else x * beta) + (product if alpha == 1 else product * alpha)


def _bilinear(x: Tensor, y: Tensor, weight: Tensor, bias: Tensor | None = None) -> Tensor:
    # [..., 1, i] times [i, o * j], then times y.
    rows = torch.matmul(x, weight.permute(1, 0, 2).reshape(weight.shape[1], -1)).unflatten(-1, (weight.shape[0], -1))
    z = (rows * y.unsqueeze(-2)).sum(-1)
    return z if bias is None else z + bias


def _weight_norm(v: Tensor, g: Tensor, dim: int = 0) -> Tensor:
    axes = [d for d in range(v.dim()) if dim == -1 or d != dim % v.dim()]
    return v * (g / v.square().sum(axes, keepdim=True).sqrt())


def _take_along_dim(x: Tensor, index: Tensor, dim: int | None = None) -> Tensor:
    if dim is None:
        return x.reshape(-1).gather(0, index.reshape(-1))
    wide = lambda a, b: [n if isinstance(m, int) and m == 1 and d != dim % x.dim() else m for d, (m, n) in enumerate(zip(a.shape, b.shape, strict=True))]
    return x.expand(wide(x, index)).gather(dim, index.expand(wide(index, x)))


def _is_causal(mask: Tensor | None, is_causal: bool | None = None, size: int | None = None) -> bool:
    """PyTorch compares the values of the mask, to choose a faster kernel."""
    return is_causal is True


_FUNCTIONS = (
    (torch, "baddbmm", _baddbmm), (Tensor, "baddbmm", _baddbmm),
    (torch.nn.functional, "bilinear", _bilinear), (torch, "bilinear", _bilinear),
    (torch, "_weight_norm", _weight_norm), (sys.modules["torch.nn.utils.weight_norm"], "_weight_norm", _weight_norm),
    (torch, "take_along_dim", _take_along_dim), (Tensor, "take_along_dim", _take_along_dim),
    (torch.nn.modules.transformer, "_detect_is_causal_mask", _is_causal),
)
