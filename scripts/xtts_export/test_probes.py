"""Probes: the probe graph is equal to PyTorch, the other graphs are those of a module without probes, and what no graph can return is refused."""

import json
import re
from pathlib import Path

import numpy as np
import onnx
import pytest
import torch
import torch.nn.functional as F
from safetensors.torch import load_file
from torch import nn
from torch.utils.checkpoint import checkpoint

import xtts_export
from xtts_export import Export, Input, Player, probe, scan

from . import builtin, probegraph, session
from .baseline import golden
from .command import PROBED, build
from .inputs import batch
from .refusal import Refusal
from .writer import write

INPUTS = [Input("x", "f32", ("B", "T", 4), lengths="lengths"), Input("lengths", "i32", ("B",)), Input("ids", "i32", ("B",), below=5)]


class Model(nn.Module):
    """A linear layer and a bias, as each test needs them."""

    def __init__(self, probes=lambda self, x, y, ids: None):
        super().__init__()
        torch.manual_seed(0)
        self.linear, self.bias = nn.Linear(4, 4), nn.Parameter(torch.ones(4))
        self.drop = nn.Dropout(0.5)
        self.probes = (probes,)

    def forward(self, x, ids):
        y = self.drop(self.linear(x)) + self.bias
        self.probes[0](self, x, y, ids)
        return y


def loss(y, batch):
    rows = (batch["lengths"] > 0).float()
    return {"loss": (y.square().mean((1, 2)) * rows).sum() / rows.sum().clamp(min=1), "loss_weight": rows.sum(), "size": (y.abs().mean((1, 2)) * rows).sum()}


def exported(module: nn.Module, folder: Path, **options) -> dict:
    write(Export(**{"name": "probed", "module": module, "inputs": INPUTS, "buckets": [{"T": 12}, {"T": 24}], "features": {}, "loss": loss, **options}), folder)
    return json.loads((folder / "bundle.json").read_text())


def probed(module: nn.Module, folder: Path, tensors: dict) -> dict[str, np.ndarray]:
    feed = {name: p.detach().numpy() for name, p in module.named_parameters()} | {name: x.numpy() for name, x in tensors.items()}
    return session.run(session.load(folder / "probe_model.onnx"), feed)


def everything(self, x, y, ids):
    probe("input", x)
    probe("parameter", self.bias)
    probe("linear.out", y)
    probe("same", y)
    probe("ids", ids)
    probe("mask", x > 0)
    probe("scalar", y.sum())
    probe("one", y.sum((0, 1, 2), keepdim=True))
    probe("half", F.avg_pool1d(y.mT, 2).mT)
    probe("flat", y.reshape(-1, 4))
    probe("double", y.double())
    with torch.no_grad():
        probe("still", y.exp())
    with torch.autocast("cpu", torch.bfloat16):
        probe("autocast", self.linear(x))
    probe("kept", checkpoint(lambda y: probe("within", y.tanh()) + 1, y, use_reentrant=False))
    for i in range(2):
        probe(f"loop.{i}", y * i)
    z = y * 2
    probe("before", z)
    z.add_(1)


SHAPES = {
    "input": ["B", "T", 4], "parameter": [4], "linear.out": ["B", "T", 4], "same": ["B", "T", 4], "ids": ["B"], "mask": ["B", "T", 4], "scalar": [], "one": [1, 1, 1],
    "half": ["B", "?", 4], "flat": ["?", 4], "double": ["B", "T", 4], "still": ["B", "T", 4], "autocast": ["B", "T", 4], "within": ["B", "T", 4], "kept": ["B", "T", 4],
    "loop.0": ["B", "T", 4], "loop.1": ["B", "T", 4], "before": ["B", "T", 4]}


@pytest.fixture(scope="module")
def model(tmp_path_factory):
    module, folder = Model(everything), tmp_path_factory.mktemp("everything")
    return module, folder, exported(module, folder)


