"""Convolutional models: stacks of one kind of layer, and the networks that are made of them."""

import torch
import torch.nn.functional as F
from torch import Tensor, nn
from torch.nn.utils.parametrizations import spectral_norm, weight_norm

from frames import ChannelNorm, Frames, Residual, Squeeze, energy, export, repeated


def weight_norm_stack():
    """Ten convolutions of 3 with weight norm (arXiv:1602.07868)."""
    conv = lambda _: nn.Sequential(weight_norm(nn.Conv1d(512, 512, 3, padding=1)), nn.LeakyReLU(0.1))
    return export("weight_norm_stack", Frames(512, repeated(10, conv)))


def batch_norm_stack():
    """Ten convolutions of 5 with batch norm, as the post-net of Tacotron 2 (arXiv:1712.05884)."""
    conv = lambda _: nn.Sequential(nn.Conv1d(512, 512, 5, padding=2), nn.BatchNorm1d(512), nn.Tanh())
    return export("batch_norm_stack", Frames(512, repeated(10, conv)))


def grouped_stack():
    """Depthwise convolutions of 31, and of 9 in 16 groups."""
    block = lambda _: Residual(nn.Conv1d(512, 512, 31, padding=15, groups=512), nn.SiLU(), nn.Conv1d(512, 512, 9, padding=4, groups=16))
    return export("grouped_stack", Frames(512, repeated(8, block)))


class ConvNeXtBlock(nn.Module):
    """Depthwise, then a layer norm and two products, scaled (arXiv:2201.03545)."""

    def __init__(self, width: int):
        super().__init__()
        self.depthwise, self.norm = nn.Conv1d(width, width, 7, padding=3, groups=width), nn.LayerNorm(width, eps=1e-6)
        self.up, self.down = nn.Linear(width, 3 * width), nn.Linear(3 * width, width)
        self.gamma = nn.Parameter(torch.full((width,), 0.1))

    def forward(self, x: Tensor) -> Tensor:
        y = self.norm(self.depthwise(x).transpose(1, 2))
        return x + (self.gamma * self.down(F.gelu(self.up(y)))).transpose(1, 2)


def convnext():
    """The body of Vocos (arXiv:2306.00814)."""
    return export("convnext", Frames(512, repeated(8, lambda _: ConvNeXtBlock(512))))


