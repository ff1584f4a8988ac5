"""The batches that a graph is compared with PyTorch on."""

import torch
from torch import nn

from . import writer
from .inputs import sequence
from .module import Export, Step


class Wide(nn.Module):
    """Takes no short rows, so that its dry run has a bucket's sizes."""

    def __init__(self):
        super().__init__()
        self.linear = nn.Linear(4, 4)

    def forward(self, x, lengths):
        mask = (torch.arange(x.shape[1])[None, :] < lengths[:, None]).float()
        y = self.linear(x) * mask[:, :, None]
        y = nn.functional.avg_pool1d(y.mT, 20, 1).mT.unsqueeze(-1).expand(-1, -1, -1, 1000).cos()
        rows = (lengths > 0).float()
        return {"loss": (y.mean((1, 2, 3)) * rows).sum() / rows.sum().clamp(min=1), "loss_weight": rows.sum()}


def test_activations_are_bounded(monkeypatch):
    """Fewer rows, then shorter ones that the module takes."""
    export = Export(name="wide", module=Wide(), inputs=sequence("x", "f32", "T", 4, lengths="lengths"), buckets=[{"T": 400}], features={}, eval_graph=False)
    dry = writer.dry_run(export, Step(export))
    of = lambda rows, frames: {"B": rows, "T": frames}
    assert dry.sizes["T"] == 400
    # What cos makes and what its gradient does are most of it.
    cosines = 4 * 3 * 381 * 4 * 1000
    assert cosines < dry.bytes(of(3, 400)) < 10 * cosines
    limits = [dry.bytes(of(3, 404)), dry.bytes(of(3, 404)) - 1, dry.bytes(of(2, 404)) - 1, dry.bytes(of(2, 60)), 1]
    for limit, chosen in zip(limits, [of(3, 404), of(2, 404), of(2, 202), of(2, 50), of(2, 25)], strict=True):
        monkeypatch.setattr(writer, "_MEMORY", limit)
        assert writer.checked(dry) == chosen
