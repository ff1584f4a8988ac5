"""The decoder of StyleTTS 2 (arXiv:2306.07691) with the generator of iSTFTNet (arXiv:2203.02395): from frames, pitch
and energy to a waveform, in the style of a reference.

Residual blocks whose instance norms a style vector scales and shifts (AdaIN), a source of harmonics and noise from the
pitch (NSF, arXiv:1904.12088), snake activations, and an inverse Fourier transform. The loss is the distance of log
spectrograms in several resolutions. Written from the papers, and in the way of their authors' code.

    xtts-export module scripts/examples/style_decoder.py:build --out runs/style-decoder
"""

import math
from dataclasses import dataclass

import torch
import torch.nn.functional as F
from torch import Tensor, nn
from torch.nn.utils import spectral_norm, weight_norm

from common import FEATURES, LOGMEL, MELS, bucket, inside, means
from xtts_export import Export, Input, sequence
from xtts_export.module import ADAMW
from fast_speech import PROSODY


@dataclass(frozen=True)
class Sizes:
    width: int
    style: int
    rates: tuple[int, ...]  # times the hop of the inverse transform they are the hop
    kernels: tuple[int, ...]
    dilations: tuple[int, ...]
    harmonics: int
    frames: tuple[int, ...]  # of the buckets


SMALL = Sizes(width=32, style=16, rates=(8, 8), kernels=(3,), dilations=(1, 3), harmonics=8, frames=(181, 441))
LARGE = Sizes(512, 128, rates=(8, 8), kernels=(3, 7, 11), dilations=(1, 3, 5), harmonics=8, frames=(181, 441))
FFT, STRIDE = 16, 4


class AdaIN(nn.Module):
    """Each channel's frames are normalized; the style scales and shifts them."""

    def __init__(self, style: int, channels: int):
        super().__init__()
        self.norm, self.fc = nn.InstanceNorm1d(channels, affine=False), nn.Linear(style, 2 * channels)

    def forward(self, x: Tensor, style: Tensor) -> Tensor:
        gamma, beta = torch.chunk(self.fc(style).view(style.size(0), -1, 1), chunks=2, dim=1)
        return (1 + gamma) * self.norm(x) + beta


class StyledBlock(nn.Module):
    """Two convolutions behind AdaIN; the second half of the decoder has twice the frames."""

    def __init__(self, a: int, b: int, style: int, upsample: bool = False, dropout: float = 0.2):
        super().__init__()
        self.upsample = upsample
        self.norm1, self.norm2 = AdaIN(style, a), AdaIN(style, b)
        self.conv1, self.conv2 = (weight_norm(nn.Conv1d(n, b, 3, 1, 1)) for n in (a, b))
        self.conv1x1 = weight_norm(nn.Conv1d(a, b, 1, 1, 0, bias=False)) if a != b else None
        twice = lambda: nn.ConvTranspose1d(a, a, 3, stride=2, groups=a, padding=1, output_padding=1)
        self.pool = weight_norm(twice()) if upsample else nn.Identity()
        self.dropout, self.act = nn.Dropout(dropout), nn.LeakyReLU(0.2)

    def forward(self, x: Tensor, style: Tensor) -> Tensor:
        y = self.pool(self.act(self.norm1(x, style)))
        y = self.conv1(self.dropout(y))
        y = self.conv2(self.dropout(self.act(self.norm2(y, style))))
        x = F.interpolate(x, scale_factor=2, mode="nearest") if self.upsample else x
        return (y + (x if self.conv1x1 is None else self.conv1x1(x))) / math.sqrt(2)


class StyleEncoder(nn.Module):
    """A vector of a spectrogram."""

    def __init__(self, width: int, style: int):
        super().__init__()
        first, second = (spectral_norm(nn.Conv2d(n, width, 3, 1, 1)) for n in (1, width))
        self.convs = nn.Sequential(first, nn.LeakyReLU(0.2), nn.AvgPool2d(2),
                                   second, nn.LeakyReLU(0.2), nn.AdaptiveAvgPool2d(1))
        self.unshared = nn.Linear(width, style)

    def forward(self, mel: Tensor) -> Tensor:
        h = self.convs(mel.unsqueeze(1))
        return self.unshared(h.view(h.size(0), -1))