class WaveNet(nn.Module):
    """Gated dilated convolutions whose skips are added (arXiv:1609.03499), as in WaveGlow and VITS."""

    def __init__(self, width: int, layers: int, kernel: int = 3):
        super().__init__()
        self.inner = nn.ModuleList(weight_norm(nn.Conv1d(width, 2 * width, kernel, dilation=2 ** (i % 8), padding=2 ** (i % 8) * (kernel // 2)))
                                   for i in range(layers))
        self.outer = nn.ModuleList(weight_norm(nn.Conv1d(width, 2 * width, 1)) for _ in range(layers))

    def forward(self, x: Tensor) -> Tensor:
        skips = 0
        for inner, outer in zip(self.inner, self.outer, strict=True):
            a, b = inner(x).chunk(2, 1)
            y, skip = outer(torch.tanh(a) * torch.sigmoid(b)).chunk(2, 1)
            x, skips = x + y, skips + skip
        return skips


def wavenet():
    return export("wavenet", Frames(192, WaveNet(192, 16)))


def tcn():
    """The separator of Conv-TasNet (arXiv:1809.07454): dilated depthwise convolutions, PReLU, norms over channels and time."""
    block = lambda i: Residual(nn.Conv1d(256, 512, 1), nn.PReLU(), nn.GroupNorm(1, 512),
                               nn.Conv1d(512, 512, 3, padding=2 ** (i % 8), dilation=2 ** (i % 8), groups=512), nn.PReLU(), nn.GroupNorm(1, 512),
                               nn.Conv1d(512, 256, 1))
    return export("tcn", Frames(256, repeated(12, block)))


def quartznet():
    """Separable convolutions of 33 with batch norm (arXiv:1910.10261)."""
    block = lambda _: Residual(nn.Conv1d(384, 384, 33, padding=16, groups=384, bias=False), nn.Conv1d(384, 384, 1, bias=False), nn.BatchNorm1d(384),
                               nn.ReLU())
    return export("quartznet", Frames(384, repeated(10, block)))


def spectral_norm_stack():
    """Convolutions with spectral norm (arXiv:1802.05957), strided, as a discriminator has them."""
    conv = lambda i: nn.Sequential(spectral_norm(nn.Conv1d(256, 256, 5, stride=1 + i % 2, padding=2)), nn.LeakyReLU(0.2))
    stack = Frames(256, repeated(6, conv))
    return export("spectral_norm_stack", stack, loss=energy)


class UNetBlock(nn.Module):
    """Two convolutions behind group norms."""

    def __init__(self, a: int, b: int):
        super().__init__()
        self.norm1, self.norm2 = nn.GroupNorm(8, a), nn.GroupNorm(8, b)
        self.conv1, self.conv2 = nn.Conv2d(a, b, 3, padding=1), nn.Conv2d(b, b, 3, padding=1)
        self.skip = nn.Conv2d(a, b, 1) if a != b else nn.Identity()

    def forward(self, x: Tensor) -> Tensor:
        y = self.conv1(F.silu(self.norm1(x)))
        return self.skip(x) + self.conv2(F.silu(self.norm2(y)))


class UNet2d(nn.Module):
    """A U-Net over time and frequency, as Grad-TTS has it (arXiv:2105.06337)."""

    def __init__(self, width: int):
        super().__init__()
        self.first = nn.Conv2d(1, width, 3, padding=1)
        self.down1, self.down2, self.middle = UNetBlock(width, width), UNetBlock(width, 2 * width), UNetBlock(2 * width, 2 * width)
        self.half1, self.half2 = nn.Conv2d(width, width, 3, stride=2, padding=1), nn.Conv2d(2 * width, 2 * width, 3, stride=2, padding=1)
        self.twice2, self.twice1 = nn.ConvTranspose2d(2 * width, 2 * width, 4, 2, 1), nn.ConvTranspose2d(width, width, 4, 2, 1)
        self.up2, self.up1 = UNetBlock(4 * width, width), UNetBlock(2 * width, width)
        self.last = nn.Conv2d(width, 1, 1)

    def forward(self, mel_spectrograms: Tensor) -> Tensor:
        x = F.pad(mel_spectrograms, (0, 0, 0, -mel_spectrograms.shape[1] % 4))
        a = self.down1(self.first(x.unsqueeze(1)))
        b = self.down2(self.half1(a))
        y = self.twice2(self.middle(self.half2(b)))
        y = self.twice1(self.up2(torch.cat([y, b], 1)))
        return self.last(self.up1(torch.cat([y, a], 1))).squeeze(1)[:, :mel_spectrograms.shape[1]]


def unet2d():
    return export("unet2d", UNet2d(64))


class ResNetBlock(nn.Module):
    def __init__(self, a: int, b: int, stride: int):
        super().__init__()
        self.conv1, self.norm1 = nn.Conv2d(a, b, 3, stride, 1, bias=False), nn.BatchNorm2d(b)
        self.conv2, self.norm2 = nn.Conv2d(b, b, 3, 1, 1, bias=False), nn.BatchNorm2d(b)
        self.squeeze = Squeeze(b, b // 8)
        self.skip = nn.Sequential(nn.Conv2d(a, b, 1, stride, bias=False), nn.BatchNorm2d(b)) if a != b else nn.Identity()

    def forward(self, x: Tensor) -> Tensor:
        y = F.relu(self.norm1(self.conv1(x)))
        return F.relu(self.squeeze(self.norm2(self.conv2(y))) + self.skip(x))


class SpeakerResNet(nn.Module):
    """The speaker encoder of XTTS and YourTTS (arXiv:2009.14153): a ResNet with squeeze and excitation, attentive statistics."""

    def __init__(self):
        super().__init__()
        widths = [32, 32, 64, 128]
        self.first = nn.Conv2d(1, 32, 3, padding=1)
        self.blocks = nn.Sequential(*(ResNetBlock(a, b, 1 if a == b else 2) for a, b in zip([32, *widths], widths, strict=False)))
        self.attention = nn.Sequential(nn.Conv1d(128 * 20, 128, 1), nn.ReLU(), nn.BatchNorm1d(128), nn.Conv1d(128, 128 * 20, 1), nn.Softmax(2))
        self.last = nn.Linear(2 * 128 * 20, 256)

    def forward(self, mel_spectrograms: Tensor) -> Tensor:
        x = self.blocks(self.first(mel_spectrograms.transpose(1, 2).unsqueeze(1))).flatten(1, 2)
        weights = self.attention(x)
        mean = (x * weights).sum(2)
        deviation = ((x.square() * weights).sum(2) - mean.square()).clamp(min=1e-5).sqrt()
        return F.normalize(self.last(torch.cat([mean, deviation], 1)), dim=1)


def speaker_resnet():
    return export("speaker_resnet", SpeakerResNet(), loss=energy)


class Res2Block(nn.Module):
    """Dilated convolutions of an eighth of the channels each, which read the one before (arXiv:1904.01169)."""

    def __init__(self, width: int, dilation: int):
        super().__init__()
        self.first, self.last = (nn.Sequential(nn.Conv1d(width, width, 1), nn.ReLU(), nn.BatchNorm1d(width)) for _ in range(2))
        self.parts = nn.ModuleList(nn.Sequential(nn.Conv1d(width // 8, width // 8, 3, dilation=dilation, padding=dilation), nn.ReLU(),
                                                 nn.BatchNorm1d(width // 8)) for _ in range(7))
        self.squeeze = Squeeze(width, 128)

    def forward(self, x: Tensor) -> Tensor:
        first, *rest = self.first(x).chunk(8, 1)
        made, last = [first], 0
        for part, y in zip(self.parts, rest, strict=True):
            last = part(y + last)
            made.append(last)
        return x + self.squeeze(self.last(torch.cat(made, 1)))


def ecapa():
    """The body of ECAPA-TDNN (arXiv:2005.07143)."""
    return export("ecapa", Frames(512, repeated(3, lambda i: Res2Block(512, i + 2))))
