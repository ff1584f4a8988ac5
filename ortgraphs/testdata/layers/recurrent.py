"""Recurrent layers: two directions, a projection, no biases, ReLU.

    cd scripts && PYTHONPATH=models python -m xtts_export module ../ortgraphs/testdata/layers/recurrent.py:rnns --precision f32 --out ../runs/rnns

recurrent.onnx is the training graph of that bundle.
"""

from frames import Frames, export
from torch import Tensor, nn


class Both(nn.Module):
    def __init__(self):
        super().__init__()
        self.gru = nn.GRU(64, 48, num_layers=1, batch_first=True, bidirectional=True)
        self.rnn = nn.RNN(96, 64, batch_first=True)
        self.relu = nn.RNN(64, 40, batch_first=True, nonlinearity="relu", bias=False)
        self.proj = nn.LSTM(40, 64, batch_first=True, proj_size=32)
        self.out = nn.Linear(32, 64)

    def forward(self, x: Tensor) -> Tensor:
        return self.out(self.proj(self.relu(self.rnn(self.gru(x)[0])[0])[0])[0])


def rnns():
    return export("rnns", Frames(64, Both(), channels_last=True))
