"""A joint graph that is copied becomes the same file as one that PyTorch traces again."""

import contextlib

import pytest
import torch
from torch import nn
from torch.onnx._internal.fx.passes import type_promotion

from . import flattened, translate
from .suite import case, masks, norms, recurrences
from .suite.case import WIDTH, Case

_RUN_NODE = type_promotion._TypePromotionInterpreter.run_node


class Mixed(Case):
    """Several results of one operator, of which one is not used; a constant; integers beside floats; a frozen parameter."""

    def __init__(self):
        super().__init__()
        self.linear, self.frozen = nn.Linear(WIDTH, 3 * WIDTH), nn.Linear(WIDTH, WIDTH).requires_grad_(False)
        self.register_buffer("scale", torch.arange(WIDTH))

    def forward(self, x, lengths):
        first, _, third = self.linear(x).chunk(3, -1)
        first = self.frozen(first) * self.scale + torch.tensor([2.0] * WIDTH)
        return first.max(-1, keepdim=True)[0] * third / lengths[:, None, None].clamp(min=1)


@pytest.mark.parametrize("made", [
    Mixed, norms.LayerNorms, norms.GroupNorms, masks.SliceWrites, masks.Where, recurrences.Gru, recurrences.PackedRows,
])
def test_the_copy_has_the_same_bytes(made, tmp_path, monkeypatch):
    copies, of = [], flattened._Copy.of
    monkeypatch.setattr(flattened._Copy, "of", lambda self, args: copies.append(args) or of(self, args))

    def written(name):
        torch.manual_seed(0)
        case.write(made(), tmp_path / name)
        return (tmp_path / name).read_bytes()

    ours = written("copied.onnx")
    assert copies
    copies.clear()
    monkeypatch.setattr(flattened, "copied", contextlib.nullcontext)
    monkeypatch.setattr(translate, "_promoted", _RUN_NODE)
    assert ours == written("traced.onnx") and not copies
