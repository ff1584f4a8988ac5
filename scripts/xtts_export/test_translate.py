"""What tidying takes away changes no number."""

import numpy as np
import onnx
import pytest
import torch
from torch import nn

from . import session, translate
from .inputs import Input
from .joint import export
from .refusal import Refusal


class Model(nn.Module):
    def __init__(self, body):
        super().__init__()
        self.body, self.weight = body, nn.Parameter(torch.ones(4))

    def forward(self, x):
        return (self.body(x * self.weight).sum(),)


def exported(body, path) -> tuple[Model, dict[str, np.ndarray], float]:
    """The module after a backward pass, the graph's outputs, and PyTorch's loss."""
    module, x = Model(body), torch.tensor([[0.0, 1, -2, 3], [0.5, 0, 100, 1e-3]])
    export(module, [Input("x", "f32", ("B", 4))], [torch.zeros(3, 4)], ("loss",), path)
    got = session.run(session.load(path), {"x": x.numpy(), "weight": module.weight.detach().numpy()})
    [loss] = module(x)
    loss.backward()
    return module, got, loss.item()


@pytest.mark.parametrize("body", [
    lambda x: (torch.relu(x) + 1e-8).log(), lambda x: (x.square() + 1e-9).sqrt(), lambda x: (torch.relu(x) - -1e-9).rsqrt(),
    lambda x: x * 1.000008 - x, lambda x: x / 0.999995 - x, lambda x: torch.relu(x) * 1e25 * 1e25,
], ids=["log", "sqrt", "rsqrt", "mul", "div", "overflow"])
def test_constants_near_0_and_1_stay(body, tmp_path):
    module, got, loss = exported(body, tmp_path / "x.onnx")
    np.testing.assert_allclose(got["loss"], loss, rtol=1e-5)
    np.testing.assert_allclose(got["grad.weight"], module.weight.grad.numpy(), rtol=1e-4)


def test_neutral_operations_go(tmp_path):
    _, got, loss = exported(lambda x: (x * 1.0 + 0.0 - 0.0) / 1.0, tmp_path / "x.onnx")
    assert got["loss"] == loss
    assert not {"Add", "Sub", "Div"}.intersection(node.op_type for node in onnx.load(tmp_path / "x.onnx").graph.node)


class Counted(nn.Module):
    """Views of -1 over what lies in memory in another order, and over a concatenation of two lengths."""

    def __init__(self):
        super().__init__()
        self.norm, self.linear, self.table = nn.GroupNorm(2, 4), nn.Linear(4, 4), nn.Embedding(5, 4)

    def forward(self, x, ids):
        y = self.linear(self.norm(x.transpose(1, 2)).transpose(1, 2))
        return (self.linear(torch.cat([self.table(ids), y], dim=1)).square().sum(),)


def test_counts_of_elements(tmp_path):
    module, path = Counted(), tmp_path / "x.onnx"
    export(module, [Input("x", "f32", ("B", "T", 4)), Input("ids", "i32", ("B", "N"))], [torch.zeros(3, 5, 4), torch.zeros(3, 7, dtype=torch.int32)],
           ("loss",), path)
    x, ids = torch.randn(2, 11, 4, generator=torch.Generator().manual_seed(0)), torch.arange(6, dtype=torch.int32).reshape(2, 3) % 5
    [loss] = module(x, ids)
    loss.backward()
    got = session.run(session.load(path), {"x": x.numpy(), "ids": ids.numpy(), **{name: p.detach().numpy() for name, p in module.named_parameters()}})
    np.testing.assert_allclose(got["loss"], loss.item(), rtol=1e-5)
    for name, p in module.named_parameters():
        np.testing.assert_allclose(got["grad." + name], p.grad.numpy(), rtol=1e-4, atol=1e-5, err_msg=name)


def test_what_fails_later_is_refused_too(tmp_path, monkeypatch):
    def fails(*_):
        raise RuntimeError("\x1b[31mno form\x1b[0m\nand more")

    monkeypatch.setattr(translate, "translate", fails)
    with pytest.raises(Refusal, match="the graph cannot be written: RuntimeError: no form") as caught:
        exported(lambda x: x * 2, tmp_path / "x.onnx")
    assert caught.value.hint and "\n" not in str(caught.value) and list(tmp_path.iterdir()) == []
