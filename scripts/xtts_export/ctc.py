"""CTC loss as a recurrence over frames: the forward variables of Graves et al. 2006, in logarithms."""

import torch
from torch import Tensor

from . import refusal
from .refusal import Refusal
from .recurrence import scan

# Logarithm of what cannot be. A sum of 1e4 frames does not change it.
_NEVER = -1e30


def ctc_loss(log_probs: Tensor, targets: Tensor, input_lengths: Tensor, target_lengths: Tensor, blank: int = 0, reduction: str | int = "mean",
             zero_infinity: bool = False) -> Tensor:
    """As torch.nn.functional.ctc_loss of log_probs[T, N, C] and targets[N, S].

    The loss of a row whose target is longer than it can be spelled is 1e30, or 0 with zero_infinity, and so is its gradient 0. The gradient by
    log_probs is the derivative. PyTorch's is the one of log_softmax's input, so both are the same after a log_softmax.
    """
    if targets.dim() != 2:
        raise Refusal("ctc_loss gets the targets of all rows in one row", "give it targets of [rows, symbols], with padding", refusal.here())
    if not isinstance(input_lengths, Tensor) or not isinstance(target_lengths, Tensor):
        raise Refusal("ctc_loss gets lengths that are no tensors", "give it the inputs that have the lengths", refusal.here())
    rows, symbols = targets.shape
    # A blank before, between and after the symbols.
    labels = torch.cat([torch.full_like(targets, blank)[:, :, None], targets[:, :, None]], 2).reshape(rows, 2 * symbols).long()
    labels = torch.cat([labels, torch.full_like(targets[:, :1], blank).long()], 1)
    place = torch.arange(2 * symbols + 1)
    before = torch.cat([torch.full_like(labels[:, :2], -1), labels[:, :-2]], 1)
    skips = (place % 2 == 1) & (labels != before)
    choices = (labels[:, :, None] == torch.arange(log_probs.shape[2])).float()
    emitted = _Chosen.apply(log_probs.float(), labels, choices)
    inside = (torch.arange(log_probs.shape[0])[:, None] < input_lengths[None, :])[:, :, None]
    start = torch.where(place == 0, 0.0, _NEVER).expand(rows, -1)
    (last,), _ = scan(_step, (start,), (emitted, inside.float()), (skips.float(),))
    # The last symbol, or the blank after it.
    end = 2 * target_lengths[:, None]
    final = torch.where((place == end) | (place == end - 1), last, _NEVER)
    losses = -torch.logsumexp(final, dim=1)
    if zero_infinity:
        losses = torch.where(losses < -_NEVER / 2, losses, 0.0)
    # torch.ctc_loss has numbers for them.
    match {0: "none", 1: "mean", 2: "sum"}.get(reduction, reduction):
        case "mean":
            return (losses / target_lengths.clamp(min=1)).mean()
        case "sum":
            return losses.sum()
    return losses


def _step(carry, items, constants):
    [now], [emitted, inside], [skips] = carry, items, constants
    never = torch.full_like(now[:, :1], _NEVER)
    moved = torch.cat([never, now[:, :-1]], 1)
    jumped = torch.where(skips > 0, torch.cat([never, moved[:, :-1]], 1), _NEVER)
    top = torch.maximum(torch.maximum(now, moved), jumped).detach()
    after = top + torch.log(torch.exp(now - top) + torch.exp(moved - top) + torch.exp(jumped - top)) + emitted
    return (torch.where(inside > 0, after, now),), ()


class _Chosen(torch.autograd.Function):
    """[T, N, L] of log_probs[T, N, C] at labels[N, L]. The gradient is a product with the one-hot vectors choices[N, L, C]."""

    @staticmethod
    def forward(ctx, log_probs: Tensor, labels: Tensor, choices: Tensor) -> Tensor:
        ctx.save_for_backward(choices)
        return log_probs.gather(2, labels.expand(log_probs.shape[0], -1, -1))

    @staticmethod
    def backward(ctx, gradient: Tensor):
        [choices] = ctx.saved_tensors
        return torch.matmul(gradient.transpose(0, 1), choices).transpose(0, 1), None, None
