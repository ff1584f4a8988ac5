"""Recurrent models, and what has come in their place."""

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from frames import Frames, Residual, export, repeated


class First(nn.Module):
    """A recurrent layer without its state."""

    def __init__(self, layer: nn.Module):
        super().__init__()
        self.layer = layer

    def forward(self, x: Tensor) -> Tensor:
        return self.layer(x)[0]


def lstm():
    """Two bidirectional layers."""
    return export("lstm", Frames(512, First(nn.LSTM(512, 256, num_layers=2, batch_first=True, bidirectional=True)), channels_last=True))


class TacotronEncoder(nn.Module):
    """The encoder of Tacotron 2 (arXiv:1712.05884): three convolutions with batch norm, then a bidirectional LSTM."""

    def __init__(self, width: int):
        super().__init__()
        self.convs = repeated(3, lambda _: nn.Sequential(nn.Conv1d(width, width, 5, padding=2), nn.BatchNorm1d(width), nn.ReLU()))
        self.lstm = nn.LSTM(width, width // 2, batch_first=True, bidirectional=True)

    def forward(self, x: Tensor) -> Tensor:
        return self.lstm(self.convs(x.transpose(1, 2)).transpose(1, 2))[0]


def tacotron_encoder():
    return export("tacotron_encoder", Frames(512, TacotronEncoder(512), channels_last=True))


class Highway(nn.Module):
    def __init__(self, width: int):
        super().__init__()
        self.made, self.gate = nn.Linear(width, width), nn.Linear(width, width)

    def forward(self, x: Tensor) -> Tensor:
        gate = torch.sigmoid(self.gate(x))
        return gate * F.relu(self.made(x)) + (1 - gate) * x


class CBHG(nn.Module):
    """A bank of convolutions of 1 to 8, the larger of neighbours, highway layers, a bidirectional GRU (arXiv:1703.10135)."""

    def __init__(self, width: int):
        super().__init__()
        self.bank = nn.ModuleList(nn.Sequential(nn.Conv1d(width, width, k, padding=k // 2), nn.BatchNorm1d(width), nn.ReLU()) for k in range(1, 9))
        self.pool = nn.MaxPool1d(2, 1, padding=1)
        self.join = nn.Sequential(nn.Conv1d(8 * width, width, 3, padding=1), nn.BatchNorm1d(width))
        self.highways = repeated(4, lambda _: Highway(width))
        self.gru = nn.GRU(width, width // 2, batch_first=True, bidirectional=True)

    def forward(self, x: Tensor) -> Tensor:
        y = x.transpose(1, 2)
        y = torch.cat([conv(y)[:, :, :x.shape[1]] for conv in self.bank], 1)
        y = self.join(self.pool(y)[:, :, :x.shape[1]]).transpose(1, 2)
        return self.gru(self.highways(x + y))[0]


def cbhg():
    return export("cbhg", Frames(128, CBHG(128), channels_last=True))


class MinimalGRU(nn.Module):
    """A GRU whose gates read only the input, as a sum in logarithms (arXiv:2410.01201)."""

    def __init__(self, width: int):
        super().__init__()
        self.gate, self.made = nn.Linear(width, width), nn.Linear(width, width)

    def forward(self, x: Tensor) -> Tensor:
        gate, made = self.gate(x), self.made(x)
        keep, take = -F.softplus(gate), -F.softplus(-gate)
        value = torch.where(made >= 0, (F.relu(made) + 0.5).log(), -F.softplus(-made))
        kept = torch.cumsum(keep, 1)
        return (kept + torch.logcumsumexp(take + value - kept, 1)).exp()


def minimal_gru():
    return export("minimal_gru", Frames(256, repeated(4, lambda _: Residual(nn.LayerNorm(256), MinimalGRU(256), nn.Linear(256, 256))), channels_last=True))
