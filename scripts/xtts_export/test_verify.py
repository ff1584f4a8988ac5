"""The check against PyTorch tells rounding from an error, also where a gradient is nothing but rounding."""

import re

import numpy as np
import pytest
import torch
import torch.nn.functional as F
from torch import nn

from . import reference, verify
from .inputs import batch
from .refusal import Refusal
from .suite.case import SIZES, WIDTH, Case, errors, write


class BeforeNorms(Case):
    """The gradients of both biases are zero in exact arithmetic."""

    def __init__(self):
        super().__init__()
        self.linear, self.conv, self.norm = nn.Linear(WIDTH, WIDTH), nn.Conv1d(WIDTH, WIDTH, 1), nn.InstanceNorm1d(WIDTH)

    def forward(self, x):
        return self.norm(self.conv(self.linear(x).mT)).mT


class FirstPhases(Case):
    """The first frame is symmetric by its padding, so its spectrum is real: rounding decides whether the phases of
    negative numbers are pi or -pi."""

    def __init__(self):
        super().__init__()
        self.linear, self.mix = nn.Linear(WIDTH, 1), nn.Linear(9, 4)

    def forward(self, x):
        signal = self.linear(x).squeeze(2) + torch.arange(x.shape[1]).square().sin()
        z = torch.stft(signal, 16, 4, 16, torch.hann_window(16), return_complex=True)
        return torch.tanh(self.mix(z.angle().mT))


class Shift(Case):
    """All gradients are rounding."""

    def __init__(self):
        super().__init__()
        self.shift = nn.Parameter(torch.zeros(WIDTH))

    def forward(self, x):
        return (x + self.shift).softmax(1)


@pytest.fixture(autouse=True)
def same_weights():
    torch.manual_seed(0)


@pytest.mark.parametrize("case", [BeforeNorms, Shift])
def test_rounding_passes(case, tmp_path):
    assert errors(case(), tmp_path / "x.onnx") <= case.tolerance


@pytest.fixture(scope="module")
def graph(tmp_path_factory):
    """A graph that passes."""
    torch.manual_seed(0)
    path = tmp_path_factory.mktemp("verify") / "x.onnx"
    export, step = write(BeforeNorms(), path)
    verify.check(export, step, SIZES[1][0], path)
    return export, step, path


@pytest.mark.parametrize(("name", "wrong"), [
    ("grad.conv.bias", lambda x, norm: x + 1e-2 * norm),
    ("grad.linear.bias", lambda x, norm: x + 1e-2 * norm),
    ("grad.linear.weight", lambda x, norm: 1.02 * x),
    ("grad.conv.weight", lambda x, norm: -x),
    ("loss", lambda x, norm: 1.02 * x),
])
def test_an_error_does_not(name, wrong, graph, monkeypatch):
    """One percent of the norm of all gradients, where a gradient is nothing but rounding."""
    export, step, path = graph
    run = verify.Graph.run

    def other(graph: verify.Graph, *args, **kwargs):
        got = run(graph, *args, **kwargs)
        norm = float(torch.tensor([(torch.from_numpy(x) ** 2).sum() for key, x in got.items() if key.startswith("grad.")]).sum().sqrt())
        return got | {name: wrong(got[name], norm)}

    monkeypatch.setattr(verify.Graph, "run", other)
    with pytest.raises(Refusal, match=f"{name} of the graph differs from PyTorch's"):
        verify.check(export, step, SIZES[1][0], path)


def test_phases_that_rounding_turns_pass_and_are_named(tmp_path, capsys, monkeypatch):
    export, step = write(FirstPhases(), tmp_path / "x.onnx")
    assert verify.check(export, step, SIZES[1][0], tmp_path / "x.onnx")[0] < 1e-4
    line = (r"  rounding decides 1 phase of pi or -pi, .*test_verify.py:\d+ \(.*angle.*\): this changes grad.mix.weight by 4.*e-01, "
            r"and decided as in the graph, PyTorch agrees with it\n")
    assert re.match(line, capsys.readouterr().out)
    graph = verify.Graph(export, tmp_path / "x.onnx")
    graph.run(batch(export.inputs, SIZES[1][0], np.random.default_rng(1)))
    assert [x.shape for x in graph.chosen()] == [(3, 9, 7)]
    # An error of the size that such a phase turns the gradient by is none of them.
    run = verify.Graph.run
    for wrong in (lambda x: 1.03 * x, lambda x: x + 0.03 * abs(x).max()):
        def other(graph: verify.Graph, *args, wrong=wrong, **kwargs):
            got = run(graph, *args, **kwargs)
            return got | {"grad.mix.weight": wrong(got["grad.mix.weight"])}

        monkeypatch.setattr(verify.Graph, "run", other)
        with pytest.raises(Refusal, match="grad.mix.weight of the graph differs from PyTorch's"):
            verify.check(export, step, SIZES[1][0], tmp_path / "x.onnx")


def test_other_random_numbers_are_no_rounding():
    far = reference.moved(lambda tensors: {"y": F.dropout(tensors["x"], 0.5)}, [], {"x": torch.ones(100)})
    assert far["y"] < 1e-4


def test_weights_are_left_as_they_were():
    weight, x = torch.randn(4, requires_grad=True), {"x": torch.ones(4), "ids": torch.arange(4)}
    before = weight.detach().clone()
    far = reference.moved(lambda tensors: {"y": (weight * tensors["x"] * tensors["ids"]).detach()}, [weight], x)
    assert 0 < far["y"] < 1e-5 and torch.equal(weight, before)
