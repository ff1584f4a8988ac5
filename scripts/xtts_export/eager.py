"""The user's own module in eager PyTorch: the reference of every check. No function of it is replaced.

Random numbers alone are other ones: where an operator draws, it gets the numbers that the graph has for that place. Dropout in PyTorch draws by
bernoulli_ on a tensor of its own, so that is where its masks come in. Two things of PyTorch are left out, because they change no result:
torch.utils.checkpoint computes nothing again, and autocast is off, since --precision decides about precision. torch.cond and associative_scan, which
compile what they get, run as they are written.

Attention runs by PyTorch's steps in full (SDPBackend.MATH). Its fast kernel for the CPU keeps the logarithm of a sum of exponentials, of which rows
that are masked by -1e9 or less have no digits left: their gradients have weights of 1 in place of 1/n.
"""

import contextlib
from collections.abc import Iterator
from unittest import mock

import torch
from torch import Tensor
from torch.nn.attention import SDPBackend, sdpa_kernel
from torch.nn.utils import rnn
from torch.overrides import TorchFunctionMode

from . import control, derivatives, dropout, hooks, lowering, noise, swapped

aten = torch.ops.aten


def seeded(seed: Tensor | None) -> contextlib.AbstractContextManager[noise.Draws]:
    """Within it, random numbers are those of lowering.seeded."""
    return noise.Draws.of(seed, _used).used()


@contextlib.contextmanager
def _used(draws: noise.Draws) -> Iterator[None]:
    drawn = _Drawn(draws)
    plain = mock.patch.multiple(torch.amp.autocast_mode.autocast, __enter__=lambda self: self, __exit__=lambda *_: None)
    with (plain, lowering.kept(), hooks.without_gradients(), control.functions(), derivatives.functions(), _any_order(), sdpa_kernel(SDPBackend.MATH), _Asked(drawn), drawn):
        yield


@contextlib.contextmanager
def _any_order() -> Iterator[None]:
    """Packing takes rows in any order, and lengths as a batch has them: whoever packs has sorted the rows before."""
    original = swapped.copied(rnn.pack_padded_sequence)

    def packed(input, lengths, batch_first=False, enforce_sorted=True):
        return original(input, lengths.long(), batch_first, False)

    with swapped.code(rnn.pack_padded_sequence, packed):
        yield


class _Asked(TorchFunctionMode):
    """Notes which function of PyTorch is running: of a draw alone nobody can tell whether it is a mask of dropout."""

    def __init__(self, drawn: "_Drawn"):
        super().__init__()
        self.drawn = drawn

    def __torch_function__(self, function, types, args=(), kwargs=None):
        name = getattr(function, "__name__", "")
        kind = "noise" if name in _NOISE else "channels" if name in _CHANNELS else None
        former, self.drawn.kind = self.drawn.kind, kind or self.drawn.kind
        try:
            return function(*args, **(kwargs or {}))
        finally:
            self.drawn.kind = former


_NOISE = {"bernoulli", "bernoulli_", "alpha_dropout", "alpha_dropout_", "feature_alpha_dropout", "feature_alpha_dropout_"}
_CHANNELS = {"dropout1d", "dropout2d", "dropout3d", "feature_dropout", "feature_dropout_"}


class _Drawn(noise.Seeded):
    """Gives the draws of dropout its masks."""

    def __init__(self, draws: noise.Draws):
        super().__init__(draws)
        self.kind = "elements"

    def __torch_dispatch__(self, operator, types, args=(), kwargs=None):
        if operator is aten.bernoulli_.float and self.kind != "noise":
            return self._mask(args[0], args[1] if len(args) > 1 else 0.5)
        return super().__torch_dispatch__(operator, types, args, kwargs)

    def _mask(self, x: Tensor, keep: float) -> Tensor:
        """What PyTorch then divides by the part that is kept."""
        rate, masks = round(1 - keep, 12), self.draws.masks
        shape = list(x.shape[:2] if self.kind == "channels" else x.shape)
        if masks is None:
            return x.fill_(keep)
        site = self.draws.next_mask(shape, rate)
        if masks < 0:
            return x.fill_(keep)
        kept = dropout.kept(1, torch.Size(shape).numel() // shape[-1], shape[-1], rate, masks, site)
        return x.copy_(kept.reshape(x.shape))