class Source(nn.Module):
    """Sines of the pitch and its multiples, and noise: more of it where there is no voice."""

    def __init__(self, harmonics: int, rate: int, amplitude: float = 0.1, noise: float = 0.003):
        super().__init__()
        self.harmonics, self.rate, self.amplitude, self.noise = harmonics, rate, amplitude, noise
        self.linear, self.tanh = nn.Linear(harmonics + 1, 1), nn.Tanh()

    def forward(self, f0: Tensor) -> Tensor:
        """f0[B, T, 1] in Hz, 0 where there is no voice; the source has one channel, too."""
        with torch.no_grad():
            tones = f0 * torch.arange(1, self.harmonics + 2, dtype=f0.dtype)
            turns = (tones / self.rate) % 1
            start = torch.rand(f0.shape[0], tones.shape[2])
            start[:, 0] = 0
            turns[:, 0, :] = turns[:, 0, :] + start
            sines = torch.sin(2 * math.pi * (torch.cumsum(turns, dim=1) % 1)) * self.amplitude
            voiced = (f0 > 10).type(torch.float32)
            noise = (voiced * self.noise + (1 - voiced) * self.amplitude / 3) * torch.randn_like(sines)
            waves = sines * voiced + noise
        return self.tanh(self.linear(waves))


class Snake(nn.Module):
    """Pairs of convolutions behind AdaIN and x + sin(a x)^2 / a."""

    def __init__(self, channels: int, kernel: int, dilations: tuple[int, ...], style: int):
        super().__init__()

        def conv(dilation: int) -> nn.Module:
            padding = (kernel * dilation - dilation) // 2
            return weight_norm(nn.Conv1d(channels, channels, kernel, 1, dilation=dilation, padding=padding))

        alpha = lambda: nn.Parameter(torch.ones(1, channels, 1))
        self.convs1, self.convs2 = nn.ModuleList(map(conv, dilations)), nn.ModuleList(conv(1) for _ in dilations)
        self.adain1, self.adain2 = (nn.ModuleList(AdaIN(style, channels) for _ in dilations) for _ in range(2))
        self.alpha1, self.alpha2 = (nn.ParameterList(alpha() for _ in dilations) for _ in range(2))

    def forward(self, x: Tensor, style: Tensor) -> Tensor:
        parts = self.convs1, self.convs2, self.adain1, self.adain2, self.alpha1, self.alpha2
        for c1, c2, n1, n2, a1, a2 in zip(*parts, strict=True):
            y = n1(x, style)
            y = c1(y + (1 / a1) * (torch.sin(a1 * y) ** 2))
            y = n2(y, style)
            x = c2(y + (1 / a2) * (torch.sin(a2 * y) ** 2)) + x
        return x


