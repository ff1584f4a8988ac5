"""Each operator, function and layer that lowering.py, groupnorm.py, onehot.py, writes.py, batchnorm.py and recurrent.py compute in another way, beside PyTorch's own.

Random calls with equal elements, zeros and masks. Functions and layers are compared with their gradients.
"""

import contextlib
import inspect
import math
from collections.abc import Callable
from unittest import mock

import numpy as np
import pytest
import torch
import torch.nn.functional as F
from torch import Tensor, nn
from torch.nn.attention import SDPBackend, sdpa_kernel
from torch.nn.utils import rnn

from . import batchnorm, groupnorm, lowering, onehot, recurrence, recurrent, writes
from .test_replacements import Random, _run

CALLS = 60
TOLERANCE = 2e-5
aten = torch.ops.aten


def _ids(r: Random, below: int, shape: list[int]) -> Tensor:
    return torch.from_numpy(r.integers(0, below, shape))


def _plain(r: Random, *shape: int) -> Tensor:
    return r.tensor(*shape).detach()


def _indexed(r: Random) -> tuple[list, dict]:
    """Neighbours, others between, negative indices."""
    places = r.one([_ids(r, 4, [2, 3])], [None, _ids(r, 5, [3]) - 5], [_ids(r, 4, [3]), _ids(r, 5, [2, 1])], [_ids(r, 4, [2]), None, _ids(r, 3, [2])])
    return [_plain(r, 4, 5, 3), places], {}


def _put(r: Random) -> tuple[list, dict]:
    """No place is written twice, but for sums."""
    add = bool(r.integers(2))
    rows = _ids(r, 6, [4]) if add else torch.from_numpy(r.permutation(6)[:4].copy())
    if r.integers(2):
        return [_plain(r, 6, 3), [rows], _plain(r, 4, 3), add], {}
    return [_plain(r, 6, 3), [_plain(r, 6, 3) > 0], _plain(r, 1)[0], add], {}


def _scattered(r: Random) -> tuple[list, dict]:
    dim, shape = int(r.integers(2)), [4, 5]
    index = _ids(r, shape[dim], [int(r.integers(1, 4)), int(r.integers(1, 5))])
    return [_plain(r, *shape), dim, index, _plain(r, 4, 5)], {}


def _nll(d: int) -> Callable:
    def call(r: Random):
        shape = [3, 2, 4][:d]
        x, target = _plain(r, *shape[:1], 5, *shape[1:]), _ids(r, 5, shape)
        weight, reduction = r.one(None, torch.rand(5) + 0.5), int(r.integers(3))
        ignore = int(r.one(-100, 2))
        y, total = (aten.nll_loss_forward if d == 1 else aten.nll_loss2d_forward)(x, target, weight, reduction, ignore)
        return [torch.randn_like(y), x, target, weight, reduction, ignore, total], {}
    return call


def _group(r: Random) -> tuple[list, dict]:
    x, weight = _plain(r, 2, 6, 5), r.one(None, torch.randn(6))
    _, mean, rstd = aten.native_group_norm(x, weight, None, 2, 6, 5, 3, 1e-5)
    return [torch.randn(2, 6, 5), x, mean, rstd, weight, 2, 6, 5, 3, [True, weight is not None, True]], {}


def _part(r: Random) -> tuple[int, int, int, int]:
    """An axis of [4, 7], from where to where, the step."""
    dim = int(r.integers(2))
    start = int(r.integers(0, [4, 7][dim]))
    return dim, start, int(r.integers(start + 1, [4, 7][dim] + 1)), int(r.integers(1, 4))


def _sliced(r: Random) -> tuple[list, dict]:
    dim, start, end, step = _part(r)
    x = _plain(r, 4, 7)
    return [x, _plain(r, *aten.slice(x, dim, start, end, step).shape), dim, start, end, step], {}


def _slice_gradient(r: Random) -> tuple[list, dict]:
    dim, start, end, step = _part(r)
    return [_plain(r, *aten.slice(torch.empty(4, 7), dim, start, end, step).shape), [4, 7], dim, start, end, step], {}


def _diagonal(r: Random) -> tuple[int, list[int]]:
    offset = int(r.integers(-2, 3))
    return offset, list(torch.empty(2, 4, 5).diagonal(offset, 1, 2).shape)


