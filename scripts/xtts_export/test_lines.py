"""The user's lines in a graph, and in what the program says of a loss that is not finite: bin/xtts-host must be built."""

import importlib
import json
import re
import sys

import onnx
import pytest

from . import writer
from .cache import Cache
from .test_convert import host

BLOCKS = '''
import torch
from torch import nn
import torch.nn.functional as F


class Block(nn.Module):
    def __init__(self, width, sick):
        super().__init__()
        self.feed = nn.Linear(width, width)
        # One step of the optimizer takes it out of the domain of the logarithms.
        self.level = nn.Parameter(torch.tensor(0.3)) if sick else None

    def forward(self, x):
        y = F.gelu(self.feed(x))                    # feed
        loud = y.detach() > 5
        y = torch.where(loud, 5 * torch.tanh(y / 5), y)
        if self.level is not None:
            y = y + torch.log(self.level) + torch.log(1 - self.level)   # sick
        return x + torch.tanh(y)
'''

MODULE = '''
import torch
from torch import nn
from shelf.blocks import Block
from xtts_export import Export, examples
from xtts_export.inputs import sequence


class Model(nn.Module):
    def __init__(self, sick, recurrent):
        super().__init__()
        self.enter = nn.Linear(80, 8)
        self.blocks = nn.ModuleList(Block(8, sick=sick and i == 1) for i in range(3))
        self.steps = nn.GRU(8, 8, batch_first=True) if recurrent else None
        self.leave = nn.Linear(8, 80)

    def forward(self, mel_spectrograms):
        x = self.enter(mel_spectrograms)            # enter
        for block in self.blocks:
            x = block(x)
        x = self.steps(x)[0] if self.steps else x   # steps
        return self.leave(x)                        # leave


def loss(mel, batch):
    weight = examples.valid(batch["mel_lengths"], mel.shape[1])
    error = (mel - batch["mel_spectrograms"]).abs()     # error
    return {"loss": (error.mean(-1) * weight).sum() / weight.sum().clamp(min=1), "loss_weight": weight.sum()}


def build(sick=False, recurrent=False):
    torch.manual_seed(0)
    return Export(
        name="lines", module=Model(sick, recurrent), loss=loss, inputs=sequence("mel_spectrograms", "f32", "T_mel", 80, lengths="mel_lengths", origin="stage"),
        buckets=[{"T_wav": 66048, "T_mel": 259}], features=examples.FEATURES, pipeline=[examples.LOGMEL],
        optimizer={"name": "sgd", "lr": 1e4, "momentum": 0.0, "weight_decay": 0.0, "grad_clip": 0.0} if sick else None)
'''


@pytest.fixture
def source(tmp_path, monkeypatch):
    """A folder with the module, from where Python imports it."""
    def written(before: str = "", blocks: str = BLOCKS):
        (tmp_path / "shelf").mkdir(exist_ok=True)
        (tmp_path / "shelf/blocks.py").write_text(before + blocks)
        (tmp_path / "lined.py").write_text(before + MODULE)
        for name in "lined", "shelf.blocks", "shelf":
            sys.modules.pop(name, None)
        importlib.invalidate_caches()
        return importlib.import_module("lined")

    monkeypatch.syspath_prepend(tmp_path)
    yield written
    for name in "lined", "shelf.blocks", "shelf":
        sys.modules.pop(name, None)


def line(text: str, comment: str) -> int:
    return next(i for i, line in enumerate(text.splitlines(), 1) if line.endswith(f"# {comment}"))


def nodes(path) -> list[tuple[onnx.NodeProto, str | None]]:
    def within(graph):
        for node in graph.node:
            yield node, next((p.value for p in node.metadata_props if p.key == "line"), None)
            for attribute in node.attribute:
                if attribute.type == onnx.AttributeProto.GRAPH:
                    yield from within(attribute.g)
    return list(within(onnx.load(path).graph))


@pytest.mark.parametrize("graph", ["training_model.onnx", "training_model.bf16.onnx", "eval_model.onnx"])
def test_nodes_have_the_lines_that_they_come_from(source, tmp_path, graph):
    writer.write(source().build(recurrent=True), tmp_path / "bundle", ("f32", "bf16"))
    found = nodes(tmp_path / "bundle" / graph)

    def lines(*operators: str, gradient: str = "") -> set[str | None]:
        return {at for node, at in found if node.op_type in operators and any(gradient in name for name in node.output)}

    feed, steps, leave, enter = f"shelf/blocks.py:{line(BLOCKS, 'feed')}", *(f"lined.py:{line(MODULE, name)}" for name in ("steps", "leave", "enter"))
    assert lines("Gelu") == {feed} and lines("Scan", "Sigmoid") == {steps} and lines("Abs") == {f"lined.py:{line(MODULE, 'error')}"}
    if graph.startswith("training"):
        # Of the gradient of gelu, with a comparison after it.
        assert lines("Erf") == {feed}
        assert {at for node, at in found if re.match(r"grad\.(blocks\..*|enter|leave)\.weight", node.output[0])} == {feed, leave, enter}
        [of_first] = [at for node, at in found if node.output[0].startswith("grad.blocks.0.feed.weight")]
        assert of_first == feed
    # The masks of rows are the exporter's own.
    assert sum(at is None for _, at in found) < len(found) / 5


def test_the_cache_moves_lines(source, tmp_path):
    def write(before: str = "", blocks: str = BLOCKS, folder=None) -> tuple[dict[str, bytes], list[str]]:
        entries = Cache(folder)
        writer.write(source(before, blocks).build(), tmp_path / "bundle", cache=entries)
        assert not entries.remarks
        return {path.name: path.read_bytes() for path in (tmp_path / "bundle").iterdir()}, entries.found

    kept = tmp_path / "cache"
    apart = BLOCKS.replace("x + torch.tanh(y)", "torch.add(\n            x, torch.tanh(\n                y))")
    assert write(folder=kept)[1] == []
    for before, blocks, found in ("", BLOCKS, True), ("# moved\n", BLOCKS, True), ("", apart, False), ("# moved\n", apart, True):
        bundle, graphs = write(before, blocks, kept)
        assert bool(graphs) == found and bundle == write(before, blocks)[0]


def test_a_run_names_the_line_that_gives_nan(source, tmp_path):
    writer.write(source().build(sick=True), tmp_path / "bundle")
    # The evaluation at the end has NaN, too, and the run ends as one that diverged.
    host("--graph", tmp_path / "bundle", "--batch-size", 4, "--max-steps", 2, "--warmup-steps", 0, "--run-dir", tmp_path / "run", status=1)
    found = json.loads((tmp_path / "run/nan-step-000002.json").read_text())
    assert found["operation"]["operator"] == "Log" and found["operation"]["line"] == f"shelf/blocks.py:{line(BLOCKS, 'sick')}"
