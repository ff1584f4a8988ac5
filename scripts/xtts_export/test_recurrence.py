"""Recurrences in graphs: what suite/recurrences.py does not show."""

import itertools

import numpy as np
import onnx
import pytest
import torch
import torch.nn.functional as F
from torch import nn
from torch.nn.utils.rnn import pack_padded_sequence, pad_packed_sequence

from . import bundle, cost, session, writer
from .alignment import monotonic_path
from .ctc import ctc_loss
from .inputs import SEED, Input
from .joint import export
from .lowering import seeded
from .recurrence import scan
from .refusal import Refusal

X = Input("x", "f32", ("B", "T", 4))
EXAMPLE = torch.zeros(3, 5, 4)


class Loss(nn.Module):
    """The mean square of what `run` returns."""

    def __init__(self):
        super().__init__()
        torch.manual_seed(0)
        self.linear, self.other = nn.Linear(4, 4), nn.Linear(4, 4)

    def forward(self, x):
        return (self.run(x.transpose(0, 1)).square().mean(),)


def gradients(module: nn.Module, path, x: torch.Tensor) -> float:
    """The largest difference of a graph's loss and gradients from PyTorch's."""
    export(module, [X], [EXAMPLE], ("loss",), path)
    got = session.load(path)
    names = [o.name for o in got.get_outputs()]
    feed = {name: p.detach().numpy() for name, p in module.named_parameters()} | {"x": x.numpy()}
    got = dict(zip(names, got.run(names, {i.name: feed[i.name] for i in got.get_inputs()}), strict=True))
    module.zero_grad()
    loss, = module(x)
    loss.backward()
    want = {"loss": loss.detach()} | {f"grad.{name}": p.grad for name, p in module.named_parameters()}
    return max(float((torch.from_numpy(np.asarray(got[name])) - w).norm() / w.norm().clamp(min=1e-9)) for name, w in want.items())


class Nested(Loss):
    """A recurrence in the step of a recurrence."""

    def run(self, x):
        def inner(carry, items, constants):
            state = torch.tanh(carry[0] * 0.5 + items[0] * constants[0])
            return (state,), (state,)

        def outer(carry, items, constants):
            [state], [row], (weight, bias, scale) = carry, items, constants
            (last,), (states,) = scan(inner, (state,), (torch.stack([row, row * 2, F.linear(row, weight, bias)]),), (scale,))
            return (last,), (states.sum(0),)

        _, (y,) = scan(outer, (torch.zeros_like(x[0]),), (x,), (self.linear.weight, self.linear.bias, self.other.bias))
        return y + self.other.weight.sum()


class Sums(Loss):
    """A step whose gradient returns nothing for each step: its items have no gradient, and its constant's is summed."""

    def run(self, x):
        step = lambda carry, items, constants: ((carry[0] + items[0] * constants[0],), (carry[0],))
        return scan(step, (torch.zeros_like(x[0]),), (x,), (self.linear.bias,))[1][0] + self.other(self.linear(x))


class Products(Loss):
    """Two products one after the other, with one matrix twice; a carry of integers; the last carry only."""

    def run(self, x):
        def step(carry, items, constants):
            [state, count], [now], (weight, bias, second) = carry, items, constants
            state = torch.tanh(F.linear(torch.relu(F.linear(state, weight, bias)) + now, weight) + F.linear(now, second))
            return (state, count + 1), ()

        (state, count), _ = scan(step, (torch.zeros_like(x[0]), torch.zeros(x.shape[1], dtype=torch.int64)), (x,),
                                 (self.linear.weight, self.linear.bias, self.other.weight))
        return state * count[:, None] + self.other.bias


@pytest.mark.parametrize("kind", [Nested, Products, Sums])
@pytest.mark.parametrize("shape", [(1, 1, 4), (2, 7, 4)])
def test_gradients(kind, shape, tmp_path):
    assert gradients(kind(), tmp_path / "x.onnx", torch.randn(shape)) < 1e-5


class Kept(Loss):
    def run(self, x):
        return nn_gru(self, x)


def nn_gru(module, x):
    gates = F.linear(x, module.linear.weight, module.linear.bias)

    def step(carry, items, constants):
        state = torch.tanh(items[0] + F.linear(carry[0], *constants))
        return (state,), (state,)

    return scan(step, (torch.zeros_like(x[0]),), (gates,), (module.other.weight, module.other.bias))[1][0]


