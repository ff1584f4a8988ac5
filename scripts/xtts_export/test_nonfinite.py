"""The refusal of a module whose empty rows give NaN: where it comes from, and that its hint helps."""

import pytest
import torch
from torch import nn

from .inputs import sequence
from .module import Export
from .refusal import Refusal
from .writer import write


class Growing(nn.Module):
    """What an empty row has, a bias, grows without end: the scale of each layer is that of the rows that have frames, and there is none."""

    def __init__(self, bound: float | None = None):
        super().__init__()
        self.linear, self.bound = nn.Linear(4, 4), bound

    def forward(self, x, lengths):
        rows = (lengths > 0).float()
        y = self.linear(x)
        for _ in range(6):
            scale = (y.square().mean((1, 2)) * rows).sum() / rows.sum().clamp(min=1)
            y = y * (scale + 1e-14).rsqrt()  # normalized
            if self.bound:
                y = y.clamp(-self.bound, self.bound)
        return {"loss": (y.square().mean((1, 2)) * rows).sum() / rows.sum().clamp(min=1), "loss_weight": rows.sum()}


def export(module: nn.Module) -> Export:
    return Export(name="x", module=module, inputs=sequence("x", "f32", "T", 4, lengths="lengths"), buckets=[{"T": 9}], features={}, eval_graph=False)


def test_an_overflow_is_no_root(tmp_path):
    torch.manual_seed(0)
    with pytest.raises(Refusal, match=r"test_nonfinite.py:\d+ \(.*\): with every row empty, .* is NaN: numbers of empty rows grow from layer to layer, and in "
                       r"\w+ beyond those of f32") as found:
        write(export(Growing()), tmp_path / "x")
    assert "x.clamp(-1e4, 1e4)" in found.value.hint
    write(export(Growing(1e4)), tmp_path / "x")