def test_graph_returns_what_pytorch_has(model):
    module, folder, document = model
    assert {p["name"]: p["shape"] for p in document["probes"]} == SHAPES and {p["dtype"] for p in document["probes"]} == {"f32"}
    for rows, frames in (1, 2), (3, 9), (2, 31):
        tensors = batch(INPUTS, {"B": rows, "T": frames}, np.random.default_rng(rows))
        tensors["lengths"][:] = frames
        got, want = probed(module, folder, tensors), {}
        collected = xtts_export.probes.Probes(whole=True)
        with collected.collected():
            module.eval()(tensors["x"], tensors["ids"])
        want = {name: x.numpy() for name, x in collected.tensors.items()}
        assert got.keys() == want.keys() == {"probe." + name for name in SHAPES}
        for name, x in want.items():
            # PyTorch computes in bf16 there; a graph has the precision of the export.
            tolerance = 2e-2 if name == "probe.autocast" else 1e-5
            np.testing.assert_allclose(got[name], x, tolerance, tolerance, err_msg=name)
        assert not np.array_equal(got["probe.before"], got["probe.linear.out"])


def test_other_graphs_are_those_without_probes(model, tmp_path, monkeypatch):
    _, folder, document = model
    monkeypatch.setitem(globals(), "probe", lambda name, x: x)
    without = exported(Model(everything), tmp_path)
    assert document["files"].pop("probe_model.onnx") and document.pop("probes") and document["graphs"].pop()["kind"] == "probe"
    assert document == without and not (tmp_path / "probe_model.onnx").exists()
    for name in without["files"]:
        assert (folder / name).read_bytes() == (tmp_path / name).read_bytes(), name


def test_gradient_has_no_trace_of_a_probe():
    x = torch.ones(2, requires_grad=True)
    assert probe("x", x) is x
    assert probe("not checked here!", [1]) == [1]


def test_compiled_code_keeps_its_graph():
    def f(x):
        return probe("y", x * 2) + 1
    assert torch.compile(f, backend="eager", fullgraph=True)(torch.ones(2)).tolist() == [3, 3]


def test_a_player_and_a_loss_have_probes(tmp_path):
    class Two(nn.Module):
        def __init__(self):
            super().__init__()
            self.a, self.b = nn.Linear(4, 4), nn.Linear(4, 1)

        def forward(self, x):
            return probe("made", self.a(x)), self

    def of(name):
        def player(outputs, batch):
            y, module = outputs
            return loss(probe(f"judged.{name}", module.b(y.detach() if name == "judge" else y)), batch) | {"size": y.detach().sum() * 0, f"size_{name}": y.detach().sum() * 0}
        return lambda *given: {key: x for key, x in player(*given).items() if key != "size"}

    document = exported(Two(), tmp_path, loss=None, players={"judge": Player("b", of("judge")), "maker": Player("a", of("maker"))})
    assert [p["name"] for p in document["probes"]] == ["made", "judged.judge", "judged.maker"]


def test_kept_bundle_is_the_commands(tmp_path):
    export, kept = build(PROBED), builtin.REPOSITORY / "ortgraphs/testdata"
    write(export, tmp_path)
    assert {path.name: path.read_bytes() for path in tmp_path.iterdir()} == {path.name: path.read_bytes() for path in (kept / "probed").iterdir()}
    stored, values = load_file(kept / "parity/probed.safetensors"), golden.values(export)
    assert stored.keys() == values.keys() and {"probe.attention.0", "probe.attention.1", "probe.encoder"} < stored.keys()
    for name, x in values.items():
        torch.testing.assert_close(stored[name], x, rtol=1e-5, atol=1e-6)


def test_scores_of_what_is_left_out_do_not_hide_others():
    want = torch.tensor([[0.5, -torch.inf], [0.25, -1e9], [torch.nan, 2.0]])
    near = torch.tensor([[0.5, -8e37], [0.25, -1e9], [0.1, 2.0]])
    assert torch.equal(probegraph._compared(near, want), probegraph._compared(want, want))
    far = torch.tensor([[0.5, -8e37], [0.3, 7.0], [0.1, torch.nan]])
    left = probegraph._compared(far, want) - probegraph._compared(want, want)
    assert left[1, 0] > 0.04 and left[1, 1] == 7 and left[2, 1].isnan()


