"""Writes into parts of a tensor, as new tensors: what PyTorch makes of `y[:, 0] = 0` while it traces, without a scatter."""

import torch
from torch import Tensor

aten = torch.ops.aten
# PyTorch's "to the end".
_END = 2**62


def decompositions() -> dict:
    return {
        aten.copy.default: _copy,
        aten.slice_scatter.default: _slice_scatter,
        aten.select_scatter.default: _select_scatter,
        aten.diagonal_scatter.default: _diagonal_scatter,
        aten.diagonal_backward.default: _diagonal_backward,
        aten.new_empty_strided.default: _new_empty_strided,
    }


def _copy(into: Tensor, source: Tensor, non_blocking: bool = False) -> Tensor:
    return source.to(into.dtype).expand(into.shape)


def _new_empty_strided(x: Tensor, size: list[int], stride: list[int], **options) -> Tensor:
    """Autograd creates it to be filled; ONNX has no memory order."""
    options.pop("layout", None)
    return x.new_zeros(size, **options)


def _slice_scatter(x: Tensor, part: Tensor, dim: int = 0, start: int | None = None, end: int | None = None, step: int = 1) -> Tensor:
    dim %= x.dim()
    size = x.shape[dim]
    first = _bound(0 if start is None else start, size)
    last = size if end is None or isinstance(end, int) and end > _END else _bound(end, size)
    whole = isinstance(first, int) and first == 0 and last is size
    if step == 1:
        if whole:
            return part
        # The part's own length: a slice may end before its bound.
        after = first + part.shape[dim]
        return _joined([x.narrow(dim, 0, first), part, x.narrow(dim, after, size - after)], dim)
    # Each element of the part, repeated to fill its step, under a mask of the places that are written.
    place = torch.arange(size, device=x.device)
    written = (place >= first) & (place < last) & ((place - first) % step == 0)
    spread = part.unsqueeze(dim + 1).expand([*part.shape[:dim + 1], step, *part.shape[dim + 1:]])
    spread = spread.reshape([*part.shape[:dim], part.shape[dim] * step, *part.shape[dim + 1:]])
    margin = lambda count: x.new_zeros([*x.shape[:dim], count, *x.shape[dim + 1:]])
    # What is written may end long before the last element.
    spread = _joined([margin(first), spread, margin(step if last is size else size)], dim).narrow(dim, 0, size)
    return torch.where(written.view([-1] + [1] * (x.dim() - dim - 1)), spread, x)


def _select_scatter(x: Tensor, part: Tensor, dim: int, index: int) -> Tensor:
    dim %= x.dim()
    index = _bound(index, x.shape[dim])
    return _slice_scatter(x, part.unsqueeze(dim), dim, index, index + 1)


def _diagonal_scatter(x: Tensor, part: Tensor, offset: int = 0, dim1: int = 0, dim2: int = 1) -> Tensor:
    """The part is spread over rows or columns, whichever it has all of, and taken on the diagonal."""
    dim1, dim2 = dim1 % x.dim(), dim2 % x.dim()
    rows, columns = torch.arange(x.shape[dim1], device=x.device), torch.arange(x.shape[dim2], device=x.device)
    on = columns[None, :] == rows[:, None] + offset
    # [..., n] times one-hot [n, rows]: the element of each row.
    at = torch.arange(part.shape[-1], device=x.device)[:, None] + max(-offset, 0) == rows[None, :]
    spread = torch.matmul(part, at.to(part.dtype)).unsqueeze(-1)
    others = [d for d in range(x.dim()) if d not in (dim1, dim2)]
    order = [*others, dim1, dim2]
    back = sorted(range(x.dim()), key=lambda d: order[d])
    return torch.where(on, spread, x.permute(order)).permute(back)


def _diagonal_backward(grad: Tensor, sizes: list[int], offset: int, dim1: int, dim2: int) -> Tensor:
    return _diagonal_scatter(grad.new_zeros(sizes), grad, offset, dim1, dim2)


def _bound(at: int, size: int) -> int:
    return at + size if isinstance(at, int) and at < 0 else at


def _joined(parts: list[Tensor], dim: int) -> Tensor:
    kept = [p for p in parts if not (isinstance(p.shape[dim], int) and p.shape[dim] == 0)]
    return torch.cat(kept, dim) if len(kept) > 1 else kept[0]
