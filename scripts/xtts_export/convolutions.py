"""Convolutions in one, two or three dimensions as products of matrices, so that their gradients are matrix products, too."""

import functools
import math

import torch
from torch import Tensor

from . import pads, precision, refusal, windows
from .refusal import Refusal
from .windows import shifted, tupled

# A longer kernel is a window of windows: fewer copies to make, and a Concat of at most 32.
_LONGEST = 32


def convolution(axes: int, x: Tensor, weight: Tensor, bias: Tensor | None = None, stride=1, padding=0, dilation=1, groups: int = 1) -> Tensor:
    """f32[B, C_out, ...] of x f32[B, C_in, ...] with this number of further axes, as torch.nn.functional.conv1d and others.

    The copies cost kernel times the memory of x, except when every channel has a filter of its own (groups == C_in == C_out).
    """
    if x.dim() == axes + 1:
        return convolution(axes, x.unsqueeze(0), weight, bias, stride, padding, dilation, groups).squeeze(0)
    _refuse_other(x, weight.shape[1] * groups)
    kernel, stride, dilation = weight.shape[2:], tupled(stride, axes), tupled(dilation, axes)
    if min(*kernel, *stride, *dilation) < 1:
        raise Refusal(f"a convolution has the kernel {list(kernel)}, the stride {list(stride)} and the dilation {list(dilation)}", "all are at least 1", refusal.here())
    depthwise = groups == weight.shape[0] == x.shape[1] and groups > 1
    if not depthwise:
        # Before their copies are made.
        x, weight, bias = precision.operands(x, weight, bias)
    margins = _margins(padding, [d * (k - 1) for k, d in zip(kernel, dilation, strict=True)])
    if depthwise:
        for dim, (left, right) in enumerate(margins, 2):
            x = pads.constant(x, dim, left, right)
        return _depthwise(x, weight, bias, stride, dilation)
    # Groups first and channels last: the copies are rows of the product's left matrix as they are.
    x = x.unflatten(1, (groups, -1)).movedim(1, 0).movedim(2, -1) if groups > 1 else x.movedim(1, -1)
    first = x.dim() - 1 - axes
    for i, (left, right) in enumerate(margins):
        x = pads.constant(x, first + i, left, right)
        x, weight = _unfolded(x, first + i, weight, 2 + i, stride[i], dilation[i])
    # The copies of a later axis are further apart.
    flat = weight.permute(0, *range(weight.dim() - 1, 0, -1)).flatten(1)
    if groups == 1:
        return torch.nn.functional.linear(x, flat, bias).movedim(-1, 1)
    y = torch.bmm(x.flatten(1, -2), flat.unflatten(0, (groups, -1)).transpose(1, 2))
    y = y.reshape([*x.shape[:-1], y.shape[-1]]).movedim(-1, 2).movedim(0, 1).flatten(1, 2)
    return y if bias is None else y + bias.view(-1, *[1] * axes)


def _refuse_other(x: Tensor, channels: int) -> None:
    if not pads.varies(x.shape[1]) and x.shape[1] != channels:
        raise Refusal(f"a convolution of {channels} channels gets {x.shape[1]}", "channels are the second axis: [B, C, T]; y.transpose(1, 2) of [B, T, C]", refusal.here())


