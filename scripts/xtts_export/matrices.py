"""Determinants, inverses and solutions of small square matrices, whose size is fixed: PyTorch's have no form in plain ONNX.

By reflections (Householder 1958), which make a matrix triangular and are stable for every one, and by substitution.
"""

from collections.abc import Callable
from functools import wraps

import torch
from torch import Tensor

from . import refusal
from .refusal import Refusal

# Each row takes about ten nodes of the graph, and thirty in its gradient.
_LARGEST = 32


def _square(function: Callable) -> Callable:
    @wraps(function)
    def checked(a: Tensor, *args, **options):
        if not (isinstance(a.shape[-1], int) and a.shape[-2] == a.shape[-1] <= _LARGEST):
            raise Refusal(f"a matrix of {list(a.shape[-2:])}, of which {function.__name__.strip('_')} has no form in plain ONNX: up to {_LARGEST} rows have",
                          "a product of triangular matrices, whose determinant is the diagonal's product, and whose inverse is a substitution", refusal.here())
        return function(a, *args, **options)
    return checked


def _reflected(a: Tensor, b: Tensor | None = None) -> tuple[Tensor, Tensor | None]:
    """R, which is triangular, and Qᵀ b, for a = Q R, where Q is a product of a.shape[-1] - 1 reflections."""
    n = a.shape[-1]
    joined, rows = a if b is None else torch.cat([a, b], -1), torch.arange(n)
    for k in range(n - 1):
        x = joined[..., k] * (rows >= k)
        v = x + (rows == k) * x.square().sum(-1, keepdim=True).sqrt() * torch.where(joined[..., k, k] < 0, -1.0, 1.0)[..., None]
        scale = 2 / v.square().sum(-1).clamp(min=torch.finfo(v.dtype).tiny)
        joined = joined - (scale[..., None] * v)[..., None] * (v[..., None, :] @ joined)
    return joined[..., :n], None if b is None else joined[..., n:]


def _diagonal(a: Tensor) -> Tensor:
    """Of R; the product of its signs is the determinant's."""
    diagonal = _reflected(a)[0].diagonal(dim1=-2, dim2=-1)
    return torch.cat([diagonal[..., :1] * (-1) ** (a.shape[-1] - 1), diagonal[..., 1:]], -1)


@_square
def _slogdet(a: Tensor) -> "torch.return_types.linalg_slogdet":
    d = _diagonal(a)
    return torch.return_types.linalg_slogdet((_product(d.detach().sign()), d.abs().log().sum(-1)))


@_square
def _logdet(a: Tensor) -> Tensor:
    sign, size = _slogdet(a)
    return torch.where(sign < 0, torch.nan, size)


@_square
def _det(a: Tensor) -> Tensor:
    return _product(_diagonal(a))


def _product(x: Tensor) -> Tensor:
    y = x[..., 0]
    for k in range(1, x.shape[-1]):
        y = y * x[..., k]
    return y


def _substituted(a: Tensor, b: Tensor, upper: bool) -> Tensor:
    """x of a x = b, for a triangular a."""
    n, rows = a.shape[-1], {}
    for k in reversed(range(n)) if upper else range(n):
        known = range(k + 1, n) if upper else range(k)
        rest = b[..., k:k + 1, :]
        if known:
            rest = rest - a[..., k:k + 1, known[0]:known[-1] + 1] @ torch.cat([rows[i] for i in known], -2)
        rows[k] = rest / a[..., k:k + 1, k:k + 1]
    return torch.cat([rows[k] for k in range(n)], -2)


@_square
def _solve(a: Tensor, b: Tensor, *, left: bool = True) -> Tensor:
    if not left:
        return _solve(a.mT, b.mT).mT
    if b.dim() == 1 or b.dim() == a.dim() - 1 and b.shape == a.shape[:-1]:
        return _solve(a, b[..., None])[..., 0]
    batch = torch.broadcast_shapes(a.shape[:-2], b.shape[:-2])
    triangle, turned = _reflected(a.expand(*batch, *a.shape[-2:]), b.expand(*batch, *b.shape[-2:]))
    return _substituted(triangle, turned, upper=True)


@_square
def _inv(a: Tensor) -> Tensor:
    return _solve(a, torch.eye(a.shape[-1], dtype=a.dtype).expand(a.shape))


@_square
def _solve_triangular(a: Tensor, b: Tensor, *, upper: bool, left: bool = True, unitriangular: bool = False) -> Tensor:
    if not left:
        return _solve_triangular(a.mT, b.mT, upper=not upper, unitriangular=unitriangular).mT
    return _substituted(torch.where(torch.eye(a.shape[-1], dtype=torch.bool), 1.0, a) if unitriangular else a, b, upper)


FUNCTIONS = (
    *((owner, name, _slogdet) for owner, name in ((torch, "slogdet"), (torch.linalg, "slogdet"), (Tensor, "slogdet"))),
    *((owner, "logdet", _logdet) for owner in (torch, Tensor)), *((owner, "det", _det) for owner in (torch, torch.linalg, Tensor)),
    *((owner, name, _inv) for owner, name in ((torch, "inverse"), (torch.linalg, "inv"), (Tensor, "inverse"))),
    (torch.linalg, "solve", _solve), (torch.linalg, "solve_triangular", _solve_triangular),
)
