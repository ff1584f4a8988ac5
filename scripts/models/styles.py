"""Models whose layers a vector changes: styles, moments of a diffusion, speakers; flows."""

import math

import torch
import torch.nn.functional as F
from torch import Tensor, nn
from torch.nn.utils import weight_norm as former_weight_norm
from torch.nn.utils.parametrizations import weight_norm

from convolutions import WaveNet
from frames import MELS, energy, export
from vocoders import Snake


class AdaIN(nn.Module):
    """An instance norm that a vector scales and shifts (arXiv:1703.06868)."""

    def __init__(self, channels: int, style: int):
        super().__init__()
        self.norm, self.fc = nn.InstanceNorm1d(channels, affine=True), nn.Linear(style, 2 * channels)

    def forward(self, x: Tensor, style: Tensor) -> Tensor:
        gamma, beta = self.fc(style).unsqueeze(-1).chunk(2, 1)
        return (1 + gamma) * self.norm(x) + beta


class StyledBlock(nn.Module):
    def __init__(self, channels: int, style: int, dilation: int):
        super().__init__()
        self.norm1, self.norm2 = AdaIN(channels, style), AdaIN(channels, style)
        self.conv1 = former_weight_norm(nn.Conv1d(channels, channels, 3, dilation=dilation, padding=dilation))
        self.conv2 = former_weight_norm(nn.Conv1d(channels, channels, 3, padding=1))
        self.snake1, self.snake2 = Snake(channels), Snake(channels)

    def forward(self, x: Tensor, style: Tensor) -> Tensor:
        y = self.conv1(self.snake1(self.norm1(x, style)))
        return x + self.conv2(self.snake2(self.norm2(y, style)))


class StyledDecoder(nn.Module):
    """The decoder of StyleTTS 2 (arXiv:2306.07691) in small: AdaIN, snake, weight norm, one transposed convolution."""

    def __init__(self, width: int = 256, style: int = 64, blocks: int = 10):
        super().__init__()
        self.first, self.style = nn.Conv1d(MELS, width, 3, padding=1), nn.Linear(MELS, style)
        self.blocks = nn.ModuleList(StyledBlock(width, style, 1 + 2 * (i % 3)) for i in range(blocks))
        self.up = former_weight_norm(nn.ConvTranspose1d(width, width, 4, 2, 1))
        self.last = former_weight_norm(nn.Conv1d(width, MELS, 3, stride=2, padding=1))

    def forward(self, mel_spectrograms: Tensor) -> Tensor:
        style = self.style(mel_spectrograms.mean(1))
        x = self.first(mel_spectrograms.transpose(1, 2))
        for i, block in enumerate(self.blocks):
            x = block(x, style)
            if i == len(self.blocks) // 2:
                x = self.up(x)
        return self.last(x).transpose(1, 2)


def adain_decoder():
    return export("adain_decoder", StyledDecoder())


class DiffusionBlock(nn.Module):
    """Convolution, group norm and Mish, which a vector shifts (arXiv:2105.06337)."""

    def __init__(self, a: int, b: int, vector: int):
        super().__init__()
        self.conv1, self.conv2 = nn.Conv1d(a, b, 3, padding=1), nn.Conv1d(b, b, 3, padding=1)
        self.norm1, self.norm2 = nn.GroupNorm(8, b), nn.GroupNorm(8, b)
        self.film, self.skip = nn.Linear(vector, 2 * b), nn.Conv1d(a, b, 1)

    def forward(self, x: Tensor, vector: Tensor) -> Tensor:
        scale, shift = self.film(F.mish(vector)).unsqueeze(-1).chunk(2, 1)
        y = F.mish(self.norm1(self.conv1(x))) * (1 + scale) + shift
        return self.skip(x) + F.mish(self.norm2(self.conv2(y)))


class Diffusion(nn.Module):
    """A one-dimensional U-Net that denoises, as Matcha-TTS has one (arXiv:2309.03199), without its attention."""

    def __init__(self, width: int, vector: int = 128):
        super().__init__()
        self.first, self.time = nn.Conv1d(MELS, width, 3, padding=1), nn.Sequential(nn.Linear(64, vector), nn.SiLU(), nn.Linear(vector, vector))
        self.down = nn.ModuleList(DiffusionBlock(width, width, vector) for _ in range(2))
        self.shrink = nn.ModuleList(nn.Conv1d(width, width, 3, 2, 1) for _ in range(2))
        self.middle = nn.ModuleList(DiffusionBlock(width, width, vector) for _ in range(2))
        self.grow = nn.ModuleList(nn.ConvTranspose1d(width, width, 4, 2, 1) for _ in range(2))
        self.up = nn.ModuleList(DiffusionBlock(2 * width, width, vector) for _ in range(2))
        self.last = nn.Conv1d(width, MELS, 1)

    def forward(self, mel_spectrograms: Tensor) -> Tensor:
        angles = mel_spectrograms[:, 0, :1].sigmoid() * 1000 * torch.exp(-math.log(10000) * torch.arange(32) / 32)
        vector = self.time(torch.cat([angles.sin(), angles.cos()], -1))
        frames = mel_spectrograms.shape[1]
        x, kept = self.first(F.pad(mel_spectrograms.transpose(1, 2), (0, -frames % 4))), []
        for block, shrink in zip(self.down, self.shrink, strict=True):
            kept.append(block(x, vector))
            x = shrink(kept[-1])
        for block in self.middle:
            x = block(x, vector)
        for grow, block in zip(self.grow, self.up, strict=True):
            x = block(torch.cat([grow(x), kept.pop()], 1), vector)
        return self.last(x).transpose(1, 2)[:, :frames]


def diffusion():
    return export("diffusion", Diffusion(256))


class Coupling(nn.Module):
    """One half of the channels moves the other, after a product that mixes them (arXiv:1807.03039)."""

    def __init__(self, channels: int, width: int):
        super().__init__()
        self.mix = nn.Parameter(torch.linalg.qr(torch.randn(channels, channels))[0])
        self.before, self.net, self.after = weight_norm(nn.Conv1d(channels // 2, width, 1)), WaveNet(width, 4), nn.Conv1d(width, channels, 1)
        with torch.no_grad():
            self.after.weight.mul_(0.1)

    def forward(self, x: Tensor) -> tuple[Tensor, Tensor]:
        x = torch.einsum("ij,bjt->bit", self.mix, x)
        a, b = x.chunk(2, 1)
        scale, shift = self.after(self.net(self.before(a))).chunk(2, 1)
        return torch.cat([a, b * torch.exp(scale.tanh()) + shift], 1), scale.tanh().sum((1, 2))


class Flow(nn.Module):
    """The decoder of Glow-TTS (arXiv:2005.11129), and its likelihood of pairs of frames."""

    def __init__(self, steps: int):
        super().__init__()
        self.steps = nn.ModuleList(Coupling(2 * MELS, 192) for _ in range(steps))

    def forward(self, mel_spectrograms: Tensor) -> Tensor:
        x = F.pad(mel_spectrograms, (0, 0, 0, -mel_spectrograms.shape[1] % 2))
        x = x.unflatten(1, (-1, 2)).flatten(2).transpose(1, 2)
        change = 0
        for step in self.steps:
            x, own = step(x)
            change = change + own
        return 0.5 * x.square().mean((1, 2))[:, None] - change[:, None] / (x.shape[1] * x.shape[2])


def flow():
    return export("flow", Flow(6), loss=energy)
