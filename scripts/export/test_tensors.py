"""What a module owns, in its bundle."""

import torch
from torch import nn

from .bundle import arena
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
