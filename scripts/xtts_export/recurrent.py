"""nn.GRU, nn.LSTM and nn.RNN over a dynamic length, as recurrences of recurrence.py, and their cells, with the formulas of PyTorch's documentation.

What does not depend on the past, the product with the input, is one product over all frames. Packed sequences are padded ones whose
state does not change after a row's length, so that the backward direction begins at its last frame.
"""

import contextlib
from collections.abc import Callable, Iterator
from typing import NamedTuple
from unittest import mock

import torch
from torch import Tensor, nn
from torch.nn.utils import rnn

from . import precision, refusal, swapped
from .refusal import Refusal
from .recurrence import scan, traced

functional = torch.nn.functional


class Packed(NamedTuple):
    """What takes the place of a PackedSequence: x[T, B, ...] and the lengths of its rows."""

    x: Tensor
    lengths: Tensor


@contextlib.contextmanager
def functions() -> Iterator[None]:
    """Replaces the layers' forward where a graph is traced, sequences are packed or products are in bf16, and packing itself."""
    with contextlib.ExitStack() as stack:
        for kind in nn.RNN, nn.GRU, nn.LSTM:
            stack.enter_context(mock.patch.object(kind, "forward", _instead_of(kind.forward)))
        for name, mode in ("gru_cell", "GRU"), ("lstm_cell", "LSTM"), ("rnn_tanh_cell", "RNN_TANH"), ("rnn_relu_cell", "RNN_RELU"):
            for owner in torch, torch._VF:
                stack.enter_context(mock.patch.object(owner, name, _one_step(mode)))
        stack.enter_context(swapped.code(rnn.pack_padded_sequence, _pack))
        stack.enter_context(swapped.code(rnn.pad_packed_sequence, _pad))
        yield


def _instead_of(original: Callable) -> Callable:
    def forward(self: nn.RNNBase, input: Tensor | Packed, hx=None):
        packed = isinstance(input, Packed)
        # PyTorch's own takes one type for all, where a policy gives bf16 to products only.
        return _forward(self, input, hx) if packed or traced(input) or precision.mixing() else original(self, input, hx)
    return forward


def _one_step(mode: str) -> Callable:
    """torch.gru_cell and the like. PyTorch's own have the example's number of rows."""
    def cell(input: Tensor, hx: Tensor | tuple[Tensor, Tensor], w_ih: Tensor, w_hh: Tensor, b_ih: Tensor | None = None, b_hh: Tensor | None = None):
        carry = tuple(h.float() for h in ((hx,) if isinstance(hx, Tensor) else hx))
        after = _CELLS[mode](carry, functional.linear(input, w_ih, b_ih).float(), [c for c in (w_hh, b_hh) if c is not None])
        return after if mode == "LSTM" else after[0]
    return cell


def _pack(input: Tensor, lengths: Tensor, batch_first: bool = False, enforce_sorted: bool = True) -> Packed:
    if not isinstance(lengths, Tensor):
        raise Refusal("pack_padded_sequence gets lengths that are no tensor", "give it the input that has the lengths", refusal.here())
    return Packed(input.transpose(0, 1) if batch_first else input, lengths)


def _pad(sequence: Packed, batch_first: bool = False, padding_value: float = 0.0, total_length: int | None = None) -> tuple[Tensor, Tensor]:
    """Of the length that was packed: the longest row's would depend on values."""
    x = sequence.x if padding_value == 0 else torch.where(_inside(sequence), sequence.x, padding_value)
    return (x.transpose(0, 1) if batch_first else x), sequence.lengths


def _inside(sequence: Packed) -> Tensor:
    """bool[T, B, 1]."""
    return (torch.arange(sequence.x.shape[0])[:, None] < sequence.lengths[None, :])[..., None]


