"""Convolutions of each form, of which a library computes the large ones: dilated, strided, causal, long, in groups, and over two dimensions.

    cd scripts && python -m xtts_export module ../ortgraphs/fused/prooftest/testdata/convolutions.py:build --precision f32,bf16 --out ../runs/convolutions

convolutions.onnx and convolutions.bf16.onnx are the training graphs of that bundle.
"""

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from xtts_export import Export, sequence
from xtts_export.presets import FEATURES


class Convolutions(nn.Module):
    def __init__(self):
        super().__init__()
        self.first, self.dilated = nn.Conv1d(1, 16, 1), nn.Conv1d(16, 16, 5, dilation=2, padding=4)
        self.grouped, self.causal = nn.Conv1d(16, 16, 5, groups=2), nn.Conv1d(16, 16, 4)
        self.strided, self.long = nn.Conv1d(16, 8, 4, stride=2, padding=1), nn.Conv1d(8, 8, 35, padding=17)
        self.image, self.square = nn.Conv2d(1, 8, 1), nn.Conv2d(8, 8, 3, padding=1)
        self.oblong = nn.Conv2d(8, 16, (3, 5), padding=(1, 2), dilation=(2, 1), groups=1)
        self.halved = nn.Conv2d(8, 8, 3, stride=2, padding=1)

    def forward(self, mel_spectrograms: Tensor, waveform: Tensor) -> Tensor:
        x = torch.tanh(self.dilated(torch.tanh(self.first(waveform[:, None]))))
        x = torch.tanh(self.causal(F.pad(torch.tanh(self.grouped(x)), (3, 0))))
        x = self.long(torch.tanh(self.strided(x)))
        y = torch.tanh(self.square(torch.tanh(self.image(mel_spectrograms.unsqueeze(1)))))
        # In bf16, one reader of the gradient of what is convolved takes bf16, another one f32.
        z = torch.tanh(self.halved(y + torch.sin(y).square()))
        return torch.tanh(x).mean((1, 2)) + torch.tanh(self.oblong(y)).mean((1, 2, 3)) + z.mean((1, 2, 3))


def loss(output: Tensor, batch: dict[str, Tensor]) -> dict[str, Tensor]:
    rows = (batch["mel_lengths"] > 0).float()
    return {"loss": ((output - 0.5).square() * rows).sum() / rows.sum().clamp(min=1), "loss_weight": rows.sum()}


def build() -> Export:
    torch.manual_seed(0)
    return Export(
        name="convolutions", module=Convolutions(), loss=loss,
        inputs=[*sequence("mel_spectrograms", "f32", "T_mel", 80, lengths="mel_lengths", origin="stage"),
                *sequence("waveform", "f32", "T_wav", lengths="waveform_lengths")],
        optimizer={"type": "adamw", "lr": 1e-4}, buckets=[{"T_wav": 256 * 63, "T_mel": 64}], features=FEATURES,
        pipeline=[{"name": "target", "stage": "logmel", "inputs": {"waveform": "waveform", "waveform_lengths": "waveform_lengths"},
                   "outputs": {"mel_spectrograms": "mel_spectrograms", "mel_lengths": "mel_lengths"}}])
