"""Losses that count empty rows, or other things than loss_weight says, are refused; those whose rows depend on each other are not."""

from unittest import mock

import pytest
import torch
import torch.nn.functional as F
from torch import nn

from . import counting, joint, verify, writer
from .inputs import SEED, window, zeros
from .module import Export, Step
from .refusal import Refusal
from .suite.case import INPUTS, WIDTH

PLAIN = [INPUTS["x"], INPUTS["target"], INPUTS["lengths"]]
TEXT = [INPUTS["ids"], INPUTS["id_lengths"]]


class Model(nn.Module):
    def __init__(self, norm=False):
        super().__init__()
        self.linear, self.norm = nn.Linear(WIDTH, WIDTH), nn.BatchNorm1d(WIDTH) if norm else nn.Identity()

    def forward(self, x):
        return self.norm(self.linear(x).mT).mT


def masks(batch):
    lengths = batch["lengths"]
    mask = (torch.arange(batch["x"].shape[1])[None, :] < lengths[:, None]).float()
    return mask, (lengths > 0).float()


def frames(y, batch):
    mask, _ = masks(batch)
    return {"loss": ((y - batch["target"]).square().mean(-1) * mask).sum() / mask.sum().clamp(min=1), "loss_weight": mask.sum()}


def rows_mean(y, batch):
    mask, rows = masks(batch)
    per_row = ((y - batch["target"]).square().mean(-1) * mask).sum(1) / mask.sum(1).clamp(min=1)
    return {"loss": per_row.mean(), "loss_weight": rows.sum()}  # blamed


def masked_mean(y, batch):
    mask, _ = masks(batch)
    loss = ((y - batch["target"]).square().mean(-1) * mask).mean()  # blamed
    return {"loss": loss, "loss_weight": mask.sum()}


def deviation(y, batch):
    mask, rows = masks(batch)
    scale = (batch["x"] * mask[..., None]).std((0, 1)) + 0.1
    return {"loss": ((y / scale).square().mean(-1) * mask).sum() / mask.sum().clamp(min=1), "loss_weight": mask.sum()}  # blamed


def weight_of_rows(y, batch):
    mask, rows = masks(batch)
    loss = ((y - batch["target"]).square().mean(-1) * mask).sum() / mask.sum().clamp(min=1)  # blamed
    return {"loss": loss, "loss_weight": rows.sum()}


def two(y, batch):
    mask, rows = masks(batch)
    tokens = (torch.arange(batch["ids"].shape[1])[None, :] < batch["id_lengths"][:, None]).float()
    loss = (y.square().mean(-1) * mask).sum() / mask.sum().clamp(min=1) + ((batch["ids"] * y.mean((1, 2))[:, None]) * tokens).sum() / tokens.sum().clamp(min=1)  # blamed
    return {"loss": loss, "loss_weight": mask.sum()}


def numbered(y, batch):
    mask, rows = masks(batch)
    weights = mask * rows.cumsum(0)[:, None]
    return {"loss": (y.square().mean(-1) * weights).sum() / mask.sum().clamp(min=1), "loss_weight": mask.sum()}  # blamed


def contrastive(y, batch):
    mask, rows = masks(batch)
    a = F.normalize((y * mask[..., None]).sum(1), dim=-1, eps=1e-3)
    b = F.normalize((batch["target"] * mask[..., None]).sum(1), dim=-1, eps=1e-3)
    scores = a @ b.mT - 1e9 * (1 - rows)[None, :]
    return {"loss": ((scores.logsumexp(1) - scores.diagonal()) * rows).sum() / rows.sum().clamp(min=1), "loss_weight": rows.sum()}


def of_a_window(y, batch):
    mask, rows = masks(batch)
    return {"loss": (y.square().mean(-1) * mask).sum() / batch["frames"], "loss_weight": rows.max()}


def past_the_window(y, batch):
    mask, rows = masks(batch)
    return {"loss": (y.square().mean(-1) * mask).sum() / mask.sum().clamp(min=1) + 0 * batch["frames"], "loss_weight": rows.max()}  # blamed


def checked(loss, tmp_path, inputs=(), module=None, **options):
    torch.manual_seed(0)
    export = Export(name="x", module=module or Model(), inputs=[*PLAIN, *inputs], buckets=[{"T": 24, **({"N": 13} if inputs and inputs[0].shape else {})}], features={}, loss=loss,
                    eval_graph=False, **options)
    step = Step(export)
    dry = writer.dry_run(export, step)
    given = [*export.inputs, SEED, *step.state]
    joint.export(step, given, zeros(given, dry.sizes), step.returned(), tmp_path / "x.onnx", dry=dry, buckets=export.sizes())
    return verify.check(export, step, {"B": 3, "T": 12, "N": 9}, tmp_path / "x.onnx")


@pytest.mark.parametrize(("loss", "reason", "options"), [
    (rows_mean, "an empty row counts: with it, loss is", {}),
    (masked_mean, "an empty row counts: with it, loss is", {}),
    (deviation, "an empty row counts", {}),
    (weight_of_rows, "loss_weight does not count what the loss is a mean over", {}),
    (two, "loss_weight does not count what the loss is a mean over", {"inputs": TEXT}),
    (numbered, "another order", {}),
    (frames, "where accumulation is 'mean'", {"accumulation": "mean"}),
    (past_the_window, "not divided by a window", {"accumulation": "weighted", "inputs": [window("frames", "lengths")]}),
], ids=lambda x: getattr(x, "__name__", ""))
def test_refused(loss, reason, options, tmp_path):
    with pytest.raises(Refusal, match=reason) as caught:
        checked(loss, tmp_path, **options)
    assert "test_counting.py" in str(caught.value), caught.value


@pytest.mark.parametrize(("loss", "options", "remark"), [
    (frames, {}, ""),
    (contrastive, {}, "depend on each other"),
    (frames, {"module": Model(norm=True)}, "depend on each other"),
    (of_a_window, {"accumulation": "weighted", "inputs": [window("frames", "lengths")]}, ""),
], ids=["frames", "contrastive", "batch norm", "window"])
def test_passes(loss, options, remark, tmp_path, capsys):
    checked(loss, tmp_path, **options)
    assert remark in capsys.readouterr().out and (remark or "depend" not in capsys.readouterr().out)


def test_a_row_that_decides_about_the_others_is_found():
    """The largest number of the batch is in the row that no other comparison changes."""
    export = Export(name="x", module=Model(), inputs=PLAIN, buckets=[{"T": 24}], features={}, loss=frames, eval_graph=False)

    def run(tensors, seed=-1):
        x, lengths = tensors["x"], tensors["lengths"]
        mask = (torch.arange(x.shape[1])[None, :] < lengths[:, None]).float()
        peak = (x.abs().amax(2) * mask).max() if scaled else 1
        loss = (x.square().mean(-1) * mask).sum() / weight(mask).clamp(min=1) * peak
        return {"loss": loss.reshape(1).numpy(), "loss_weight": mask.sum().reshape(1).numpy()}

    def check():
        return counting.check(export, Step(export), run, {"B": 3, "T": 12})

    scaled, weight = True, torch.sum
    batch = counting._batch(export, {"T": 12})
    for row in range(4):
        larger = batch["x"] * torch.where(torch.arange(4) == row, 9.0, 1.0)[:, None, None]
        with mock.patch.object(counting, "_batch", lambda *_, x=larger: {**batch, "x": x}):
            assert "depend on each other" in check(), row
    scaled, weight = False, lambda mask: mask.amax(1).sum()
    with pytest.raises(Refusal, match="loss_weight does not count"):
        check()