def _forward(self: nn.RNNBase, input: Tensor | Packed, hx: Tensor | tuple[Tensor, Tensor] | None = None):
    packed = isinstance(input, Packed)
    x = input.x if packed else input
    single = x.dim() == 2
    if single:
        x, hx = x.unsqueeze(1), _each(hx, lambda h: h.unsqueeze(1))
    elif self.batch_first and not packed:
        x = x.transpose(0, 1)
    inside = _inside(input).float() if packed else None
    kind, lasts = type(self), []
    for layer in range(self.num_layers):
        sides = []
        for side in range(1 + self.bidirectional):
            number = layer * (1 + self.bidirectional) + side
            start = None if hx is None else _each(hx, lambda h: h[number])
            y, last = _run(self, f"_l{layer}{'_reverse' if side else ''}", x, start, inside, bool(side))
            sides.append(y)
            lasts.append(last)
        x = torch.cat(sides, dim=-1) if len(sides) > 1 else sides[0]
        if self.dropout and layer < self.num_layers - 1:
            x = functional.dropout(x, self.dropout, self.training)
    states = [torch.stack(parts) for parts in zip(*lasts, strict=True)]
    if single:
        x, states = x.squeeze(1), [h.squeeze(1) for h in states]
    elif self.batch_first and not packed:
        x = x.transpose(0, 1)
    return (Packed(x, input.lengths) if packed else x), (tuple(states) if kind is nn.LSTM else states[0])


def _each(hx: Tensor | tuple[Tensor, Tensor] | None, change):
    return None if hx is None else change(hx) if isinstance(hx, Tensor) else tuple(change(h) for h in hx)


def _run(layer: nn.RNNBase, suffix: str, x: Tensor, start: Tensor | tuple | None, inside: Tensor | None, reverse: bool) -> tuple[Tensor, tuple[Tensor, ...]]:
    """One direction of one layer: its results, and its last state."""
    of = lambda name: getattr(layer, name + suffix, None)
    gates = functional.linear(x, of("weight_ih"), of("bias_ih")).float()
    start = () if start is None else (start,) if isinstance(start, Tensor) else start
    sizes = [layer.proj_size or layer.hidden_size, *[layer.hidden_size] * isinstance(layer, nn.LSTM)]
    carry = start or tuple(gates.new_zeros(gates.shape[1], size) for size in sizes)
    constants = [c for c in (of("weight_hh"), of("bias_hh"), of("weight_hr")) if c is not None]
    cell = _CELLS[layer.mode]

    def step(carry, items, constants):
        after = cell(carry, items[0], constants)
        if inside is None:
            return after, after[:1]
        kept = items[1]
        return tuple(a * kept + b * (1 - kept) for a, b in zip(after, carry, strict=True)), (after[0] * kept,)

    last, (y,) = scan(step, carry, (gates,) if inside is None else (gates, inside), constants, reverse)
    return y, last


# From a state, the input's part of the gates, and W_hh, b_hh and W_hr, where they are, to the next state.

def _gru(carry, gates, constants):
    [h] = carry
    hidden = functional.linear(h, *constants)
    (reset, update, new), (hidden_reset, hidden_update, hidden_new) = gates.chunk(3, -1), hidden.chunk(3, -1)
    update = torch.sigmoid(update + hidden_update)
    new = torch.tanh(new + torch.sigmoid(reset + hidden_reset) * hidden_new)
    return ((1 - update) * new + update * h,)


def _lstm(carry, gates, constants):
    h, c = carry
    biased = len(constants) > 1 and constants[1].dim() == 1
    hidden = functional.linear(h, *constants[:1 + biased])
    enter, forget, new, leave = (gates + hidden).chunk(4, -1)
    c = torch.sigmoid(forget) * c + torch.sigmoid(enter) * torch.tanh(new)
    h = torch.sigmoid(leave) * torch.tanh(c)
    for projection in constants[1 + biased:]:
        h = functional.linear(h, projection)
    return h, c


def _rnn(activation):
    return lambda carry, gates, constants: (activation(gates + functional.linear(carry[0], *constants)),)


_CELLS = {"GRU": _gru, "LSTM": _lstm, "RNN_TANH": _rnn(torch.tanh), "RNN_RELU": _rnn(torch.relu)}
