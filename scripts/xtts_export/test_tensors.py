"""What a module owns, in its bundle."""

import numpy as np
import pytest
import torch
from torch import nn

from . import lora, writer
from .bundle import arena
from .inputs import batch, sequence
from .module import Export, Step
from .tensors import freeze_large_buffers


class Model(nn.Module):
    def __init__(self):
        super().__init__()
        self.emb, self.head = nn.Embedding(5, 4), nn.Linear(4, 5)
        self.head.weight = self.emb.weight
        self.register_buffer("small", torch.ones(4))
        self.register_buffer("large", torch.ones(513, 512))


def test_tied_parameters_are_one():
    entries = {p["name"]: p for p in arena(Model())}
    assert entries["emb.weight"]["aliases"] == ["head.weight"] and "head.weight" not in entries
    assert "aliases" not in entries["head.bias"]


def test_large_buffers_are_frozen_parameters():
    module = Model()
    names = set(module.state_dict())
    freeze_large_buffers(module)
    assert {p["name"] for p in arena(module) if p.get("frozen")} == {"large"}
    assert set(module.state_dict()) == names and set(dict(module.named_buffers())) == {"small"}


class Follows(nn.Module):
    """A codebook of more than a mebibyte, a table that stays, and a part that is fixed."""

    def __init__(self):
        super().__init__()
        self.linear, self.fixed = nn.Linear(512, 512), nn.BatchNorm1d(512).eval()
        self.register_buffer("codes", torch.randn(513, 512))
        self.register_buffer("table", torch.randn(513, 512))

    def forward(self, x, lengths):
        rows = (lengths > 0).float()
        y = self.fixed(self.linear(x).transpose(1, 2)).transpose(1, 2) + self.codes[0] + self.table[0]
        if self.training:
            with torch.no_grad():
                self.codes[0].mul_(0.9).add_((y.mean(1) * rows[:, None]).sum(0) / rows.sum().clamp(min=1), alpha=0.1)
        return {"loss": (y.square().mean((1, 2)) * rows).sum() / rows.sum().clamp(min=1), "loss_weight": rows.sum()}


@pytest.mark.parametrize("adapted", [False, True], ids=["plain", "adapters"])
def test_what_forward_changes_is_state_of_any_size(adapted):
    export = Export(name="follows", module=Follows(), inputs=sequence("x", "f32", "T", 512, lengths="lengths"), buckets=[{"T": 9}], features={})
    before = {name: x.clone() for name, x in export.module.named_buffers()}
    if adapted:
        export = lora.adapt(export, lora.Settings(rank=2, alpha=2.0, targets=("linear",)))
    step = Step(export)
    writer.dry_run(export, step)
    assert [spec.name for spec in step.state] == ["codes"]
    assert "codes" not in dict(step.named_parameters()) and not dict(step.named_parameters())["table"].requires_grad
    tensors = [*batch(export.inputs, {"B": 2, "T": 5}, np.random.default_rng(0)).values(), torch.tensor(-1)]
    left = step.named(*tensors)["state.codes"]
    assert not torch.equal(left[0], before["codes"][0]) and torch.equal(left[1:], before["codes"][1:])
    with step.evaluating():
        assert torch.equal(step.named(*tensors)["state.codes"], before["codes"])
    # The module is as it was.
    assert all(torch.equal(x, step.state_dict()[name]) for name, x in before.items()) and not export.module.fixed.training
