"""Modules of users: parity of what is exported, and what is refused, with the line to blame."""

import inspect
import json
import re

import numpy as np
import onnx
import pytest
import torch
import torch.nn.functional as F
from torch import nn

from . import examples, session, verify
from .command import main
from .inputs import Input, batch, sequence
from .joint import export
from .module import Export
from .refusal import Refusal
from .writer import write

EXAMPLES = [examples.fast_speech, examples.conformer, examples.code_model]


@pytest.fixture(scope="module", params=EXAMPLES, ids=lambda build: build.__name__)
def exported(request, tmp_path_factory):
    """An Export and the folder that it has become."""
    folder = tmp_path_factory.mktemp(request.param.__name__)
    assert main(["module", f"xtts_export.examples:{request.param.__name__}", "--out", str(folder), "--precision", "f32,bf16"]) == 0
    return request.param(), folder


def run(exported: Export, folder, tensors: dict, seed: int = -1) -> dict:
    feed = {name: p.detach().numpy() for name, p in exported.module.named_parameters()}
    feed |= {name: x.numpy() for name, x in tensors.items()} | {"seed": np.array(seed, np.int64)}
    return session.run(session.load(folder / "training_model.onnx"), feed)


def eager(exported: Export, tensors: dict) -> tuple[dict[str, float], dict[str, np.ndarray]]:
    """What the loss returns and the gradients, by PyTorch's own layers: nothing is replaced, and eval switches dropout off."""
    tensors = {name: x.clone() for name, x in tensors.items()}
    for i in exported.inputs:
        for row, length in enumerate(tensors[i.lengths] if i.lengths else ()):
            tensors[i.name][row, length:] = 0
    module = exported.module.eval()
    scalars = exported.loss(module(**{name: x for name, x in tensors.items() if name in inspect.signature(module.forward).parameters}), tensors)
    module.zero_grad()
    scalars["loss"].backward()
    return {name: x.item() for name, x in scalars.items()}, {name: p.grad.numpy() for name, p in module.named_parameters()}


@pytest.mark.parametrize(("sizes", "empty_row"), [
    pytest.param({"B": 1, "T_text": 7, "T_mel": 19}, None, id="one row"),
    pytest.param({"B": 4, "T_text": 30, "T_mel": 61}, 2, id="empty row"),
    pytest.param({"B": 2, "T_text": 72, "T_mel": 259}, None, id="bucket"),
])
def test_gradients_are_autograds(exported, sizes, empty_row):
    exported, folder = exported
    tensors = batch(exported.inputs, sizes, np.random.default_rng(sizes["B"]), empty_row)
    got = run(exported, folder, tensors)
    scalars, gradients = eager(exported, tensors)
    for name, want in scalars.items():
        assert got[name if name in got else "metric." + name] == pytest.approx(want, rel=1e-4), name
    floor = 1e-6 * np.sqrt(sum(np.linalg.norm(g) ** 2 for g in gradients.values()))
    for name, want in gradients.items():
        assert np.linalg.norm(got["grad." + name] - want) < 1e-4 * max(np.linalg.norm(want), floor), name


def test_gradients_have_no_scatter(exported):
    graph = onnx.load(exported[1] / "training_model.onnx").graph
    assert not any("Scatter" in node.op_type or "Random" in node.op_type for node in graph.node)


def test_bundle_names_what_loss_returns(exported):
    exported, folder = exported
    document = json.loads((folder / "bundle.json").read_text())
    assert {p["name"] for p in document["parameters"]} == set(exported.module.state_dict())
    assert [o["name"] for o in document["outputs"]][:2] == ["loss", "loss_weight"]


def test_bundle_says_what_is_bf16(exported):
    document = json.loads((exported[1] / "bundle.json").read_text())
    assert [(g["kind"], g["precision"]) for g in document["graphs"]] == [("train", "f32"), ("train", "bf16"), ("eval", "f32")]
    graph = onnx.load(exported[1] / document["graphs"][1]["file"]).graph
    low = {p["name"] for p in document["parameters"] if p.get("compute") == "bf16"}
    assert low == {i.name for i in graph.input if i.type.tensor_type.elem_type == onnx.TensorProto.BFLOAT16}
    assert low and {"grad." + name for name in low} == {o.name for o in graph.output if o.type.tensor_type.elem_type == onnx.TensorProto.BFLOAT16}


def test_dropout_is_the_seeds(exported):
    exported, folder = exported
    tensors = batch(exported.inputs, {"B": 2, "T_text": 12, "T_mel": 20}, np.random.default_rng(0))
    losses = {seed: float(run(exported, folder, tensors, seed)["loss"]) for seed in (-1, -2, 1, 2)}
    assert losses[-1] == losses[-2]
    assert len(set(losses.values())) == (3 if exported.name == "code-model" else 1)


