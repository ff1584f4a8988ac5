"""Padding of tensors by joining parts of them. PyTorch's own formulas bake in the example's sizes, and their gradients scatter."""

import torch
from torch import Tensor

from . import refusal
from .refusal import Refusal

_MODES = ("constant", "reflect", "replicate", "circular")
# A size that varies, and may be 0 or 1 in the example, gets this many more: tracing takes 0 and 1 for constants.
UNSEEN = 2
# Up to this size of its one-hot matrix, a fixed axis is padded by a look-up. Parts of a fixed size are joined by a kernel whose gradient cannot be captured.
_MATRIX = 1 << 16


def varies(size) -> bool:
    """Whether a size depends on the batch."""
    return isinstance(size, torch.SymInt) and not size.node.expr.is_number


def pad(x: Tensor, pad: list[int], mode: str = "constant", value: float | None = None) -> Tensor:
    """torch.nn.functional.pad."""
    if mode not in _MODES:
        raise Refusal(f"F.pad has the mode {mode!r}", f"use one of {', '.join(_MODES)}", refusal.here())
    for i in range(0, len(pad), 2):
        dim = x.dim() - 1 - i // 2
        x = constant(x, dim, pad[i], pad[i + 1], value or 0) if mode == "constant" else _copied(x, dim, pad[i], pad[i + 1], mode)
    return x


def constant(x: Tensor, dim: int, left: int, right: int, value: float = 0) -> Tensor:
    """A number on both sides; a negative margin cuts."""
    x, left, right = _cut(x, dim, left, right)
    margin = lambda count: [x.new_full([*x.shape[:dim], count, *x.shape[dim + 1:]], value)]
    return _joined(x, dim, left, right, margin, margin)


def _copied(x: Tensor, dim: int, left: int, right: int, mode: str) -> Tensor:
    """Parts of x on both sides."""
    x, left, right = _cut(x, dim, left, right)
    size = x.shape[dim]
    fixed = not any(varies(n) for n in (size, left, right))
    if fixed and max(left, right) > {"reflect": size - 1, "replicate": left + right, "circular": size}[mode]:
        raise Refusal(f"F.pad adds {max(left, right)} to an axis of {size} by {mode}", "pad less than the axis has, or with zeros", refusal.here())
    if fixed and size * (size + left + right) <= _MATRIX:
        return x.index_select(dim, _places(int(size), int(left), int(right), mode))
    match mode:
        case "reflect":
            before, after = lambda n: [x.narrow(dim, 1, n).flip(dim)], lambda n: [x.narrow(dim, size - 1 - n, n).flip(dim)]
        case "replicate":
            several = lambda end, n: [end.expand([*x.shape[:dim], n, *x.shape[dim + 1:]])]
            before, after = lambda n: several(x.narrow(dim, 0, 1), n), lambda n: several(x.narrow(dim, size - 1, 1), n)
        case _:
            before, after = lambda n: [x.narrow(dim, size - n, n)], lambda n: [x.narrow(dim, 0, n)]
    return _joined(x, dim, left, right, before, after)


def _places(size: int, left: int, right: int, mode: str) -> Tensor:
    at = torch.arange(-left, size + right)
    match mode:
        case "reflect":
            return (size - 1) - ((size - 1) - at.abs()).abs()
        case "replicate":
            return at.clamp(0, size - 1)
    return at % size


def _cut(x: Tensor, dim: int, left: int, right: int) -> tuple[Tensor, int, int]:
    """What negative margins leave, and the others. A margin that cannot be negative is not asked: the example's answer would be assumed."""
    negative = lambda n: n < 0 if not varies(n) or not n.node.expr.is_nonnegative else False
    cuts = [negative(n) for n in (left, right)]
    first, last = (-n if cut else 0 for n, cut in zip((left, right), cuts, strict=True))
    if any(cuts):
        x = x.narrow(dim, first, x.shape[dim] - first - last)
    return x, *(0 if cut else n for n, cut in zip((left, right), cuts, strict=True))


def _joined(x: Tensor, dim: int, left: int, right: int, before, after) -> Tensor:
    """before(n), x and after(n). Of a varying n there are more, which are cut again."""
    more = [UNSEEN if varies(n) else 0 for n in (left, right)]
    given = [varies(n) or n > 0 for n in (left, right)]
    size = x.shape[dim] + left + right
    parts = [*(before(left + more[0]) if given[0] else []), x, *(after(right + more[1]) if given[1] else [])]
    x = torch.cat(parts, dim) if len(parts) > 1 else x
    return x.narrow(dim, more[0], size) if any(more) else x