def test_check_sees_another_layer(model, monkeypatch):
    """The proof of the check: two outputs whose names are exchanged."""
    module, folder, _ = model
    graph = onnx.load(folder / "probe_model.onnx")
    names = {"probe.linear.out": "probe.still", "probe.still": "probe.linear.out"}
    for value in graph.graph.output:
        value.name = names.get(value.name, value.name)
    for node in graph.graph.node:
        for values in node.input, node.output:
            values[:] = [names.get(name, name) for name in values]
    written = probegraph.ProbeGraph.write

    def exchanged(self):
        gains = written(self)
        onnx.save(graph, self._path)
        return gains

    monkeypatch.setattr(probegraph.ProbeGraph, "write", exchanged)
    with pytest.raises(Refusal, match=r"probe\.(linear\.out|still) of the graph differs from PyTorch's by"):
        exported(Model(everything), folder.parent / "exchanged")


def twice(self, x, y, ids):
    probe("y", y)
    probe("y", y)  # blamed


def in_scan(self, x, y, ids):
    def step(carry, items, constants):
        after = probe("inner", carry[0] + items[0])  # blamed
        return [after], [after]
    scan(step, [y[:, 0]], [y.transpose(0, 1)])


def in_cond(self, x, y, ids):
    torch.cond(y.sum() > 0, lambda y: probe("then", y),  # blamed
               lambda y: y, (y,))


def in_vmap(self, x, y, ids):
    torch.vmap(lambda row: probe("row", row * 2))(y)  # blamed


def only_training(self, x, y, ids):
    if self.training:
        probe("drawn", y)  # blamed


def only_evaluation(self, x, y, ids):
    if not self.training:
        probe("plain", y)  # blamed


REFUSED = {
    "two of a name": (twice, "probe y was named before, in .*test_probes.py:[0-9]+ \\(probe\\("),
    "a recurrence": (in_scan, "probe inner is in a step of a recurrence"),
    "a branch": (in_cond, "probe then is in a branch of torch.cond"),
    "vmap": (in_vmap, "probe row is in a function of torch.vmap or torch.func"),
    "training": (only_training, "probe drawn is reached in training only"),
    "evaluation": (only_evaluation, "probe plain is reached in evaluation only"),
    "a path": (lambda self, x, y, ids: probe("../y", y), "a probe has the name '../y'"),
    "a letter": (lambda self, x, y, ids: probe("Y", y), "a probe has the name 'Y'"),
    "a long name": (lambda self, x, y, ids: probe("y" * 65, y), "a probe has the name 'yyy"),
    "a line": (lambda self, x, y, ids: probe("y\n", y), r"a probe has the name 'y\\n'"),
    "no string": (lambda self, x, y, ids: probe(1, y), "a probe has the name 1"),
    "a tuple": (lambda self, x, y, ids: probe("y", (y, y)), "probe y gets .*tuple.*, where it takes a tensor"),
    "too many": (lambda self, x, y, ids: [probe(f"y.{i}", y) for i in range(257)], "probe y.256 is one more than 256"),
}


@pytest.mark.parametrize("case", REFUSED)
def test_refused(case, tmp_path):
    probes, message = REFUSED[case]
    with pytest.raises(Refusal, match=message) as caught:
        exported(Model(probes), tmp_path / "bundle")
    place = re.match(r"(/\S+?):(\d+) ", str(caught.value))
    assert place and place[1] == __file__
    text = Path(__file__).read_text().splitlines()
    blamed = [line for line in text[probes.__code__.co_firstlineno - 1:probes.__code__.co_firstlineno + 5] if line.endswith("# blamed")]
    assert text[int(place[2]) - 1] in (blamed or [text[probes.__code__.co_firstlineno - 1]])
    assert not (tmp_path / "bundle").exists()


def test_refused_without_an_eval_graph(tmp_path):
    with pytest.raises(Refusal, match="eval_graph is False, and forward has probes"):
        exported(Model(everything), tmp_path / "bundle", eval_graph=False)
