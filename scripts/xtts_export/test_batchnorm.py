"""Norms in the graph of an evaluation."""

import onnx
import torch
from torch import nn

from . import bundle, writer
from .inputs import sequence
from .module import Export


class Norms(nn.Module):
    def __init__(self):
        super().__init__()
        self.instance, self.batch, self.linear = nn.InstanceNorm1d(4), nn.BatchNorm1d(4), nn.Linear(4, 4)

    def forward(self, x, lengths):
        y = self.linear(self.batch(self.instance(x.transpose(1, 2))).transpose(1, 2))
        rows = (lengths > 0).float()
        return {"loss": (y.square().mean((1, 2)) * rows).sum() / rows.sum().clamp(min=1), "loss_weight": rows.sum()}


def test_instance_norm_is_evaluated(tmp_path):
    """The graph of an evaluation is traced apart, as the module has state. It is compared with PyTorch."""
    torch.manual_seed(0)
    export = Export(name="norms", module=Norms(), inputs=sequence("x", "f32", "T", 4, lengths="lengths"), buckets=[{"T": 9}], features={})
    writer.write(export, tmp_path / "bundle")
    evaluation = onnx.load(tmp_path / "bundle" / bundle.EVAL).graph
    assert {"batch.running_mean", "batch.running_var"} <= {i.name for i in evaluation.input}


class Deep(nn.Module):
    """Batch norms one after the other, each behind what the empty rows have: equal frames."""

    def __init__(self):
        super().__init__()
        self.norms = nn.Sequential(*(nn.Sequential(nn.Linear(4, 4), nn.BatchNorm1d(4)) for _ in range(16)))

    def forward(self, x, lengths):
        y = self.norms(x.flatten(0, 1)).unflatten(0, x.shape[:2])
        rows = (lengths > 0).float()
        return {"loss": (y.square().mean((1, 2)) * rows).sum() / rows.sum().clamp(min=1), "loss_weight": rows.sum()}


def test_nothing_but_empty_rows_stays_finite(tmp_path):
    """Sixteen times 1 / sqrt(eps) is no number of f32."""
    torch.manual_seed(0)
    export = Export(name="deep", module=Deep(), inputs=sequence("x", "f32", "T", 4, lengths="lengths"), buckets=[{"T": 9}], features={})
    writer.write(export, tmp_path / "bundle")
