"""What the models share: a bucket of spectrogram frames, a loss, and the Export of a module that reads frames."""

import sys
from pathlib import Path

import torch
import torch.nn.functional as F
from torch import Tensor, nn

sys.path.append(str(Path(__file__).resolve().parent.parent / "examples"))

from common import FEATURES, HOP, LOGMEL, MELS, bucket, inside, means  # noqa: E402, F401
from xtts_export import Export, sequence  # noqa: E402
from xtts_export.module import ADAMW  # noqa: E402

FRAMES = 448


class Frames(nn.Module):
    """Gives a module frames[B, T, MELS] as [B, MELS, T], through a layer to its width, and brings what it returns back to frames."""

    def __init__(self, width: int, body: nn.Module, channels_last: bool = False):
        super().__init__()
        self.first, self.body, self.last = nn.Linear(MELS, width), body, nn.Linear(width, MELS)
        self.channels_last = channels_last

    def forward(self, mel_spectrograms: Tensor) -> Tensor:
        x = self.first(mel_spectrograms)
        return self.last(self.body(x) if self.channels_last else self.body(x.transpose(1, 2)).transpose(1, 2))


def distance(output: Tensor, batch: dict[str, Tensor]) -> dict[str, Tensor]:
    """How far the output is from the frames in the opposite order, so that it is no copy, as a mean over the frames of each row."""
    target, lengths = batch["mel_spectrograms"].flip(1), batch["mel_lengths"]
    seen = inside(lengths, target.shape[1]).float()[..., None]
    return means(lengths, loss=((output - target).abs() * seen).mean((1, 2)))


def energy(output: Tensor, batch: dict[str, Tensor]) -> dict[str, Tensor]:
    """The mean square of an output of any shape [B, ...] after a saturation: for models that do not return frames."""
    return means(batch["mel_lengths"], loss=(torch.tanh(output) - 0.1).square().flatten(1).mean(1))


def sample(output: Tensor, batch: dict[str, Tensor]) -> dict[str, Tensor]:
    """The distance of a waveform[B, samples] from the first samples of the clip."""
    target = batch["waveform"][:, :output.shape[1]]
    return means(batch["waveform_lengths"], loss=(output - target).abs().mean(1))


def export(name: str, module: nn.Module, loss=distance, frames: int = FRAMES) -> Export:
    return Export(name=name, module=module, loss=loss,
                  inputs=[*sequence("mel_spectrograms", "f32", "T_mel", MELS, lengths="mel_lengths", origin="stage"),
                          *sequence("waveform", "f32", "T_wav", lengths="waveform_lengths")],
                  optimizer={**ADAMW, "lr": 1e-4}, buckets=[bucket(frames)], features=FEATURES, pipeline=[LOGMEL])


def repeated(count: int, make) -> nn.Sequential:
    return nn.Sequential(*(make(i) for i in range(count)))


class Residual(nn.Sequential):
    """Adds what its layers make of an input to the input."""

    def forward(self, x: Tensor) -> Tensor:
        return x + super().forward(x)


class ChannelNorm(nn.LayerNorm):
    """A layer norm over the channels of [B, C, T]."""

    def forward(self, x: Tensor) -> Tensor:
        return super().forward(x.transpose(1, 2)).transpose(1, 2)


class Squeeze(nn.Module):
    """Squeeze and excitation (arXiv:1709.01507) over all dimensions behind the channels."""

    def __init__(self, channels: int, inner: int):
        super().__init__()
        self.down, self.up = nn.Linear(channels, inner), nn.Linear(inner, channels)

    def forward(self, x: Tensor) -> Tensor:
        weights = torch.sigmoid(self.up(F.relu(self.down(x.flatten(2).mean(2)))))
        return x * weights.view(*weights.shape, *[1] * (x.dim() - 2))
