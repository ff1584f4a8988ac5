"""The encoder of XTTS' discrete VAE: a spectrogram of 80 bands to codes, one for every four frames, under the names of coqui's dvae.pth.

Frames after a row's length are 0 before every convolution, as they are at the end of a row that is alone.
"""

import torch
from torch import Tensor, nn

from .. import foreign
from .conditioning import MELS
from .mels import inside

CODES = 1024
_WIDTH, _BLOCKS, _HALVINGS = 512, 3, 2
_CODEBOOK = 512


class Residual(nn.Module):
    def __init__(self, width: int):
        super().__init__()
        layers = [nn.Conv1d(width, width, 3, padding=1), nn.ReLU(), nn.Conv1d(width, width, 3, padding=1), nn.ReLU(), nn.Conv1d(width, width, 1)]
        self.net = nn.Sequential(*layers)

    def forward(self, x: Tensor, inside: Tensor) -> Tensor:
        first, relu, second, *rest = self.net
        y = second(relu(first(x)) * inside)
        for layer in rest:
            y = layer(y)
        return (y + x) * inside


class Codebook(nn.Module):
    """A vector for each code, as a column."""

    def __init__(self, codes: int, width: int):
        super().__init__()
        self.register_buffer("embed", torch.randn(width, codes))

    def forward(self, x: Tensor) -> Tensor:
        """The nearest one's number. What all distances have in common is left out."""
        return (self.embed.square().sum(0) - 2 * x @ self.embed).argmin(-1)


class Encoder(nn.Module):
    def __init__(self, codes: int = CODES, width: int = _WIDTH, codebook: int = _CODEBOOK):
        super().__init__()
        widths = [MELS, *(width << i for i in range(_HALVINGS))]
        halve = [nn.Sequential(nn.Conv1d(inner, outer, 3, stride=2, padding=1), nn.ReLU()) for inner, outer in zip(widths, widths[1:], strict=False)]
        self.encoder = nn.Sequential(*halve, *(Residual(widths[-1]) for _ in range(_BLOCKS)), nn.Conv1d(widths[-1], codebook, 1))
        self.codebook = Codebook(codes, codebook)

    @property
    def codes(self) -> int:
        return self.codebook.embed.shape[1]

    def forward(self, mel: Tensor, frames: Tensor) -> Tensor:
        """i64[B, ceil(T / 4)] of f32[B, T, MELS], of which frames count. What follows a row's end is 0."""
        x, parts = mel.transpose(1, 2), list(self.encoder)
        for halve in parts[:_HALVINGS]:
            x, frames = halve(x), (frames + 1) // 2
            valid = inside(frames, x.shape[2])[:, None]
            x = x * valid
        for block in parts[_HALVINGS:-1]:
            x = block(x, valid)
        return self.codebook(parts[-1](x).transpose(1, 2))


def load(weights: dict[str, Tensor]) -> Encoder:
    """Of a state_dict of the whole VAE. Raises foreign.Unfit if it is none."""
    codebook, codes = foreign.shape(weights, "codebook.embed", 2)
    encoder = Encoder(codes, foreign.shape(weights, "encoder.0.0.weight", 3)[0], codebook)
    foreign.load(encoder, {name: weights[name].float() for name in encoder.state_dict() if name in weights})
    return encoder.eval()