class Generator(nn.Module):
    def __init__(self, s: Sizes):
        super().__init__()
        self.rates, scale = s.rates, math.prod(s.rates)
        self.source = Source(s.harmonics, FEATURES["sample_rate"])
        self.register_buffer("window", torch.hann_window(FFT), persistent=False)
        widths = [s.width >> i for i in range(len(s.rates) + 1)]
        up = lambda a, b, rate: weight_norm(nn.ConvTranspose1d(a, b, 2 * rate, rate, padding=rate // 2))
        self.ups = nn.ModuleList(map(up, widths, widths[1:], s.rates))
        self.noise_convs, self.noise_blocks = nn.ModuleList(), nn.ModuleList()
        for i, width in enumerate(widths[1:]):
            left = math.prod(s.rates[i + 1:])
            kernel, padding = (2 * left, (left + 1) // 2) if left > 1 else (1, 0)
            self.noise_convs.append(nn.Conv1d(FFT + 2, width, kernel, left, padding))
            self.noise_blocks.append(Snake(width, 7, s.dilations, s.style))
        self.blocks = nn.ModuleList(nn.ModuleList(Snake(width, k, s.dilations, s.style) for k in s.kernels)
                                    for width in widths[1:])
        self.post = weight_norm(nn.Conv1d(widths[-1], FFT + 2, 7, 1, padding=3))
        self.scale = scale * STRIDE

    def forward(self, x: Tensor, style: Tensor, f0: Tensor) -> Tensor:
        """x[B, C, N], f0[B, N] -> [B, N * scale]."""
        with torch.no_grad():
            fine = F.interpolate(f0[:, None], scale_factor=float(self.scale), mode="nearest").transpose(1, 2)
        z = torch.stft(self.source(fine).squeeze(-1), FFT, STRIDE, FFT, window=self.window, return_complex=True)
        harmonic = torch.cat([z.abs(), z.angle()], 1)
        for up, conv, noise, blocks in zip(self.ups, self.noise_convs, self.noise_blocks, self.blocks, strict=True):
            x = up(F.leaky_relu(x, 0.1))
            source = noise(conv(harmonic), style)
            x = x + source[:, :, :x.shape[2]]
            x = sum(block(x, style) for block in blocks) / len(blocks)
        x = self.post(F.leaky_relu(x))
        size, phase = torch.exp(x[:, :FFT // 2 + 1]), torch.sin(x[:, FFT // 2 + 1:])
        y = torch.istft(size * torch.exp(phase * 1j), FFT, STRIDE, FFT, window=self.window)
        return F.pad(y, (0, STRIDE))


class StyleDecoder(nn.Module):
    def __init__(self, s: Sizes):
        super().__init__()
        self.style = StyleEncoder(s.width // 2, s.style)
        self.F0_conv, self.N_conv = (weight_norm(nn.Conv1d(1, 1, 3, stride=1, padding=1)) for _ in range(2))
        self.encode = StyledBlock(MELS + 2, s.width, s.style)
        self.decode = nn.ModuleList(StyledBlock(s.width + 2, s.width, s.style) for _ in range(2))
        self.generator = Generator(s)

    def forward(self, mel_spectrograms, mel_lengths, pitch, energy):
        mel = mel_spectrograms.transpose(1, 2)
        style = self.style(mel)
        x, pitch, energy = mel[..., :-1], pitch[:, :-1], energy[:, :-1]
        f0, n = self.F0_conv(pitch.unsqueeze(1)), self.N_conv(energy.unsqueeze(1))
        x = self.encode(torch.cat([x, f0, n], axis=1), style)
        for block in self.decode:
            x = block(torch.cat([x, f0, n], axis=1), style)
        return self.generator(x, style, torch.where(pitch > 0, pitch.exp(), 0.0))


def spectrum(x: Tensor, window: int) -> Tensor:
    z = torch.stft(x, window, window // 4, window, torch.hann_window(window), return_complex=True)
    return torch.log(torch.clamp(z.abs(), min=1e-3))


def loss(fake, batch):
    seen = inside(batch["waveform_lengths"], fake.shape[1]).float()
    distance = lambda window: (spectrum(fake * seen, window) - spectrum(batch["waveform"], window)).abs().mean((1, 2))
    parts = [distance(window) for window in (128, 256, 512)]
    return means(batch["waveform_lengths"], loss=sum(parts) / len(parts))


def build(sizes: Sizes = SMALL) -> Export:
    torch.manual_seed(0)
    return Export(
        name="style-decoder", module=StyleDecoder(sizes), loss=loss,
        inputs=[*sequence("mel_spectrograms", "f32", "T_mel", MELS, lengths="mel_lengths", origin="stage"),
                *(Input(name, "f32", ("B", "T_mel"), lengths="mel_lengths", origin="stage")
                  for name in ("pitch", "energy")),
                *sequence("waveform", "f32", "T_wav", lengths="waveform_lengths")],
        # The learning rate of the paper, and of optimizer_params in its authors' Configs/config.yml.
        optimizer={**ADAMW, "lr": 1e-4}, buckets=[bucket(n) for n in sizes.frames], features=FEATURES,
        pipeline=[LOGMEL, PROSODY])


def large() -> Export:
    return build(LARGE)
