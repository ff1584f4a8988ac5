"""Inference graphs: what they take, and what is refused. The host's tests read the entries; the graphs of XTTS are in xtts/."""

import numpy as np
import pytest
import torch
from safetensors.numpy import load_file
from torch import nn

from . import inferencegraph, session
from .inference import Inference
from .inputs import Input
from .refusal import Refusal

WAVE = [Input("x", "f32", ("B", "T", 3), lengths="n"), Input("n", "i32", ("B",))]


class Decoder(nn.Module):
    """A layer of another model, a table of its own, and what it has seen before."""

    def __init__(self, layer: nn.Module):
        super().__init__()
        self.layer = layer
        self.register_buffer("table", torch.arange(12.0).view(4, 3))

    def forward(self, code, past):
        step = self.layer(self.table[code.long()])[:, None]
        return step, torch.cat([past, step], 1)


def entry(module: nn.Module, **changed) -> Inference:
    return Inference("part", "stage", module, WAVE, [Input("y", "f32", ("B", "T", 3), lengths="n")], {"B": 3, "T": 7}, sample_rate=16000, **changed)


def test_a_graph_takes_parameters_and_its_own_weights(tmp_path):
    layer, cache = nn.Linear(3, 5), ("B", "T_past", 5)
    step = Inference("step", "decode", Decoder(layer), [Input("code", "i32", ("B",), below=4), Input("past", "f32", cache)],
                     [Input("y", "f32", ("B", 1, 5)), Input("next", "f32", ("B", "T_next", 5))], {"B": 2, "T_past": 3}, feeds={"next": "past"})
    document = inferencegraph.write(step, {"model.weight": layer.weight, "model.bias": layer.bias, "model.other": nn.Parameter(torch.ones(1))}, tmp_path)
    assert document["weights"] == "step.safetensors" and document["outputs"][1]["feeds"] == "past"
    own, graph = load_file(tmp_path / "step.safetensors"), session.load(tmp_path / "step.onnx")
    assert own.keys() == {"table"} and {i.name for i in graph.get_inputs()} == {"code", "past", "model.weight", "model.bias", "table"}
    given = {"model.weight": np.ones((5, 3), np.float32), "model.bias": np.zeros(5, np.float32), "code": np.array([2], np.int32), "past": np.zeros((1, 6, 5), np.float32)}
    made = session.run(graph, given | own)
    assert made["y"].tolist() == [[[21.0] * 5]] and made["next"].shape == (1, 7, 5)


class Reversed(nn.Module):
    def forward(self, x, n):
        return x.flip(1)


class Unused(nn.Module):
    def __init__(self):
        super().__init__()
        self.spare = nn.Parameter(torch.ones(2))

    def forward(self, x, n):
        return 2 * x


class Named(nn.Module):
    def __init__(self):
        super().__init__()
        self.x = nn.Parameter(torch.ones(1))

    def forward(self, x, n):
        return self.x * x


class Double(nn.Module):
    def forward(self, x, n):
        return x.double()


class Branch(nn.Module):
    def forward(self, x, n):
        return x if n.sum() > 3 else -x


@pytest.mark.parametrize(("module", "message"), [
    (Reversed(), "y of the inference graph part differs from the row in a batch by"),
    (Unused(), "spare of the inference graph part is not used"),
    (Named(), "x is a tensor of the inference graph part, and the name of another one"),
    (Double(), r"y of the inference graph part is torch.float64\[3, 7, 3\]"),
    (Branch(), "the inference graph part cannot be traced"),
])
def test_refusals(tmp_path, module, message):
    with pytest.raises(Refusal, match=message):
        inferencegraph.write(entry(module), {}, tmp_path)


def test_state_is_the_bundles(tmp_path):
    """A graph that shares a batch norm takes its running statistics from the run, not as they were at the export."""
    norm = nn.BatchNorm1d(5).eval()
    shared = {f"model.{name}": x for name, x in (*norm.named_parameters(), *norm.named_buffers()) if name != "num_batches_tracked"}
    part = Inference("part", "stage", nn.Sequential(norm), [Input("x", "f32", ("B", 5))], [Input("y", "f32", ("B", 5))], {"B": 3})
    assert "weights" not in inferencegraph.write(part, shared, tmp_path)
    assert {i.name for i in session.load(tmp_path / "part.onnx").get_inputs()} == {"x", *shared}


def test_a_name_is_one_tensor(tmp_path):
    part = Inference("part", "stage", nn.ReLU(), [Input("x", "f32", ("B", 5))], [Input("x", "f32", ("B", 5))], {"B": 3})
    with pytest.raises(Refusal, match="the inference graph part has two inputs or outputs x"):
        inferencegraph.write(part, {}, tmp_path)