OPERATORS: dict[object, Callable[[Random], tuple[list, dict]]] = {
    aten.index.Tensor: _indexed, aten._unsafe_index.Tensor: _indexed, aten.index_put.default: _put, aten._unsafe_index_put.default: _put,
    aten.index_add.default: lambda r: ([_plain(r, 4, 5), 1, _ids(r, 5, [3]), _plain(r, 4, 3)], {"alpha": float(r.one(1, 0.5))}),
    aten.scatter_add.default: _scattered, aten.scatter.value: lambda r: ([*_scattered(r)[0][:3], 1.5], {}),
    aten.copy.default: lambda r: ([_plain(r, 4, 5), r.one(_plain(r, 4, 5), _plain(r, 5), _ids(r, 3, [4, 1]))], {}),
    aten.slice_scatter.default: _sliced, aten.slice_backward.default: _slice_gradient,
    aten.select_scatter.default: lambda r: ([_plain(r, 4, 5), _plain(r, 4), 1, int(r.integers(-5, 5))], {}),
    aten.diagonal_scatter.default: lambda r: ((lambda d: [_plain(r, 2, 4, 5), _plain(r, *d[1]), d[0], 1, 2])(_diagonal(r)), {}),
    aten.diagonal_backward.default: lambda r: ((lambda d: [_plain(r, *d[1]), [2, 4, 5], d[0], 1, 2])(_diagonal(r)), {}),
    aten.sort.stable: lambda r: ([r.tied(4, 6).detach()], {"stable": True, "dim": int(r.integers(-2, 2)), "descending": bool(r.integers(2))}),
    aten.clamp.default: lambda r: ([r.tied(3, 4).detach(), 0.5, 1], {}) if r.integers(2) else ([_ids(r, 9, [5]), 2, 4.5], {}),
    aten.cumsum.default: lambda r: ([_plain(r, 3, 40), int(r.integers(2))], {"dtype": r.one(None, torch.float64)}),
    aten.var.correction: lambda r: ([_plain(r, 3, 4, 5), r.one(None, [1], [0, -1])], {"correction": float(r.one(0, 1)), "keepdim": bool(r.integers(2))}),
    aten.constant_pad_nd.default: lambda r: ([_plain(r, 3, 6), [int(r.integers(-2, 4)) for _ in range(4)], float(r.one(0, 1.5))], {}),
    aten.embedding_dense_backward.default: lambda r: ([_plain(r, 2, 7, 3), _ids(r, 5, [2, 7]), 5, int(r.one(-1, 2)), False], {}),
    aten.native_group_norm_backward.default: _group, aten.nll_loss_backward.default: _nll(1), aten.nll_loss2d_backward.default: _nll(3),
}
# Memory without content.
EMPTY = {aten.new_empty_strided.default, aten.empty_permuted.default}
OURS = (lowering, groupnorm, onehot, writes)


def _compare(got: list[Tensor], want: list[Tensor], call: object, tolerance: float = TOLERANCE) -> None:
    assert [x.shape for x in got] == [x.shape for x in want] and [x.dtype for x in got] == [x.dtype for x in want], call
    for a, b in zip(got, want, strict=True):
        a, b = torch.where(b.isnan(), 0, a), b.nan_to_num(0, math.inf, -math.inf) if b.is_floating_point() else b
        near = (a == b) | ((a - b).abs() <= tolerance * max(1.0, float(b.double().nan_to_num(0, 0, 0).abs().max()) if b.numel() else 0))
        assert near.all(), (call, a, b)


def _tensors(result: object) -> list[Tensor]:
    return [x for x in (result if isinstance(result, tuple | list) else [result]) if x is not None]


@pytest.mark.parametrize("operator", OPERATORS, ids=str)
def test_an_operator(operator):
    r, ours, calls = Random(np.random.PCG64(0)), lowering.decompositions()[operator], 0
    torch.manual_seed(0)
    for _ in range(CALLS):
        args, options = OPERATORS[operator](r)
        try:
            want = _tensors(operator(*args, **options))
        except RuntimeError:
            continue  # PyTorch does not take these
        if (got := ours(*args, **options)) is not NotImplemented:
            calls += 1
            _compare(_tensors(got), want, (args, options))
    assert calls >= CALLS // 4


def test_every_operator_has_arguments():
    own = {op for op, f in lowering.decompositions().items() if getattr(inspect.getmodule(f), "__name__", "") in {m.__name__ for m in OURS}}
    assert own == OPERATORS.keys() | EMPTY


def _mask(r: Random, *shape: int) -> Tensor:
    """What is left out, by booleans or numbers; a row may have nothing left."""
    mask = torch.from_numpy(r.random(shape)) > 0.4
    least = r.one(-math.inf, -1e4, -1e9, -1e10, torch.finfo(torch.float32).min)
    mixed = torch.where(torch.from_numpy(r.random(shape)) > 0.5, -math.inf, least)
    return r.one(mask, torch.where(mask, 0.0, least), torch.where(mask, 0.0, mixed), torch.where(mask, torch.randn(shape), -math.inf))


def _attended(r: Random) -> tuple[list, dict]:
    heads = int(r.one(1, 2))
    q, k = r.tensor(2, 2, 4, 3), r.tensor(2, heads, r.one(4, 5), 3)
    v = r.tensor(*k.shape)
    options = {"enable_gqa": heads == 1, "scale": r.one(None, 0.3)}
    return [q, k, v], options | r.one({}, {"is_causal": True}, {"attn_mask": _mask(r, 2, 1, 4, k.shape[2])}, {"attn_mask": _mask(r, 4, k.shape[2])})