def test_a_step_back_has_one_product(tmp_path):
    """The products of the step are kept, and those of the weights are outside."""
    model, _ = export(Kept(), [X], [EXAMPLE], ("loss",), tmp_path / "x.onnx")
    products = [sum(node.op_type in ("Gemm", "MatMul") for a in node.attribute if a.name == "body" for node in a.g.node)
                for node in model.graph.node if node.op_type == "Scan"]
    assert products == [1, 1]


def test_same_module_same_bytes(tmp_path):
    for name in "ab":
        export(Nested(), [X], [EXAMPLE], ("loss",), tmp_path / name)
    assert (tmp_path / "a").read_bytes() == (tmp_path / "b").read_bytes()
    assert {o.domain for o in onnx.load(tmp_path / "a").opset_import} == {""}


class Attentive(Loss):
    """A step with a softmax, for which the host's compiler has no kernel."""

    def run(self, x):
        def step(carry, items, constants):
            state = torch.softmax(items[0] + F.linear(carry[0], *constants), -1)
            return (state,), (state,)

        return scan(step, (torch.zeros_like(x[0]),), (self.linear(x),), (self.other.weight, self.other.bias))[1][0]


@pytest.mark.parametrize(("kind", "slow"), [(Kept, 0), (Attentive, 2)])
def test_recurrences_without_a_kernel_are_counted(kind, slow, tmp_path, monkeypatch):
    """The others count as one node, as a kernel computes all of their steps."""
    path, module = tmp_path / "training_model.onnx", kind()
    export(module, [X], [EXAMPLE], ("loss",), path)
    found = cost.recurrences(path)
    assert len(found) == 2 and len([kinds for kinds in found if kinds]) == slow
    feed = {name: p.detach().numpy() for name, p in module.named_parameters()}
    short, long = (cost.count(path, feed | {"x": np.zeros((2, steps, 4), np.float32)}) for steps in (3, 13))
    assert long.nodes > short.nodes and (long.started > short.started) == (slow > 0)
    monkeypatch.setattr(bundle, "costs", lambda *_: iter([short, long]))
    [line] = writer._recurrences(None, {"": None}, tmp_path)
    if slow:
        assert line.startswith("warning: 2 of 2 recurrences (Scan) have ReduceSum, Softmax in a step") and f"{long.started:,} nodes" in line
    else:
        assert line.startswith("note: 2 recurrences (Scan): a kernel computes all steps") and f"{long.nodes:,} nodes" in line


class Twice(Loss):
    def run(self, x):
        def step(carry, items, constants):
            state = F.linear(carry[0], constants[0]) + constants[0].sum()
            return (state,), (state,)

        return scan(step, (x[0],), (x,), (self.linear.weight,))[1][0] + self.linear.bias + self.other(x)


def test_refuses_a_matrix_of_two_uses(tmp_path):
    with pytest.raises(Refusal, match="used in another way, too"):
        export(Twice(), [X], [EXAMPLE], ("loss",), tmp_path / "x.onnx")


@pytest.mark.parametrize("layer", [nn.LSTM(4, 3, 2, bidirectional=True), nn.GRU(4, 3), nn.RNN(4, 3, bidirectional=True)], ids=lambda x: type(x).__name__)
def test_packed_rows_equal_pytorch(layer):
    """Rows one by one, each with its own length: what is padding does not count, in either direction."""
    from .recurrent import functions
    torch.manual_seed(0)
    x, lengths = torch.randn(6, 3, 4), torch.tensor([2, 6, 4])
    want = pad_packed_sequence(layer(pack_padded_sequence(x, lengths, enforce_sorted=False))[0])[0]
    _, states = layer(pack_padded_sequence(x, lengths, enforce_sorted=False))
    with functions():
        y, got = layer(pack_padded_sequence(x, lengths, enforce_sorted=False))
        y, same = pad_packed_sequence(y)
    torch.testing.assert_close(y, want)
    torch.testing.assert_close(got, states)
    assert same is lengths


