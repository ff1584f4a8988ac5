"""Look-ups by indices, and their gradients as products with one-hot matrices: a scatter that adds has no fixed order on a GPU."""

import torch
from torch import Tensor

from . import refusal
from .refusal import Refusal

aten = torch.ops.aten


def decompositions() -> dict:
    return {
        aten.index.Tensor: _index,
        aten._unsafe_index.Tensor: _index,
        aten.index_put.default: _index_put,
        aten._unsafe_index_put.default: _index_put,
        aten.index_add.default: _index_add,
        aten.scatter_add.default: _scatter_add,
        aten.scatter.value: _scatter_value,
    }


def hits(index: Tensor, size: int, dtype: torch.dtype) -> Tensor:
    """[..., size]: 1 where the index says."""
    return (index.unsqueeze(-1) == torch.arange(size, device=index.device, dtype=index.dtype)).to(dtype)


def _index(x: Tensor, indices: list[Tensor | None]) -> Tensor:
    """By one Gather, of the indexed dimensions as one. GatherND reads its table's shape from the host."""
    given = [i for i, index in enumerate(indices) if index is not None]
    flat, sizes = _flat(x, indices, given)
    rest = [d for d in range(x.dim()) if d not in given]
    rows = x.permute([*given, *rest]).reshape([_product(sizes), *(x.shape[d] for d in rest)])
    chosen = rows.index_select(0, flat.reshape(-1)).reshape([*flat.shape, *(x.shape[d] for d in rest)])
    return chosen.permute(_order(given, flat.dim(), chosen.dim()))


def _index_put(x: Tensor, indices: list[Tensor | None], values: Tensor, accumulate: bool = False) -> Tensor:
    given = [i for i, index in enumerate(indices) if index is not None]
    if len(given) == 1 and indices[given[0]].dtype == torch.bool:
        return _masked_put(x, given[0], indices[given[0]], values, accumulate)
    flat, sizes = _flat(x, indices, given)
    rest = [d for d in range(x.dim()) if d not in given]
    order = _order(given, flat.dim(), flat.dim() + len(rest))
    lengths = [*flat.shape, *(x.shape[d] for d in rest)]
    values = values.expand([lengths[d] for d in order]).permute(_inverse(order)).reshape(flat.numel(), -1)
    hit = hits(flat.reshape(-1), _product(sizes), values.dtype).t()
    back = _inverse([*given, *rest])
    spread = lambda y: y.reshape([*sizes, *(x.shape[d] for d in rest)]).permute(back)
    if accumulate:
        return x + spread(torch.matmul(hit, values))
    # Of places that are written twice, the last one would decide; PyTorch leaves it open.
    written = hit.amax(1, keepdim=True)
    total = torch.matmul(hit / hit.sum(1, keepdim=True).clamp(min=1), values)
    return torch.where(spread(written.expand(-1, values.shape[1])) > 0, spread(total), x)


def _flat(x: Tensor, indices: list[Tensor | None], given: list[int]) -> tuple[Tensor, list[int]]:
    """One index in place of several, into the indexed dimensions taken as one; and their sizes."""
    sizes, flat = [x.shape[d] for d in given], None
    for index, size in zip(torch.broadcast_tensors(*(indices[d] for d in given)), sizes, strict=True):
        if index.dtype in (torch.bool, torch.uint8):
            raise Refusal("a mask among other indices has no form in plain ONNX", "use torch.where(mask, a, b)", refusal.here())
        index = index.long()
        index = torch.where(index < 0, index + size, index)
        flat = index if flat is None else flat * size + index
    return flat, sizes


def _order(given: list[int], places: int, count: int) -> list[int]:
    """Where the dimensions of (places, rest) go: places take those of the indices if these are neighbours, and come first otherwise."""
    first = given[0] if given == list(range(given[0], given[-1] + 1)) else 0
    return [*range(places, places + first), *range(places), *range(places + first, count)]


def _inverse(order: list[int]) -> list[int]:
    return sorted(range(len(order)), key=lambda d: order[d])


def _product(sizes: list[int]) -> int:
    total = 1
    for size in sizes:
        total = total * size
    return total


def _masked_put(x: Tensor, first: int, mask: Tensor, values: Tensor, accumulate: bool) -> Tensor:
    if values.dim() > x.dim() - first - mask.dim():
        raise Refusal("what is written has one element for each one that a mask chooses, a number that the values decide",
                      "use torch.where(mask, a, b) with tensors of the whole size", refusal.here())
    mask = mask.view([*mask.shape, *[1] * (x.dim() - first - mask.dim())])
    return torch.where(mask, x + values if accumulate else values.to(x.dtype), x)


def _index_add(x: Tensor, dim: int, index: Tensor, source: Tensor, alpha: float = 1) -> Tensor:
    dim %= x.dim()
    added = torch.matmul(hits(index, x.shape[dim], source.dtype).t(), source.movedim(dim, 0).reshape(index.numel(), -1))
    others = [*x.shape[:dim], *x.shape[dim + 1:]]
    added = added.reshape([x.shape[dim], *others]).movedim(0, dim)
    return x + (added if alpha == 1 else added * alpha)


def _scatter_add(x: Tensor, dim: int, index: Tensor, source: Tensor) -> Tensor:
    dim %= x.dim()
    for d in range(x.dim()):
        source = source.narrow(d, 0, index.shape[d])
    last = x.dim() - 1
    if index.dim() > 1 and dim != last and index.stride(last) == 0:
        # An index that is the same for all channels: one matrix for them.
        hit = hits(index.select(last, 0).movedim(dim, -1), x.shape[dim], source.dtype)
        added = torch.matmul(hit.transpose(-1, -2), source.movedim(dim, -2)).movedim(-2, dim)
    else:
        hit = hits(index.movedim(dim, -1), x.shape[dim], source.dtype)
        added = torch.matmul(source.movedim(dim, -1).unsqueeze(-2), hit).squeeze(-2).movedim(-1, dim)
    for d in range(x.dim()):
        if d != dim and index.shape[d] is not x.shape[d]:
            zeros = added.new_zeros([*added.shape[:d], x.shape[d] - added.shape[d], *added.shape[d + 1:]])
            added = torch.cat([added, zeros], d)
    return x + added


def _scatter_value(x: Tensor, dim: int, index: Tensor, value: float) -> Tensor:
    ones = torch.ones_like(index, dtype=torch.float32)
    return torch.where(_scatter_add(torch.zeros_like(x, dtype=torch.float32), dim, index, ones) > 0, value, x).to(x.dtype)