def _margins(padding, reach: list[int]) -> list[tuple[int, int]]:
    if padding == "same":
        # PyTorch, too, gives the odd one to the end.
        return [(n // 2, n - n // 2) for n in reach]
    return [(n, n) for n in tupled(0 if padding == "valid" else padding, len(reach))]


def _unfolded(x: Tensor, dim: int, weight: Tensor, along: int, stride: int, dilation: int) -> tuple[Tensor, Tensor]:
    """x with the copies of an axis joined as channels, and the weight, which may have got zeros along its axis."""
    kernel = weight.shape[along]
    if kernel <= _LONGEST:
        return windows.joined(shifted(x, dim, kernel, stride, dilation), -1), weight
    inner = math.isqrt(kernel - 1) + 1
    outer = -(-kernel // inner)
    more = inner * outer - kernel
    x = pads.constant(x, dim, 0, more * dilation)
    x = windows.joined(shifted(x, dim, inner, 1, dilation), -1)
    return windows.joined(shifted(x, dim, outer, stride, dilation * inner), -1), pads.constant(weight, along, 0, more)


def _depthwise(x: Tensor, weight: Tensor, bias: Tensor | None, stride: tuple[int, ...], dilation: tuple[int, ...]) -> Tensor:
    """Each channel by itself: a sum of copies times numbers, with as much memory as x."""
    def part(x: Tensor, weight: Tensor, dim: int) -> Tensor:
        # weight [C, kernels of the axes from dim on].
        if dim == x.dim():
            return weight.view(-1, *[1] * (x.dim() - 2)) * x
        copies = shifted(x, dim, weight.shape[1], stride[dim - 2], dilation[dim - 2])
        return functools.reduce(torch.add, (part(copy, weight[:, i], dim + 1) for i, copy in enumerate(copies)))
    y = part(x, weight[:, 0], 2)
    return y if bias is None else y + bias.view(-1, *[1] * (x.dim() - 2))


def transposed(axes: int, x: Tensor, weight: Tensor, bias: Tensor | None = None, stride=1, padding=0, output_padding=0, groups: int = 1, dilation=1) -> Tensor:
    """f32[B, C_out, ...] of x f32[B, C_in, ...], as torch.nn.functional.conv_transpose1d and others.

    A convolution computes the `stride` elements that belong to one step of an axis as channels of their own.
    """
    if x.dim() == axes + 1:
        return transposed(axes, x.unsqueeze(0), weight, bias, stride, padding, output_padding, groups, dilation).squeeze(0)
    _refuse_other(x, weight.shape[0])
    stride, margin, more, dilation = (tupled(given, axes) for given in (stride, padding, output_padding, dilation))
    lengths, gaps, taps = [], [], []
    if groups != x.shape[1] or groups == 1:
        x, weight, bias = precision.operands(x, weight, bias)
    weight = weight.unflatten(0, (groups, -1))
    for i in range(axes):
        dim = 3 + 2 * i
        lengths.append((x.shape[2 + i] - 1) * stride[i] - 2 * margin[i] + dilation[i] * (weight.shape[dim] - 1) + more[i] + 1)
        if stride[i] > 1 and dilation[i] > 1:
            # The kernel with its gaps as zeros.
            weight = pads.constant(weight.unsqueeze(dim + 1), dim + 1, 0, dilation[i] - 1).flatten(dim, dim + 1)
            weight = weight.narrow(dim, 0, weight.shape[dim] - dilation[i] + 1)
        gap = dilation[i] if stride[i] == 1 else 1
        gaps.append(gap)
        # Zeros up to whole steps, and for what an output's padding adds beyond them.
        kernel, beyond = weight.shape[dim], max(more[i] - margin[i], 0)
        count = kernel - (-beyond // gap) if stride[i] == 1 else -(-(kernel + beyond) // stride[i])
        taps.append(count)
        weight = pads.constant(weight, dim, 0, count * stride[i] - kernel).unflatten(dim, (count, stride[i])).flip(dim)
    # weight [groups, C_in / groups, C_out / groups, taps, stride, ...]: the elements of a step become channels.
    inner = weight.permute(0, *range(4, weight.dim(), 2), 2, 1, *range(3, weight.dim(), 2)).flatten(0, 1 + axes)
    channels = weight.shape[2]
    spread = None if bias is None else bias.view(groups, *[1] * axes, channels).expand(groups, *stride, channels).reshape(-1)
    y = convolution(axes, x, inner, spread, 1, [gap * (n - 1) for gap, n in zip(gaps, taps, strict=True)], gaps, groups)
    steps = y.shape[2:]
    y = y.reshape([y.shape[0], groups, *stride, channels, *steps])
    order = [d for i in range(axes) for d in (3 + axes + i, 2 + i)]
    y = y.permute(0, 1, 2 + axes, *order).reshape([y.shape[0], groups * channels, *(n * s for n, s in zip(steps, stride, strict=True))])
    for i in range(axes):
        y = y.narrow(2 + i, margin[i], lengths[i])
    return y


conv1d, conv2d, conv3d = (functools.partial(convolution, axes) for axes in (1, 2, 3))
conv_transpose1d, conv_transpose2d, conv_transpose3d = (functools.partial(transposed, axes) for axes in (1, 2, 3))
_BY_NAME = {"conv1d": conv1d, "conv2d": conv2d, "conv3d": conv3d,
            "conv_transpose1d": conv_transpose1d, "conv_transpose2d": conv_transpose2d, "conv_transpose3d": conv_transpose3d}
FUNCTIONS = tuple((owner, name, function) for name, function in _BY_NAME.items() for owner in (torch.nn.functional, torch))
