"""The encoder of XTTS' discrete VAE: a spectrogram of 80 bands to codes, one for every four frames, under the names of coqui's dvae.pth."""

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from .conditioning import MELS

_WIDTHS, _BLOCKS = (512, 1024), 3
_CODEBOOK = 512


class Residual(nn.Module):
    def __init__(self, width: int):
        super().__init__()
        layers = [nn.Conv1d(width, width, 3, padding=1), nn.ReLU(), nn.Conv1d(width, width, 3, padding=1), nn.ReLU(), nn.Conv1d(width, width, 1)]
        self.net = nn.Sequential(*layers)

    def forward(self, x: Tensor) -> Tensor:
        return self.net(x) + x


class Codebook(nn.Module):
    """A vector for each code, as a column."""

    def __init__(self, codes: int):
        super().__init__()
        self.register_buffer("embed", torch.randn(_CODEBOOK, codes))

    def forward(self, x: Tensor) -> Tensor:
        """The nearest one's number. What all distances have in common is left out."""
        return (self.embed.square().sum(0) - 2 * x @ self.embed).argmin(-1)


class Encoder(nn.Module):
    def __init__(self, codes: int):
        super().__init__()
        widths = zip((MELS, *_WIDTHS[:-1]), _WIDTHS, strict=True)
        halve = [nn.Sequential(nn.Conv1d(inner, outer, 3, stride=2, padding=1), nn.ReLU()) for inner, outer in widths]
        self.encoder = nn.Sequential(*halve, *(Residual(_WIDTHS[-1]) for _ in range(_BLOCKS)), nn.Conv1d(_WIDTHS[-1], _CODEBOOK, 1))
        self.codebook = Codebook(codes)

    def forward(self, mel: Tensor) -> Tensor:
        """i64[B, ceil(T / 4)] of f32[B, MELS, T]."""
        return self.codebook(self.encoder(mel).transpose(1, 2))


def load(weights: dict[str, Tensor]) -> Encoder:
    """Of a state_dict of the whole VAE. Raises KeyError or RuntimeError if it is none."""
    encoder = Encoder(weights["codebook.embed"].shape[1])
    encoder.load_state_dict({name: weights[name].float() for name in encoder.state_dict()})
    return encoder.eval()
