"""Choices that rounding decides are the only difference of a run from PyTorch, and are found: bin/xtts-host must be built."""

import re

from . import beside

# Two sums of the same numbers in other orders: which is the larger one is rounding. What follows from it is not.
COIN = """
import torch
from torch import nn
from xtts_export import Export, sequence
from xtts_export.examples import FEATURES, LOGMEL, valid


class Coin(nn.Module):
    def __init__(self):
        super().__init__()
        self.linear = nn.Linear(80, 4)
        # They differ by less than what the check refuses.
        self.register_buffer("sides", torch.tensor([1.0, 1.002]))

    def forward(self, mel_spectrograms, mel_lengths):
        x = mel_spectrograms.abs()
        sums = torch.stack([x.sum(-1), x.flip(-1).cumsum(-1)[..., -1]], -1)
        return self.linear(x) * self.sides[sums.argmax(-1)][..., None]


def loss(y, batch):
    weight = valid(batch["mel_lengths"], y.shape[1])
    value = ((y - batch["mel_spectrograms"][..., :4]).abs().mean(-1) * weight).sum() / weight.sum().clamp(min=1)
    return {"loss": value, "loss_weight": weight.sum()}


def build():
    torch.manual_seed(0)
    return Export(name="coin", module=Coin(), loss=loss,
                  inputs=sequence("mel_spectrograms", "f32", "T_mel", 80, lengths="mel_lengths", origin="stage"),
                  buckets=[{"T_wav": 66048, "T_mel": 259}], features=FEATURES, pipeline=[LOGMEL])
"""


def test_with_the_choices_of_the_graph_pytorch_agrees(tmp_path, capsys):
    file = tmp_path / "coin.py"
    file.write_text(COIN)
    [losses] = beside.compare(f"{file}:build", tmp_path, steps=6, batch_size=3, chosen=True)
    assert losses.first() and losses.left() < 2e-6
    printed = capsys.readouterr().out
    said = re.search(rf"coin: rounding decides (\d+) choices in \d steps otherwise than PyTorch does\n  the first: \d+ of \d+ in step \d, {re.escape(str(file))}:18.*; the numbers are (\S+) of", printed)
    assert said and int(said[1]) > 0 and 0 < float(said[2]) < 1e-5, printed
    assert f"with the graph's choices in PyTorch by up to {losses.left():.1e}" in printed
