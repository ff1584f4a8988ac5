"""Sizes that choose: the graph does in every bucket what the module does there, or the module is refused."""

import re

import numpy as np
import pytest
import torch
from torch import nn

from . import session, writer
from .inputs import batch, sequence
from .module import Export
from .refusal import Refusal


class Model(nn.Module):
    """x f32[B, T, 4] to its loss, by way of what a subclass does."""

    def __init__(self):
        super().__init__()
        self.linear = nn.Linear(4, 4)

    def forward(self, x, lengths):
        mask = (torch.arange(x.shape[1])[None, :] < lengths[:, None]).float()
        y = self.body(x, self.linear(x) * mask[:, :, None])
        rows = (lengths > 0).float().sum()
        return {"loss": y.square().sum() / rows.clamp(min=1), "loss_weight": rows}


class Branch(Model):
    def body(self, x, y):
        if x.shape[1] > 100:  # blame
            y = y * 0.5
        return y


class Least(Model):
    def body(self, x, y):
        return y[:, :min(x.shape[1], 50)]


class Window(Model):
    def body(self, x, y):
        return y[:, :50] * y[:, -50:]


class Rows(Model):
    def body(self, x, y):
        return y * 0.5 if x.shape[0] > 16 else y  # blame


class Even(Model):
    def body(self, x, y):
        return y[:, ::2] + y[:, 1::2] if x.shape[1] % 2 == 0 else y  # blame


class Value(Model):
    def body(self, x, y):
        return y * 0.5 if self.linear.weight.sum() > 0 else y  # blame


class Longest(Model):
    def body(self, x, y):
        return y[:, :int((x[:, :, 0] > 0).sum(1).max())]  # blame


class Strided(Model):
    """Frames of 8 samples, which only a bucket has as many of as the spectrogram."""

    def __init__(self):
        super().__init__()
        self.down = nn.Conv1d(1, 4, 16, stride=8, padding=8)

    def forward(self, x, lengths, wave, wave_lengths):
        frames = self.down(wave[:, None]).transpose(1, 2)
        rows = (lengths > 0).float()
        return {"loss": ((self.linear(x) - frames).square().mean((1, 2)) * rows).sum() / rows.sum().clamp(min=1), "loss_weight": rows.sum()}


class Crossed(Model):
    """Attention between two inputs, each with a batch of its own for PyTorch."""

    def __init__(self):
        super().__init__()
        self.attention = nn.MultiheadAttention(4, 2, batch_first=True)

    def forward(self, x, lengths, wave, wave_lengths):
        y = self.attention(self.linear(x), wave[:, :, None].expand(-1, -1, 4), wave[:, :, None].expand(-1, -1, 4), need_weights=False)[0]
        rows = (lengths > 0).float()
        return {"loss": (y.square().mean((1, 2)) * rows).sum() / rows.sum().clamp(min=1), "loss_weight": rows.sum()}


def described(module: nn.Module, *buckets: int) -> Export:
    inputs = sequence("x", "f32", "T", 4, lengths="lengths")
    if isinstance(module, Strided | Crossed):
        inputs += sequence("wave", "f32", "T_wav", lengths="wave_lengths")
    return Export(name="x", module=module, inputs=inputs, buckets=[{"T": t, "T_wav": 8 * (t - 1)} for t in buckets], features={}, eval_graph=False)


@pytest.mark.parametrize("module", [Branch(), Least(), Window(), Strided(), Crossed()], ids=lambda module: type(module).__name__)
def test_buckets_are_pytorchs(module, tmp_path):
    export = described(module, 120, 441)
    writer.write(export, tmp_path)
    graph = session.load(tmp_path / "training_model.onnx")
    for bucket in export.buckets:
        tensors = batch(export.inputs, {**bucket, "B": 2}, np.random.default_rng(0))
        got = session.run(graph, {**{name: p.detach().numpy() for name, p in module.named_parameters()},
                                  **session.batch_feed(export.inputs, tensors.values(), -1)})
        for i in export.inputs:
            for row, length in enumerate(tensors[i.lengths] if i.lengths else ()):
                tensors[i.name][row, length:] = 0
        module.zero_grad()
        loss = module(**tensors)["loss"]
        loss.backward()
        assert got["loss"] == pytest.approx(loss.item(), rel=1e-5)
        for name, p in module.named_parameters():
            np.testing.assert_allclose(got["grad." + name], p.grad.numpy(), rtol=1e-4, atol=1e-5, err_msg=name)


@pytest.mark.parametrize(("module", "buckets", "message"), [
    (Branch(), (60, 441), "dimension T chose what was traced, which holds for T <= 100 only, not for T = 441"),
    (Rows(), (60, 441), "dimension B chose what was traced, which holds for B <= 16 only, not for B = 64"),
    (Even(), (60, 441), "dimension T was baked in"),
    (Value(), (60, 441), "the value of a tensor chooses a branch"),
    (Longest(), (60, 441), "the value of a tensor chooses a size"),
], ids=lambda x: type(x).__name__ if isinstance(x, nn.Module) else "")
def test_refuses_what_buckets_do_not_share(module, buckets, message, tmp_path):
    with pytest.raises(Refusal, match=re.escape(message)) as caught:
        writer.write(described(module, *buckets), tmp_path)
    path, line = re.match(r"(\S+?):(\d+) ", str(caught.value)).groups()
    assert path == __file__ and "# blame" in open(path).readlines()[int(line) - 1]
