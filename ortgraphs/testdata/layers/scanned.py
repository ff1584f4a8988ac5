"""Recurrences that need not run one after another: a minimal GRU in logarithms, a moving average with weights of its own, from the end to the beginning.

    cd scripts && PYTHONPATH=models python -m xtts_export module ../ortgraphs/testdata/layers/scanned.py:scanned --precision f32 --out ../runs/scanned

scanned.onnx is the training graph of that bundle.
"""

import torch
from frames import Frames, export
from recurrences import MinimalGRU
from torch import Tensor, nn
from xtts_export import scan


class Average(nn.Module):
    def __init__(self, width: int):
        super().__init__()
        self.decay, self.gate = nn.Parameter(torch.linspace(-2, 2, width)), nn.Linear(width, width)

    def forward(self, x: Tensor) -> Tensor:
        def step(carry, items, constants):
            [state], [item, gate], [keep] = carry, items, constants
            after = keep * gate * state + (1 - keep) * item
            return (after,), (after * torch.sigmoid(state),)

        parts = x.transpose(0, 1)
        _, [y] = scan(step, [torch.zeros_like(x[:, 0])], [parts, torch.sigmoid(self.gate(parts))], [torch.sigmoid(self.decay)], reverse=True)
        return y.transpose(0, 1)


def scanned():
    return export("scanned", Frames(24, nn.Sequential(MinimalGRU(24), Average(24)), channels_last=True))
