"""Replacements for operators that plain ONNX lacks, or whose gradient would be a scatter.

A scatter that adds has no fixed order on a GPU, so that equal runs would differ: look-ups get one-hot products instead.
"""

import contextlib
import functools
import math
from collections.abc import Callable, Iterator
from unittest import mock

import torch
from torch import Tensor
from torch._decomp import core_aten_decompositions, get_decompositions
from torch.utils import checkpoint

from . import control, derivatives, groupnorm, hooks, noise, onehot, pads, recurrent, refusal, replaced, writes
from .dropout import dropout
from .refusal import Refusal

aten = torch.ops.aten
functional = torch.nn.functional

_MASKED = -1e9
# What is added to the score of a key that is left out, and the least number of a mask that adds to scores: apart, and two of each are finite.
_LEFT_OUT, _LEAST = -8e37, -4e37


@contextlib.contextmanager
def functions() -> Iterator[None]:
    """Replaces functions of PyTorch by what has a form. A decomposition would be too late: PyTorch's own run first."""
    # Where a view is written to, autograd would look at the strides of its memory, which no graph has.
    with torch.autograd.grad_mode._force_original_view_tracking(True), replaced.functions():
        yield


def seeded(seed: Tensor | None) -> contextlib.AbstractContextManager[None]:
    """Random numbers follow from the seed, each place has its own. None and a negative one switch dropout off; noise stays, always the same."""
    return noise.Draws.of(seed, _seeded).used()


@contextlib.contextmanager
def _seeded(draws: noise.Draws) -> Iterator[None]:
    def drop(x: Tensor, p: float = 0.5, training: bool = True, inplace: bool = False) -> Tensor:
        if draws.masks is None or p == 0 or not training:
            return x
        # Rows of the last axis: dropout's masks are made of a row's and a column's share.
        y = x * 0 if p == 1 else dropout(x.reshape(1, -1, x.shape[-1]), p, draws.masks, draws.next_mask(x.shape, p)).reshape(x.shape)
        return x.copy_(y) if inplace else y

    def drop_channels(x: Tensor, p: float = 0.5, training: bool = True, inplace: bool = False) -> Tensor:
        y = x * drop(torch.ones(x.shape[:2], dtype=x.dtype), p, training).view(*x.shape[:2], *[1] * (x.dim() - 2))
        return x.copy_(y) if inplace else y

    by_name = {
        "dropout": drop, "dropout1d": drop_channels, "dropout2d": drop_channels, "dropout3d": drop_channels,
        "scaled_dot_product_attention": _attention(drop), "multi_head_attention_forward": _multi_head(functional.multi_head_attention_forward),
    }
    # The precision of a graph is that of the export.
    plain = mock.patch.multiple(torch.amp.autocast_mode.autocast, __enter__=lambda self: self, __exit__=lambda *_: None)
    with (mock.patch.multiple(functional, **by_name), mock.patch.object(torch, "dropout", drop),
          mock.patch.object(torch, "dropout_", functools.partial(drop, inplace=True)), kept(), plain, hooks.without_gradients(),
          control.functions(), derivatives.functions(), recurrent.functions(), noise.Seeded(draws)):
        yield


@contextlib.contextmanager
def kept() -> Iterator[None]:
    """Both forms of torch.utils.checkpoint keep what the gradient needs, as a graph does. PyTorch's would compute it again in the backward pass, where
    random numbers would have further places; the reentrant form has a gradient in backward() only."""
    # PyTorch's generator is advanced before the function runs and after it.
    with (mock.patch.object(checkpoint, "_checkpoint_without_reentrant_generator_impl", lambda *_, **__: iter((None,))),
          mock.patch.object(checkpoint.CheckpointFunction, "apply", lambda function, preserve, *args: function(*args))):
        yield


def _multi_head(function: Callable) -> Callable:
    """nn.MultiheadAttention's steps. With weights, PyTorch has NaN in a row whose keys are all masked; finite masks leave their mean there. Without
    weights, it calls scaled_dot_product_attention."""
    @functools.wraps(function)
    def attention(*args, key_padding_mask: Tensor | None = None, attn_mask: Tensor | None = None, need_weights: bool = True, **options):
        if need_weights:
            key_padding_mask, attn_mask = _finite(key_padding_mask), _finite(attn_mask)
        return function(*args, key_padding_mask=key_padding_mask, attn_mask=attn_mask, need_weights=need_weights, **options)
    return attention