class Strided(nn.Module):
    """Slices with a step, margins, a class weight, a padded embedding, constants: lowerings that no example needs."""

    def __init__(self):
        super().__init__()
        self.embedding = nn.Embedding(5, 4, padding_idx=0)
        self.halve = nn.Conv1d(4, 6, 3, stride=2, padding=1)
        self.up = nn.ConvTranspose1d(4, 4, 4, stride=2, padding=1)
        self.table = torch.arange(1.0, 7.0)

    def forward(self, x, ids):
        y = F.pad(x * self.embedding(ids)[:, None], (0, 0, 2, 1))[:, 1::2]
        y = self.halve(self.up(y.transpose(1, 2))) * self.table[:, None] + torch.tensor([1.0, 2.0, 3.0, 4.0, 5.0, 6.0])[:, None]
        target = ids.long() + 1
        loss = F.cross_entropy(F.silu(y).mean(2), target, weight=self.table, ignore_index=2)
        loss = loss + F.cross_entropy(F.leaky_relu(y), target[:, None].expand(-1, y.shape[2]), reduction="sum")
        return loss, loss.detach()


def test_other_lowerings(tmp_path):
    module = Strided()
    export(module, [Input("x", "f32", ("B", "T", 4)), Input("ids", "i32", ("B",))], [torch.zeros(3, 9, 4), torch.zeros(3, dtype=torch.int32)], ("loss", "metric.same"),
           tmp_path / "x.onnx")
    assert not any("Scatter" in n.op_type for n in onnx.load(tmp_path / "x.onnx").graph.node)
    for time in (6, 13):
        x, ids = torch.randn(5, time, 4, generator=torch.Generator().manual_seed(0)), torch.arange(5, dtype=torch.int32)
        module.zero_grad()
        loss, _ = module(x, ids)
        loss.backward()
        feed = {"x": x.numpy(), "ids": ids.numpy(), **{name: p.detach().numpy() for name, p in module.named_parameters()}}
        out = session.run(session.load(tmp_path / "x.onnx"), feed)
        np.testing.assert_allclose([out["loss"], out["metric.same"]], loss.item(), rtol=1e-5)
        for name, p in module.named_parameters():
            np.testing.assert_allclose(out["grad." + name], p.grad.numpy(), rtol=1e-4, atol=1e-5, err_msg=name)


class Branches(nn.Module):
    """Biases that are added up have equal gradients."""

    def __init__(self):
        super().__init__()
        self.branches = nn.ModuleList(nn.Linear(4, 4) for _ in range(3))

    def forward(self, x):
        return (sum(branch(x) for branch in self.branches).square().sum(),)


def test_equal_gradients_have_names(tmp_path):
    module = Branches()
    export(module, [Input("x", "f32", ("B", 4))], [torch.zeros(3, 4)], ("loss",), tmp_path / "x.onnx")
    x = torch.randn(5, 4, generator=torch.Generator().manual_seed(0))
    [loss] = module(x)
    loss.backward()
    out = session.run(session.load(tmp_path / "x.onnx"), {"x": x.numpy(), **{name: p.detach().numpy() for name, p in module.named_parameters()}})
    for name, p in module.named_parameters():
        np.testing.assert_allclose(out["grad." + name], p.grad.numpy(), rtol=1e-4, atol=1e-5, err_msg=name)


def test_parameters_without_requires_grad_are_frozen(tmp_path):
    class Model(nn.Module):
        def __init__(self):
            super().__init__()
            self.fixed, self.linear = nn.Linear(4, 4).requires_grad_(False), nn.Linear(4, 1)

        def forward(self, x, lengths):
            rows = (self.linear(self.fixed(x)).squeeze(-1).square().sum(1) * (lengths > 0)).sum()
            return {"loss": rows / (lengths > 0).sum().clamp(min=1), "loss_weight": (lengths > 0).sum().float()}

    write(Export(name="x", module=Model(), inputs=sequence("x", "f32", "T", 4, lengths="lengths"), buckets=[{"T": 8}], features={},
                 eval_graph=False), tmp_path)
    document = json.loads((tmp_path / "bundle.json").read_text())
    assert [p["name"] for p in document["parameters"] if p.get("frozen")] == ["fixed.weight", "fixed.bias"] == [p["name"] for p in document["parameters"]][2:]
    outputs = {o.name for o in onnx.load(tmp_path / "training_model.onnx").graph.output}
    assert {name for name in outputs if name.startswith("grad.")} == {"grad.linear.weight", "grad.linear.bias"}


class Base(nn.Module):
    """x f32[B, T, 4] to its loss, by way of what a subclass does wrong."""

    def __init__(self):
        super().__init__()
        self.linear = nn.Linear(4, 4)

    def forward(self, x):
        return (self.trap(x, self.linear(x)).square().sum(),)


class WritesInput(Base):
    def trap(self, x, y):
        x[:, 0] = 0  # blame
        return y


class WritesAttribute(Base):
    seen = torch.zeros(1)

    def trap(self, x, y):
        self.seen.add_(1)  # blame
        return y * self.seen


class Frozen(Base):
    def trap(self, x, y):
        return y.reshape(3, -1)  # blame


class Loops(Base):
    def trap(self, x, y):
        return sum(y[:, t] for t in range(x.shape[1]))  # blame


