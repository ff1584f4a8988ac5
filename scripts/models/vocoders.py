"""Models that read or write waveforms: strided and transposed convolutions, Fourier transforms, quantizers."""

import torch
import torch.nn.functional as F
from torch import Tensor, nn
from torch.nn.utils.parametrizations import weight_norm

from convolutions import ConvNeXtBlock
from frames import HOP, MELS, Residual, energy, export, repeated, sample

SEGMENT = 32  # frames of which a vocoder makes samples


class Snake(nn.Module):
    """x + sin(a x)^2 / a with an a for each channel (arXiv:2006.08195)."""

    def __init__(self, channels: int):
        super().__init__()
        self.alpha = nn.Parameter(torch.ones(1, channels, 1))

    def forward(self, x: Tensor) -> Tensor:
        return x + torch.sin(self.alpha * x).square() / (self.alpha + 1e-9)


class HiFiGAN(nn.Module):
    """The generator of HiFi-GAN (arXiv:2010.05646) on a segment: transposed convolutions, each before dilated ones of three sizes."""

    def __init__(self, width: int):
        super().__init__()
        conv = lambda *args, **options: weight_norm(nn.Conv1d(*args, **options))
        self.first, self.stages = conv(MELS, width, 7, padding=3), nn.ModuleList()
        for rate in (8, 8, 2, 2):
            width //= 2
            paths = nn.ModuleList(repeated(3, lambda i, k=kernel, w=width: Residual(
                nn.LeakyReLU(0.1), conv(w, w, k, dilation=1 + 2 * i, padding=(1 + 2 * i) * (k // 2)), nn.LeakyReLU(0.1), conv(w, w, k, padding=k // 2)))
                for kernel in (3, 7, 11))
            self.stages.append(nn.ModuleList([weight_norm(nn.ConvTranspose1d(2 * width, width, 2 * rate, rate, rate // 2)), paths]))
        self.last = conv(width, 1, 7, padding=3)

    def forward(self, mel_spectrograms: Tensor) -> Tensor:
        x = self.first(mel_spectrograms[:, :SEGMENT].transpose(1, 2))
        for up, paths in self.stages:
            x = up(F.leaky_relu(x, 0.1))
            x = sum(path(x) for path in paths) / len(paths)
        return torch.tanh(self.last(F.leaky_relu(x))).squeeze(1)


def hifigan():
    return export("hifigan", HiFiGAN(512), loss=sample)


class Vocos(nn.Module):
    """Vocos (arXiv:2306.00814): magnitude and phase of each frame, and an inverse Fourier transform."""

    def __init__(self, width: int, layers: int, size: int = 4 * HOP):
        super().__init__()
        self.size, self.first = size, nn.Conv1d(MELS, width, 7, padding=3)
        self.body, self.last = repeated(layers, lambda _: ConvNeXtBlock(width)), nn.Linear(width, size + 2)
        self.register_buffer("window", torch.hann_window(size))

    def forward(self, mel_spectrograms: Tensor) -> Tensor:
        x = self.body(self.first(mel_spectrograms.transpose(1, 2)))
        magnitude, phase = self.last(x.transpose(1, 2)).float().transpose(1, 2).chunk(2, 1)  # there is no transform in bf16
        magnitude = torch.exp(magnitude).clamp(max=100)
        spectrum = torch.complex(magnitude * torch.cos(phase), magnitude * torch.sin(phase))
        return torch.istft(spectrum, self.size, HOP, window=self.window, center=True)


def vocos():
    return export("vocos", Vocos(384, 6), loss=sample)


def spectra(x: Tensor, size: int) -> Tensor:
    spectrum = torch.stft(x, size, size // 4, window=torch.hann_window(size, device=x.device), return_complex=True, pad_mode="constant")
    return spectrum.abs().clamp(min=1e-5).log()


def resolutions(output: Tensor, batch: dict[str, Tensor]) -> dict[str, Tensor]:
    """The distance of log spectra in three resolutions (arXiv:1910.11480)."""
    target = batch["waveform"][:, :output.shape[1]]
    rows = (batch["waveform_lengths"] > 0).float()
    each = sum((spectra(output, n) - spectra(target, n)).abs().mean((1, 2)) for n in (512, 1024, 2048))
    return {"loss": (each * rows).sum() / rows.sum().clamp(min=1), "loss_weight": rows.sum()}


class Enhancer(nn.Module):
    """Samples to samples by dilated convolutions of a few channels, as Parallel WaveGAN (arXiv:1910.11480)."""

    def __init__(self, width: int, layers: int):
        super().__init__()
        self.first, self.last = nn.Conv1d(1, width, 1), nn.Conv1d(width, 1, 1)
        self.gates = nn.ModuleList(nn.Conv1d(width, 2 * width, 3, dilation=2 ** (i % 5), padding=2 ** (i % 5)) for i in range(layers))
        self.outs = nn.ModuleList(nn.Conv1d(width, width, 1) for _ in range(layers))

    def forward(self, waveform: Tensor) -> Tensor:
        x = self.first(waveform[:, None, :16384])
        for gate, out in zip(self.gates, self.outs, strict=True):
            x = (x + out(F.glu(gate(x), 1))) * 0.5 ** 0.5
        return self.last(F.relu(x)).squeeze(1)


def enhancer():
    return export("enhancer", Enhancer(64, 10), loss=resolutions)


class Codec(nn.Module):
    """Strided convolutions, three residual quantizers, and back (arXiv:2107.03312, arXiv:2210.13438)."""

    def __init__(self, activation=nn.ELU, width: int = 32, rates: tuple[int, ...] = (2, 4, 8), codes: int = 512):
        super().__init__()
        act = (lambda _: nn.ELU()) if activation is nn.ELU else activation
        down, up = [nn.Conv1d(1, width, 7, padding=3)], []
        for rate in rates:
            unit = Residual(act(width), nn.Conv1d(width, width, 3, padding=1), act(width), nn.Conv1d(width, width, 1))
            down += [unit, act(width), nn.Conv1d(width, 2 * width, 2 * rate, rate, rate // 2)]
            width *= 2
        for rate in reversed(rates):
            width //= 2
            unit = Residual(act(width), nn.Conv1d(width, width, 3, padding=1), act(width), nn.Conv1d(width, width, 1))
            up += [act(2 * width), nn.ConvTranspose1d(2 * width, width, 2 * rate, rate, rate // 2), unit]
        self.down, self.up = nn.Sequential(*down), nn.Sequential(*up, act(width), nn.Conv1d(width, 1, 7, padding=3))
        self.books = nn.Parameter(torch.randn(3, codes, width * 2 ** len(rates)) * 0.5)

    def forward(self, waveform: Tensor) -> Tensor:
        x = self.down(waveform[:, None, :16384]).transpose(1, 2)
        left, found = x, 0
        for book in self.books:
            apart = left.square().sum(-1, keepdim=True) - 2 * left @ book.T + book.square().sum(-1)
            code = F.embedding(apart.argmin(-1), book)
            left, found = left - code, found + code
        return torch.tanh(self.up((x + (found - x).detach() + 0.1 * (found - found.detach())).transpose(1, 2))).squeeze(1)


def codec():
    return export("codec", Codec(), loss=sample)


def snake_codec():
    """The same with snake, as in the Descript Audio Codec (arXiv:2306.06546)."""
    return export("snake_codec", Codec(Snake, width=48), loss=sample)


class Periods(nn.Module):
    """The discriminator of periods of HiFi-GAN: two-dimensional convolutions along one dimension."""

    def __init__(self, period: int, width: int):
        super().__init__()
        widths = [1, width, 4 * width, 8 * width]
        self.period = period
        self.convs = nn.Sequential(*(nn.Sequential(weight_norm(nn.Conv2d(a, b, (5, 1), (3, 1), (2, 0))), nn.LeakyReLU(0.1))
                                     for a, b in zip(widths, widths[1:], strict=False)))
        self.last = weight_norm(nn.Conv2d(widths[-1], 1, (3, 1), 1, (1, 0)))

    def forward(self, x: Tensor) -> Tensor:
        return self.last(self.convs(x.unflatten(2, (-1, self.period)))).flatten(1)


class Discriminator(nn.Module):
    def __init__(self):
        super().__init__()
        self.parts = nn.ModuleList(Periods(period, 64) for period in (2, 3, 5, 7))

    def forward(self, waveform: Tensor) -> Tensor:
        return torch.cat([part(waveform[:, None, :210 * 39]) for part in self.parts], 1)


def discriminator():
    return export("discriminator", Discriminator(), loss=energy)
