"""Layers whose gradients are matrix products, which is what plain ONNX, and a GPU, can do in a fixed order.

`Conv1d` takes the place of `nn.Conv1d` under the same parameters. The exporter does so by itself for whatever calls
`torch.nn.functional.conv1d` (see lowering.py); use the layer to train in PyTorch with the very arithmetic of the graph.
"""

import torch
from torch import Tensor, nn

from . import precision, refusal
from .refusal import Refusal


class Conv1d(nn.Conv1d):
    """nn.Conv1d as products of matrices with shifted copies of the input. Its state_dict is nn.Conv1d's."""

    def forward(self, x: Tensor) -> Tensor:
        if self.padding_mode != "zeros":
            raise Refusal(f"Conv1d has padding_mode {self.padding_mode!r}", "pad with torch.cat, then convolve with padding=0", refusal.here())
        return conv1d(x, self.weight, self.bias, self.stride, self.padding, self.dilation, self.groups)


def conv1d(x: Tensor, weight: Tensor, bias: Tensor | None = None, stride=1, padding=0, dilation=1, groups: int = 1) -> Tensor:
    """f32[B, C_out, T'] of x f32[B, C_in, T], as torch.nn.functional.conv1d.

    The copies cost kernel times the memory of x, except when every channel has a filter of its own (groups == C_in == C_out).
    """
    channels, kernel = weight.shape[0], weight.shape[2]
    stride, dilation = _one(stride), _one(dilation)
    reach = dilation * (kernel - 1)
    if padding in ("same", "valid"):
        # PyTorch, too, gives the odd one to the end.
        left = reach // 2 if padding == "same" else 0
        right = reach - left if padding == "same" else 0
    else:
        left = right = _one(padding)
    depthwise = groups == channels == x.shape[1] and groups > 1
    if not depthwise:
        x, weight, bias = precision.operands(x, weight, bias)
    margin = lambda size: [] if size == 0 else [torch.zeros_like(x[:, :, :1]).expand(-1, -1, size)]
    # Not F.pad: tracing it bakes in the example's sizes.
    padded = torch.cat([*margin(left), x, *margin(right)], dim=2) if left or right else x
    span = x.shape[2] + left + right - reach
    shifted = [padded[:, :, i * dilation:i * dilation + span:stride] for i in range(kernel)]
    time = shifted[0].shape[2]
    if depthwise:
        y = sum(weight[None, :, 0, i, None] * copy for i, copy in enumerate(shifted))
    elif groups == 1:
        y = torch.matmul(_flat(weight), torch.cat(shifted, dim=1))
    else:
        copies = torch.cat([copy.reshape(x.shape[0], groups, -1, time) for copy in shifted], dim=2)
        y = torch.matmul(_flat(weight).reshape(groups, channels // groups, -1), copies).reshape(x.shape[0], channels, time)
    return y if bias is None else y + bias[:, None]


def conv_transpose1d(x: Tensor, weight: Tensor, bias: Tensor | None = None, stride=1, padding=0, output_padding=0, groups: int = 1, dilation=1) -> Tensor:
    """f32[B, C_out, T'] of x f32[B, C_in, T], as torch.nn.functional.conv_transpose1d.

    A convolution computes the `stride` elements that belong to one step of x as channels of their own.
    """
    stride, margin, more = _one(stride), _one(padding), _one(output_padding)
    if groups != 1 or _one(dilation) != 1:
        raise Refusal("a transposed convolution has groups or a dilation", "convolve with conv1d, after repeat_interleave over time", refusal.here())
    inner, channels, kernel = weight.shape
    taps = -(-kernel // stride)
    if kernel % stride:
        weight = torch.cat([weight, torch.zeros_like(weight[:, :, :1]).expand(-1, -1, taps * stride - kernel)], dim=2)
    parts = [weight[:, :, i * stride:(i + 1) * stride].permute(2, 1, 0).reshape(stride * channels, inner) for i in range(taps)]
    y = conv1d(x, torch.stack(parts[::-1], dim=2), None if bias is None else bias.expand(stride, -1).reshape(-1), padding=taps - 1)
    steps = x.shape[2] + taps - 1
    y = y.reshape(x.shape[0], stride, channels, steps).permute(0, 2, 3, 1).reshape(x.shape[0], channels, steps * stride)
    if more > margin + taps * stride - kernel:
        raise Refusal("a transposed convolution has an output_padding beyond its padding", "pad its result with torch.cat", refusal.here())
    return y.narrow(2, margin, (x.shape[2] - 1) * stride - 2 * margin + kernel + more)


def _flat(weight: Tensor) -> Tensor:
    """[C_out, C_in, kernel] to [C_out, kernel * C_in]: the order in which the copies are joined."""
    return weight.transpose(1, 2).reshape(weight.shape[0], -1)


def _one(size) -> int:
    """1-D arguments may come as (n,)."""
    return size if isinstance(size, int) else size[0]
