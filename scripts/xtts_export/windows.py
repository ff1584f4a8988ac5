"""Windows that move over an axis: what convolutions multiply, what pools average, what unfold returns.

A window is a list of shifted copies of the tensor, one for each of its places. Their gradients add up in a fixed order; that of an index would
be a scatter.
"""

import functools
import math
import operator

import torch
from torch import Tensor

from . import pads, refusal
from .refusal import Refusal


def shifted(x: Tensor, dim: int, kernel: int, stride: int = 1, dilation: int = 1) -> list[Tensor]:
    """For each place of a window, what it sees while it moves: kernel tensors with as many elements along dim as there are windows."""
    dim %= x.dim()
    size, reach = x.shape[dim], dilation * (kernel - 1)
    count = (size - reach - 1) // stride + 1
    if stride == 1:
        return [x.narrow(dim, i * dilation, count) for i in range(kernel)]
    # Elements of one remainder by the stride are neighbours in a tensor of their own, whose gradient needs no zeros in between.
    steps = count + reach // stride
    x = _first(x, dim, steps * stride, stride - 1)
    phases = x.reshape([*x.shape[:dim], steps, stride, *x.shape[dim + 1:]]).unbind(dim + 1)
    return [phases[i * dilation % stride].narrow(dim, i * dilation // stride, count) for i in range(kernel)]


def _first(x: Tensor, dim: int, size, missing: int) -> Tensor:
    """The first elements, of which up to `missing` are zeros that x does not have. Of a varying size some always remain, or none would be assumed to."""
    more = pads.UNSEEN if pads.varies(x.shape[dim]) else 0
    return pads.constant(x, dim, 0, missing + more).narrow(dim, 0, size)


def tupled(given, count: int) -> tuple[int, ...]:
    """An argument that is one number, or one for each axis."""
    return tuple(given) * (count if len(given) == 1 else 1) if isinstance(given, (list, tuple)) else (given,) * count


def _pool(name: str, axes: int, x: Tensor, kernel, stride, padding, dilation, ceil_mode: bool, between) -> tuple[Tensor, list[tuple[int, ...]]]:
    """x between its margins, and for each axis what shifted takes. between makes the margins: of x, an axis, their size and the dilation."""
    if ceil_mode:
        raise Refusal(f"{name} has ceil_mode", "pad with F.pad up to a whole window, and pool without ceil_mode", refusal.here())
    kernel = tupled(kernel, axes)
    stride, padding, dilation = tupled(stride or kernel, axes), tupled(padding, axes), tupled(dilation, axes)
    for i, size in enumerate(padding):
        x = between(x, x.dim() - axes + i, size, dilation[i])
    return x, [(i - axes, *of) for i, of in enumerate(zip(kernel, stride, dilation, strict=True))]


def _zeros(x: Tensor, dim: int, size: int, dilation: int) -> Tensor:
    return pads.constant(x, dim, size, size)


def _unchosen(x: Tensor, dim: int, size: int, dilation: int) -> Tensor:
    """Margins that change no maximum. Before x, there is what the window that begins there sees first of x: of equal elements the first gets the gradient,
    and minus infinity in its place would get that of a window that has nothing else."""
    if not size:
        return x
    first = (x if dilation == 1 else pads.constant(x, dim, 0, dilation, -math.inf)).narrow(dim, 0, dilation)
    count = -(-size // dilation)
    before = torch.cat([first] * count, dim).narrow(dim, count * dilation - size, size)
    return pads.constant(torch.cat([before, x], dim), dim, 0, size, -math.inf)


def _average_pool(axes: int):
    def pool(x: Tensor, kernel_size, stride=None, padding=0, ceil_mode: bool = False, count_include_pad: bool = True, divisor_override: int | None = None) -> Tensor:
        """torch.nn.functional.avg_pool1d and others."""
        def total(x: Tensor) -> tuple[Tensor, int]:
            x, windows = _pool("an average pool", axes, x, kernel_size, stride, padding, 1, ceil_mode, _zeros)
            for dim, kernel, step, _ in windows:
                x = functools.reduce(operator.add, shifted(x, dim, kernel, step))
            return x, functools.reduce(operator.mul, (kernel for _, kernel, _, _ in windows))
        y, count = total(x)
        if divisor_override is not None:
            return y / divisor_override
        if count_include_pad or not any(tupled(padding, axes)):
            return y / count
        return y / total(torch.ones_like(x))[0]
    return pool


def _greater(a: Tensor, b: Tensor) -> Tensor:
    """The first of equal ones gets the gradient, as in PyTorch's pools. That of torch.maximum is shared."""
    return torch.where(b > a, b, a)


def _max_pool(axes: int):
    def pool(x: Tensor, kernel_size, stride=None, padding=0, dilation=1, ceil_mode: bool = False, return_indices: bool = False) -> Tensor:
        """torch.nn.functional.max_pool1d and others."""
        if return_indices:
            raise Refusal("a maximum pool returns indices", "leave return_indices out; unpool by F.interpolate or a transposed convolution", refusal.here())
        x, windows = _pool("a maximum pool", axes, x, kernel_size, stride, padding, dilation, ceil_mode, _unchosen)
        # The last axis first: of equal elements the first in the order of rows wins.
        for dim, kernel, step, gap in reversed(windows):
            x = functools.reduce(_greater, shifted(x, dim, kernel, step, gap))
        return x
    return pool


def _adaptive(axes: int, name: str, whole):
    def pool(x: Tensor, output_size, return_indices: bool = False) -> Tensor:
        """torch.nn.functional.adaptive_avg_pool1d and others."""
        if return_indices:
            raise Refusal(f"{name} returns indices", "leave return_indices out", refusal.here())
        sizes = list(enumerate(tupled(output_size, axes)))
        # The last axis first: of equal elements the first in the order of rows is the largest. A mean has no order.
        for i, size in reversed(sizes) if whole is _largest else sizes:
            dim = i - axes
            if size is None or not pads.varies(x.shape[dim]) and size == x.shape[dim]:
                continue
            x = whole(x, dim) if size == 1 else _parts(x, dim, size, name, whole)
        return x
    return pool


def _parts(x: Tensor, dim: int, count: int, name: str, whole) -> Tensor:
    """Each output of its share of a fixed number of elements, which begin and end as PyTorch's do."""
    size = x.shape[dim]
    if not isinstance(size, int):
        raise Refusal(f"{name} makes {count} of a dynamic length", "pool to 1, or with a kernel and a stride: F.avg_pool1d", refusal.here())
    edges = [(i * size // count, -(-(i + 1) * size // count)) for i in range(count)]
    return torch.cat([whole(x.narrow(dim, start, end - start), dim) for start, end in edges], dim)


def _mean(x: Tensor, dim: int) -> Tensor:
    return x.mean(dim, keepdim=True)


def _largest(x: Tensor, dim: int) -> Tensor:
    return x.max(dim, keepdim=True).values


def frames(x: Tensor, size: int, step: int) -> Tensor:
    """[..., count, size]: the windows of the last axis, as Tensor.unfold. A window is a few whole steps, the last one cut."""
    count, taps = (x.shape[-1] - size) // step + 1, -(-size // step)
    steps = count + taps - 1
    x = _first(x, x.dim() - 1, steps * step, taps * step - size)
    x = x.reshape([*x.shape[:-1], steps, step])
    parts = [x.narrow(-2, i, count) for i in range(taps)]
    return joined(parts, -1).narrow(-1, 0, size)


def overlapped(x: Tensor, step: int) -> Tensor:
    """[..., n]: the sum of frames [..., count, size] that begin step apart, the inverse of frames but for how often an element is in them."""
    count, size = x.shape[-2:]
    taps = -(-size // step)
    parts = pads.constant(x, x.dim() - 1, 0, taps * step - size).unflatten(-1, (taps, step)).unbind(-2)
    total = functools.reduce(operator.add, (pads.constant(part, part.dim() - 2, i, taps - 1 - i) for i, part in enumerate(parts)))
    return total.flatten(-2).narrow(-1, 0, (count - 1) * step + size)


def joined(parts: list[Tensor], dim: int) -> Tensor:
    """torch.cat of equal parts. Of more than 32, which a kernel of ONNX Runtime reads from a table in host memory, by products of them."""
    while len(parts) > 32:
        group = next((n for n in range(32, 1, -1) if len(parts) % n == 0), None)
        if group is None:
            # Zeros that are cut again.
            return joined([*parts, torch.zeros_like(parts[0])], dim).narrow(dim, 0, len(parts) * parts[0].shape[dim])
        parts = [torch.cat(parts[i:i + group], dim) for i in range(0, len(parts), group)]
    return torch.cat(parts, dim) if len(parts) > 1 else parts[0]


def _unfold_axis(x: Tensor, dimension: int, size: int, step: int) -> Tensor:
    """Tensor.unfold."""
    dim = dimension % x.dim()
    return frames(x.movedim(dim, -1), size, step).movedim(-2, dim)


def unfold(x: Tensor, kernel_size, dilation=1, padding=0, stride=1) -> Tensor:
    """torch.nn.functional.unfold: f32[B, C * kernel, windows] of x f32[B, C, H, W]."""
    kernel, dilation, padding, stride = (tupled(given, 2) for given in (kernel_size, dilation, padding, stride))
    if x.dim() != 4:
        raise Refusal(f"F.unfold of {x.dim()} dimensions", "F.unfold takes [B, C, H, W]; Tensor.unfold makes windows of any dimension", refusal.here())
    x = pads.pad(x, [padding[1], padding[1], padding[0], padding[0]])
    for i in range(2):
        # [B, C, kernel of H, H', W] and then [B, C, kernel of H, kernel of W, H', W'].
        x = torch.stack(shifted(x, i - 2, kernel[i], stride[i], dilation[i]), 2 + i)
    return x.flatten(4).flatten(1, 3)


def fold(x: Tensor, output_size, kernel_size, dilation=1, padding=0, stride=1) -> Tensor:
    """torch.nn.functional.fold: the sum of the windows that unfold makes."""
    size, kernel, dilation, padding, stride = (tupled(given, 2) for given in (output_size, kernel_size, dilation, padding, stride))
    if dilation != (1, 1) or x.dim() != 3:
        raise Refusal("F.fold has a dilation or no batch", "fold f32[B, C * kernel, windows] with dilation=1", refusal.here())
    counts = [(n + 2 * margin - k) // step + 1 for n, margin, k, step in zip(size, padding, kernel, stride, strict=True)]
    x = x.reshape(x.shape[0], -1, *kernel, *counts)
    # [B, C, kernel of H, H', W' of windows, kernel of W], then [B, C, W, H', kernel of H].
    x = overlapped(x.permute(0, 1, 2, 4, 5, 3), stride[1])
    x = overlapped(x.permute(0, 1, 4, 3, 2), stride[0]).transpose(2, 3)
    for i in range(2):
        # What no window reaches is 0.
        x = pads.constant(x, 2 + i, -padding[i], padding[i] + size[i] - x.shape[2 + i])
    return x


functional = torch.nn.functional
_POOLS = {f"{kind}_pool{axes}d": make(axes) for axes in (1, 2, 3) for kind, make in (
    ("avg", _average_pool), ("max", _max_pool),
    ("adaptive_avg", lambda n: _adaptive(n, "an adaptive pool", _mean)), ("adaptive_max", lambda n: _adaptive(n, "an adaptive pool", _largest)))}
FUNCTIONS = (
    # torch.adaptive_max_pool1d returns places, too, which no replacement has.
    *((owner, name, pool) for name, pool in _POOLS.items() for owner in (functional, torch) if hasattr(owner, name) and (owner, name) != (torch, "adaptive_max_pool1d")),
    (Tensor, "unfold", _unfold_axis), (functional, "unfold", unfold), (functional, "fold", fold),
)