def _heads(r: Random) -> tuple[list, dict]:
    """With the weights, PyTorch has NaN where nothing is left: each row has a key."""
    x, weights = r.tensor(4, 2, 6), bool(r.integers(2))
    options = {"training": False, "need_weights": weights, "average_attn_weights": bool(r.integers(2))}
    if r.integers(2):
        mask = _mask(r, 4, 4)
        first = torch.zeros(4, 4, dtype=torch.bool)
        first[:, 0] = True
        options["attn_mask"] = torch.where(first, torch.zeros((), dtype=mask.dtype), mask.logical_not() if mask.dtype == torch.bool else mask)
    if r.integers(2):
        options["key_padding_mask"] = r.one(torch.tensor([[False, False, True, True], [False] * 4]), torch.tensor([[0, 0, -math.inf, -1e9], [0.0] * 4]))
    return [x, x.detach() + 0.5, r.tensor(4, 2, 6), 6, 2, r.tensor(18, 6), r.tensor(18), None, None, False, 0.0, r.tensor(6, 6), r.tensor(6)], options


def _normalized(r: Random) -> tuple[list, dict]:
    of = r.tensor(*r.one([4, 3], [4, 3, 5], [4, 3, 2, 3]))
    running = [torch.randn(3), torch.rand(3) + 0.5]
    training = bool(r.integers(2))
    return [of, *(r.one(running, [None, None]) if training else running), *r.one([None, None], [r.tensor(3), r.tensor(3)]), training], {}


def _cell(gates: int, states: int) -> Callable:
    def call(r: Random):
        hidden = [r.tensor(2, 4) for _ in range(states)]
        biases = r.one([None, None], [r.tensor(4 * gates), r.tensor(4 * gates)])
        return [r.tensor(2, 3), *hidden, r.tensor(4 * gates, 3), r.tensor(4 * gates, 4), *biases], {}
    return call


def _lstm_cell(x: Tensor, h: Tensor, c: Tensor, *weights: Tensor | None):
    return torch.lstm_cell(x, (h, c), *weights)


@contextlib.contextmanager
def _swapped():
    """As a graph is traced, without dropout."""
    with (lowering.seeded(torch.tensor(-1)), lowering.functions(), batchnorm.counting(lambda: None), mock.patch.object(recurrent, "traced", lambda *_: True)):
        yield


FUNCTIONS: dict[str, tuple[Callable, Callable[[Random], tuple[list, dict]], float]] = {
    "scaled_dot_product_attention": (lambda *a, **o: F.scaled_dot_product_attention(*a, **o), _attended, 1e-4),
    "multi_head_attention_forward": (lambda *a, **o: tuple(x for x in F.multi_head_attention_forward(*a, **o) if x is not None), _heads, 1e-4),
    "batch_norm": (lambda *a, **o: F.batch_norm(*a, **o), _normalized, 1e-3),
    "instance_norm": (lambda *a, **o: F.instance_norm(*a, **o), lambda r: ([r.tensor(2, 3, 7), None, None, *r.one([None, None], [r.tensor(3), r.tensor(3)])], {}), 1e-3),
    "gru_cell": (lambda *a: torch.gru_cell(*a), _cell(3, 1), 1e-4), "lstm_cell": (_lstm_cell, _cell(4, 2), 1e-4),
    "rnn_tanh_cell": (lambda *a: torch.rnn_tanh_cell(*a), _cell(1, 1), 1e-4), "rnn_relu_cell": (lambda *a: torch.rnn_relu_cell(*a), _cell(1, 1), 1e-4),
}


@pytest.mark.parametrize("name", FUNCTIONS)
def test_a_function(name):
    function, arguments, tolerance = FUNCTIONS[name]
    r, calls = Random(np.random.PCG64(0)), []
    torch.manual_seed(0)
    with sdpa_kernel(SDPBackend.MATH):
        for _ in range(CALLS):
            args, options = arguments(r)
            calls.append((args, options, _run(function, args, options)))
    with _swapped():
        for args, options, want in calls:
            _compare(_run(function, args, options), want, (args, options), tolerance)


@pytest.mark.parametrize("kind", [nn.RNN, nn.GRU, nn.LSTM])
def test_a_recurrent_layer(kind):
    """Padded and packed, in both directions, with every number of layers."""
    torch.manual_seed(0)
    for layers, both, packed, first in ((1, False, False, True), (2, True, False, False), (2, True, True, True), (1, False, True, False)):
        layer, x, lengths = kind(3, 4, layers, bidirectional=both, batch_first=first), torch.randn(2, 5, 3), torch.tensor([5, 3])

        def run(x: Tensor, layer=layer, packed=packed, first=first, lengths=lengths) -> tuple[Tensor, ...]:
            x = x if first else x.transpose(0, 1)
            y, state = layer(rnn.pack_padded_sequence(x, lengths, first) if packed else x)
            y = rnn.pad_packed_sequence(y, first)[0] if packed else y
            return (y, *state) if isinstance(state, tuple) else (y, state)

        weights, x = list(layer.parameters()), x.requires_grad_()
        results = lambda: (lambda y: [*y, *torch.autograd.grad(sum(part.sin().sum() for part in y), [x, *weights])])(run(x))
        want = results()
        with _swapped(), mock.patch.object(recurrent, "scan", recurrence._loop):
            _compare(results(), want, (kind, layers, both, packed), 1e-4)