@pytest.mark.parametrize("reduction", ["mean", "sum", "none"])
def test_ctc_equals_pytorch(reduction):
    """Repeated symbols, empty targets, rows without frames, rows that cannot be spelled."""
    torch.manual_seed(0)
    targets = torch.randint(1, 4, (6, 5))
    frames, symbols = torch.tensor([12, 7, 12, 0, 3, 0]), torch.tensor([5, 3, 0, 0, 5, 2])

    def run(function):
        logits = torch.randn(12, 6, 4, generator=torch.Generator().manual_seed(1)).requires_grad_()
        loss = function(logits.log_softmax(-1), targets, frames, symbols, reduction=reduction, zero_infinity=True)
        loss.sum().backward()
        return loss.detach(), logits.grad
    for got, want in zip(run(ctc_loss), run(F.ctc_loss), strict=True):
        torch.testing.assert_close(got, want)


def test_monotonic_path_is_the_best():
    """Against all paths of short rows."""
    torch.manual_seed(0)
    symbols, frames = torch.tensor([4, 1, 3, 0]), torch.tensor([6, 5, 3, 0])
    scores = torch.randn(4, 4, 6)
    path = monotonic_path(scores, symbols, frames)
    for row in range(3):
        s, t = int(symbols[row]), int(frames[row])
        all_paths = [(0, *itertools.accumulate(moves)) for moves in itertools.product((0, 1), repeat=t - 1)]
        totals = {p: float(sum(scores[row, i, f] for f, i in enumerate(p))) for p in all_paths if p[-1] == s - 1}
        best = max(totals, key=totals.get)
        assert path[row].nonzero().tolist() == sorted([i, f] for f, i in enumerate(best))
    assert not path[3].any()


class Noisy(Loss):
    """A step that reads modules and tensors of the function around it, and draws numbers; then more numbers."""

    def __init__(self):
        super().__init__()
        self.cell = nn.LSTMCell(8, 4)

    def run(self, x):
        memory = self.linear(x).mean(0)

        def step(carry, items, constants):
            state, cell = self.cell(torch.cat([items[0], memory], -1), carry)
            # other's weight is that of a product, and read in another way, too.
            state = F.dropout(state, 0.3) * self.other.weight.mean() + 0.1 * torch.randn_like(state)
            return (state, cell), (self.other(state), memory * state)

        zero = torch.zeros_like(x[0])
        _, (y, z) = scan(step, (zero, zero), (x,), reverse=True)
        return y + z + F.dropout(torch.rand_like(y), 0.5)


@pytest.mark.parametrize("seed", [-1, 7])
def test_a_step_draws_what_a_loop_draws(seed, tmp_path):
    class Seeded(Noisy):
        def forward(self, x, seed):
            with seeded(seed):
                return super().forward(x)

    module, x, seed = Seeded(), torch.randn(6, 3, 4), torch.tensor(seed)
    export(module, [X, SEED], [EXAMPLE, torch.zeros((), dtype=torch.int64)], ("loss",), tmp_path / "x.onnx")
    graph = session.load(tmp_path / "x.onnx")
    feed = {name: p.detach().numpy() for name, p in module.named_parameters()} | {"x": x.numpy(), "seed": seed.numpy()}
    got = dict(zip([o.name for o in graph.get_outputs()], graph.run(None, {i.name: feed[i.name] for i in graph.get_inputs()}), strict=True))
    loss, = module(x, seed)
    loss.backward()
    for name, want in [("loss", loss.detach()), *((f"grad.{name}", p.grad) for name, p in module.named_parameters())]:
        torch.testing.assert_close(torch.from_numpy(np.asarray(got[name])), want, rtol=1e-4, atol=1e-6)


def test_each_step_draws_its_own():
    """In a loop and in a graph: what the steps draw are numbers of one distribution, and no two are the same."""
    def drawn(seed):
        with seeded(torch.tensor(seed)):
            return scan(lambda *_: ((), (torch.rand(500), F.dropout(torch.ones(500), 0.3))), (), (torch.zeros(40, 1),))[1]

    numbers, kept = drawn(5)
    assert len(numbers.unique()) > 0.99 * numbers.numel() and abs(numbers.mean() - 0.5) < 0.01
    kept = kept > 0
    assert abs(kept.float().mean() - 0.7) < 0.02
    # Two steps agree in 0.7² + 0.3² of the places.
    agree = (kept[:, None] == kept[None]).float().mean(-1)[~torch.eye(40, dtype=torch.bool)]
    assert abs(agree.mean() - 0.58) < 0.01 and agree.max() < 0.75
    assert (drawn(-1)[1] == 1).all()