class Buffered(Base):
    def __init__(self):
        super().__init__()
        self.register_buffer("count", torch.zeros(()))

    def trap(self, x, y):
        self.count.add_(1)  # blame
        return y


class NoForward(Base):
    def trap(self, x, y):
        return y.cummax(1).values  # blame


class NoBackward(Base):
    def trap(self, x, y):
        return F.grid_sample(y[:, None], self.linear(y)[:, None, :, :2], align_corners=False)  # blame


class Random(Base):
    def trap(self, x, y):
        return y[:, torch.randperm(2)]  # blame


class Wrong(Base):
    def trap(self, x, y):
        return self.linear(y[:, :, :3])  # blame


class Unused(Base):
    def trap(self, x, y):
        return self.linear.weight * x.sum()


@pytest.mark.parametrize(("module", "message"), [
    (WritesInput(), r"aten.fill_.* writes into x"),
    (WritesAttribute(), r"aten.add_.* writes into a tensor of the module"),
    (Frozen(), r"dimension B, T was baked in by reshape"),
    (Loops(), r"dimension T was baked in, .* T = 5 only"),
    (Buffered(), r"forward changes buffer count"),
    (NoForward(), r"operator aten.cummax.default has no form"),
    (NoBackward(), r"operator aten.grid_sampler_2d_backward.default has no form"),
    (Random(), r"aten.* draws random numbers"),
    (Wrong(), r"RuntimeError: .* same reduction dim"),
    (Unused(), r"the loss does not depend on parameter linear.bias"),
], ids=lambda x: type(x).__name__ if isinstance(x, nn.Module) else "")
def test_refuses_and_names_the_line(module, message, tmp_path):
    with pytest.raises(Refusal, match=message) as caught:
        export(module, [Input("x", "f32", ("B", "T", 4))], [torch.zeros(3, 5, 4)], ("loss",), tmp_path / "x.onnx")
    assert caught.value.hint and "\n" not in str(caught.value)
    if type(module) is not Unused:
        path, line = re.match(r"(\S+?):(\d+) ", str(caught.value)).groups()
        assert path == __file__ and "# blame" in open(path).readlines()[int(line) - 1]


def looping() -> Export:
    return Export(name="looping", module=Loops(), loss=lambda outputs, _: {"loss": outputs[0], "loss_weight": outputs[0]},
                  inputs=sequence("x", "f32", "T", 4, lengths="lengths"), buckets=[{"T": 8}], features={})


def other() -> int:
    return 1


@pytest.mark.parametrize(("builder", "error"), [
    ("looping", "dimension T was baked in"), ("other", "returned 1"), ("absent", "no attribute 'absent'"),
])
def test_command_prints_error_and_hint(builder, error, tmp_path, capsys):
    assert main(["module", f"xtts_export.test_module:{builder}", "--out", str(tmp_path)]) == 2
    lines = capsys.readouterr().err.splitlines()
    assert len(lines) == 2 and lines[0].startswith("error: ") and error in lines[0] and lines[1].startswith("hint: ")


class Linear(nn.Module):
    def __init__(self):
        super().__init__()
        self.linear = nn.Linear(4, 4)

    def forward(self, x):
        return self.linear(x)


def linear(loss) -> Export:
    return Export(name="x", module=Linear(), loss=loss, inputs=sequence("x", "f32", "T", 4, lengths="lengths"), buckets=[{"T": 8}], features={},
                  eval_graph=False)


def test_says_when_memory_is_too_small_for_the_check(tmp_path, monkeypatch, capsys):
    monkeypatch.setattr(verify, "available", lambda: 10**9)
    # The check would refuse it.
    write(linear(lambda mel, batch: {"loss": mel.square().mean(), "loss_weight": torch.ones(())}), tmp_path)
    assert "not compared with PyTorch: the check needs 1.1 GB, and 1.0 GB are free" in capsys.readouterr().out


@pytest.mark.parametrize(("loss", "error"), [
    (lambda mel, batch: {"loss": mel.square().mean(), "loss_weight": torch.ones(())}, "with every row empty, loss"),
    (lambda mel, batch: {"loss": (mel.square().mean((1, 2)) * (batch["lengths"] > 0)).sum() / (batch["lengths"] > 0).sum(), "loss_weight": (batch["lengths"] > 0).sum().float()},
     "with every row empty"),
    (lambda mel, batch: {"loss": mel.square().sum() / batch["lengths"].sum().clamp(min=1), "loss_weight": batch["lengths"].sum().float()}, "an empty row counts"),
    (lambda mel, batch: {"loss": mel.square().sum()}, "without loss and loss_weight"),
    (lambda mel, batch: {"loss": mel.square().sum(1), "loss_weight": torch.ones(())}, "not a float32 scalar"),
], ids=["weight", "division", "empty", "names", "shape"])
def test_refuses_losses_that_break_the_contract(loss, error, tmp_path):
    with pytest.raises(Refusal, match=error):
        write(linear(loss), tmp_path)