def _finite(mask: Tensor | None) -> Tensor | None:
    """A mask that is added to scores, of one that says what is left out, or that has minus infinity."""
    if mask is None:
        return None
    return mask.float() * _LEFT_OUT if mask.dtype == torch.bool else torch.where(mask > -math.inf, mask.clamp(min=_LEAST), _LEFT_OUT)


def _attention(drop: Callable) -> Callable:
    def attention(query: Tensor, key: Tensor, value: Tensor, attn_mask: Tensor | None = None, dropout_p: float = 0.0,
                  is_causal: bool = False, scale: float | None = None, enable_gqa: bool = False) -> Tensor:
        """torch's, step by step. A row whose keys are all masked is 0, as in PyTorch since 2.5; before, it was NaN."""
        if enable_gqa:
            key, value = (x.repeat_interleave(query.shape[-3] // x.shape[-3], -3) for x in (key, value))
        if is_causal:
            attn_mask = torch.arange(key.shape[-2])[None, :] <= torch.arange(query.shape[-2])[:, None]
        if attn_mask is None:
            return attend(query, key, value, None, scale=scale, drop=lambda weights: drop(weights, dropout_p))
        chosen = attn_mask.dtype == torch.bool
        added = (1 - attn_mask.float()) * _LEFT_OUT if chosen else _finite(attn_mask)
        y = attend(query, key, value, added, scale=scale, drop=lambda weights: drop(weights, dropout_p))
        if is_causal:
            return y
        seen = attn_mask if chosen else attn_mask > -math.inf
        return y * seen.any(-1, keepdim=True).to(y.dtype)
    return attention


def attend(query: Tensor, key: Tensor, value: Tensor, mask: Tensor | None = None, scale: float | None = None,
           drop: Callable[[Tensor], Tensor] = lambda weights: weights) -> Tensor:
    """Attention for masks that leave each row a key: without, a row has the mean of all. So no graph has to look for such rows."""
    # Scores in f32 whatever the precision of products, as the softmax has them.
    scores = torch.matmul(query * (1 / math.sqrt(query.shape[-1]) if scale is None else scale), key.transpose(-1, -2)).float()
    if mask is not None:
        scores = scores + ((1 - mask.to(scores.dtype)) * _MASKED if mask.dtype == torch.bool else mask.to(scores.dtype))
    return torch.matmul(drop(torch.softmax(scores, dim=-1)), value)


def decompositions() -> dict:
    """What to take apart: backward formulas without an ONNX operator. What ONNX has as one operator stays whole."""
    table = {
        **core_aten_decompositions(),
        **get_decompositions([
            aten.native_layer_norm_backward, aten._softmax_backward_data, aten._log_softmax_backward_data,
            aten.gelu_backward, aten.nll_loss_forward, aten.nll_loss2d_forward,
        ]),
        **writes.decompositions(),
        **onehot.decompositions(),
        aten.sort.stable: _sort,
        aten.clamp.default: _clamp,
        aten.cumsum.default: _cumsum,
        aten.var.correction: _var,
        aten.slice_backward.default: _slice_backward,
        aten.constant_pad_nd.default: lambda x, pad, value=0: pads.pad(x, pad, "constant", value),
        aten.empty_permuted.default: _empty_permuted,
        aten.embedding_dense_backward.default: _embedding_dense_backward,
        aten.native_group_norm_backward.default: groupnorm.gradients,
        aten.nll_loss_backward.default: _nll_loss_backward,
        aten.nll_loss2d_backward.default: _nll_loss_backward,
    }
    whole = ("aten.native_layer_norm.default", "aten._softmax.default", "aten.gelu.default", "aten.log1p", "aten.addmm")
    return {op: f for op, f in table.items() if not str(op).startswith(whole)}


def _var(x: Tensor, dim: list[int] | None = None, *, correction: float | None = None, keepdim: bool = False) -> Tensor:
    """With a count that counts.py moves to the device. torch.onnx's has one from shapes."""
    dims = [d % x.dim() for d in dim] if dim else list(range(x.dim()))
    count = 1
    for d in dims:
        count = count * x.shape[d]
    return (x - x.mean(dims, keepdim=True)).square().sum(dims, keepdim=keepdim) / (count - (1 if correction is None else correction))


def _clamp(x: Tensor, low: float | None = None, high: float | None = None) -> Tensor:
    """With both bounds of the result's type: `clamp(1e-6, 1)` has a float and an integer."""
    kinds = {type(b) for b in (low, high) if b is not None}
    # A bound that is a size has neither type.
    if kinds != {int, float} and (kinds != {float} or x.is_floating_point()):
        return NotImplemented
    x = x if x.is_floating_point() else x.to(torch.get_default_dtype())
    return torch.clamp(x, *(None if b is None else float(b) for b in (low, high)))


def _cumsum(x: Tensor, dim: int, *, dtype: torch.dtype | None = None) -> Tensor:
    """Added up in f64, as PyTorch does on a CPU. In f32 the phase of a sine is off by 1e-3 after some thousand samples."""
    x = x if dtype is None else x.to(dtype)
    return aten.cumsum.default(x.double(), dim).to(x.dtype) if x.dtype in (torch.float32, torch.bfloat16, torch.float16) else NotImplemented


def _sort(x: Tensor, *, stable: bool | None = None, dim: int = -1, descending: bool = False) -> tuple[Tensor, Tensor]:
    """ONNX takes the first of equal elements first."""
    return torch.sort(x, dim=dim, descending=descending)


def _slice_backward(grad: Tensor, sizes: list[int], dim: int, start: int, end: int, step: int) -> Tensor:
    """The gradient between zeros. PyTorch's own formula writes it into zeros, which in ONNX is a scatter."""
    dim %= len(sizes)
    start = start + sizes[dim] if start < 0 else start
    zeros = lambda count: grad.new_zeros([*sizes[:dim], count, *sizes[dim + 1:]])
    if step == 1:
        # Sizes that are 0 or 1 in the example would be taken for constants, so more zeros come and go.
        before, after = (pads.UNSEEN if pads.varies(count) else 0 for count in (start, sizes[dim] - start - grad.shape[dim]))
        whole = torch.cat([zeros(start + before), grad, zeros(sizes[dim] - start - grad.shape[dim] + after)], dim)
        return whole.narrow(dim, before, sizes[dim]) if before or after else whole
    # Each element and the step-1 zeros that follow it, as an axis of its own; then more zeros than can be missing.
    gaps = grad.unsqueeze(dim + 1)
    gaps = torch.cat([gaps, torch.zeros_like(gaps).expand([*grad.shape[:dim + 1], step - 1, *grad.shape[dim + 1:]])], dim + 1)
    spread = gaps.reshape([*grad.shape[:dim], grad.shape[dim] * step, *grad.shape[dim + 1:]])
    return torch.cat([zeros(start), spread, zeros(sizes[dim])], dim).narrow(dim, 0, sizes[dim])


def _empty_permuted(size: list[int], physical_layout: list[int], **options) -> Tensor:
    """Some formulas (silu's) create it and never read it; ONNX has no memory order."""
    options.pop("layout", None)
    return torch.zeros(size, **options)


def _embedding_dense_backward(grad: Tensor, ids: Tensor, rows: int, padding_idx: int, scale_grad_by_freq: bool) -> Tensor:
    if scale_grad_by_freq:
        raise Refusal("an embedding with scale_grad_by_freq has no gradient in plain ONNX", "leave scale_grad_by_freq out", refusal.here())
    flat = ids.reshape(-1)
    choices = torch.arange(rows, device=ids.device, dtype=ids.dtype)
    hit = (choices[:, None] == flat[None, :]).to(grad.dtype)
    if padding_idx >= 0:
        hit = hit * (flat != padding_idx).to(grad.dtype)[None, :]
    return torch.matmul(hit, grad.reshape(-1, grad.shape[-1]))


def _nll_loss_backward(grad: Tensor, x: Tensor, target: Tensor, weight: Tensor | None, reduction: int, ignore_index: int, total: Tensor) -> Tensor:
    """Of x[N, C, ...]: minus the one-hot of the target, times the class's weight and what came in."""
    shape = [1, -1] + [1] * (x.dim() - 2)
    choices = torch.arange(x.shape[1], device=x.device, dtype=target.dtype).view(shape)
    hit = (choices == target.unsqueeze(1)).to(x.dtype)
    if weight is not None:
        hit = hit * weight.view(shape)
    hit = hit * (target != ignore_index).to(x.dtype).unsqueeze(1)
    match reduction:
        case 0:
            grad = grad.unsqueeze(1)
        case 1:
            grad = grad / total
    return -hit * grad
