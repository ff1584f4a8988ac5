"""Spectra and complex numbers"""

import torch
import torch.nn.functional as F
from torch import nn

from .case import WIDTH, Case
from .positions import _Attending


class _Wave(Case):
    """A waveform through a convolution, and one as the target: losses of both, a mean over the rows."""

    def __init__(self):
        super().__init__()
        self.conv = nn.Conv1d(1, 1, 5, padding=2)

    def forward(self, wave, wave_lengths):
        rows = (wave_lengths > 0).float()
        error = self.error(self.conv(wave[:, None]).squeeze(1), wave)
        return {"loss": (error * rows).sum() / rows.sum().clamp(min=1), "loss_weight": rows.sum()}


class MelSpectrograms(_Wave):
    """a mel loss: `torch.stft` with a window in a buffer, `abs`, a filter bank, `log`"""

    def __init__(self):
        super().__init__()
        self.register_buffer("window", torch.hann_window(32))
        self.register_buffer("bands", torch.rand(6, 17, generator=torch.Generator().manual_seed(0)))

    def mel(self, wave):
        return torch.log(torch.clamp(self.bands @ torch.stft(wave, 32, 8, window=self.window, return_complex=True).abs(), min=1e-5))

    def error(self, y, wave):
        return F.l1_loss(self.mel(y), self.mel(wave), reduction="none").mean((1, 2))


class Resolutions(_Wave):
    """losses of several resolutions: `win_length`, hops of any size, `view_as_real`, spectral convergence, `torch.hann_window` in the loss"""

    def magnitudes(self, wave, n, hop, length):
        z = torch.stft(wave, n, hop, length, torch.hann_window(length), pad_mode="constant", return_complex=True)
        return torch.view_as_real(z).square().sum(-1).clamp(min=1e-7).sqrt()

    def error(self, y, wave):
        total = 0
        for n, hop, length in (16, 4, 16), (32, 10, 24), (1024, 40, 600), (600, 48, 240):
            a, b = self.magnitudes(y, n, hop, length), self.magnitudes(wave, n, hop, length)
            convergence = torch.linalg.vector_norm(b - a, dim=(1, 2)) / torch.linalg.vector_norm(b, dim=(1, 2)).clamp(min=1e-5)
            total = total + convergence + (a.log() - b.log()).abs().mean((1, 2))
        return total


class Tapers(Case):
    """`torch.hann_window`, `hamming_window`, `blackman_window`, `bartlett_window` and `kaiser_window`, periodic and symmetric"""

    def __init__(self):
        super().__init__()
        self.linear = nn.Linear(WIDTH, WIDTH)

    def forward(self, x):
        made = (torch.hann_window, torch.hamming_window, torch.blackman_window, torch.bartlett_window, torch.kaiser_window)
        window = sum((i + 1) * (taper(WIDTH) + taper(WIDTH, False)) for i, taper in enumerate(made))
        return self.linear(x) * window + torch.hamming_window(x.shape[1])[:, None]


class Inverse(Case):
    """a vocoder's head: `torch.istft` of magnitudes and phases, `mag * (cos + 1j * sin)`, `torch.polar`, with `length`"""

    def __init__(self):
        super().__init__()
        self.linear = nn.Linear(WIDTH, 34)
        self.register_buffer("window", torch.hann_window(32))

    def forward(self, x):
        size, phase = self.linear(x).transpose(1, 2).chunk(2, dim=1)
        size = torch.exp(size).clip(max=1e2)
        z = size * (torch.cos(phase) + 1j * torch.sin(phase))
        y = torch.istft(z, 32, 8, 32, self.window) + torch.istft(torch.polar(size, phase), 32, 8, 32, self.window, length=8 * (x.shape[1] - 1))
        return y.unflatten(1, (-1, 8))


class Mixing(Case):
    """mixing by Fourier transforms (FNet): `torch.fft.fft` over time and channels, `.real`; a filter by `rfft`, `irfft`, `fft2`, `ifft`"""

    def __init__(self):
        super().__init__()
        self.linear, self.real, self.imag = nn.Linear(WIDTH, WIDTH), nn.Parameter(torch.randn(5)), nn.Parameter(torch.randn(5))

    def forward(self, x):
        y = self.linear(x)
        mixed = torch.fft.fft(torch.fft.fft(y, dim=-1), dim=-2).real / x.shape[1]
        filtered = torch.fft.irfft(torch.fft.rfft(y) * torch.complex(self.real, self.imag), n=WIDTH)
        return mixed + filtered + torch.fft.ifft(torch.fft.rfft(y, dim=1, norm="ortho"), dim=1, norm="ortho").abs().mean(1, keepdim=True) + torch.fft.fft2(y, norm="ortho").imag


class Phases(_Wave):
    """`angle`, `torch.exp(1j * phase)`, `conj`, phase differences, complex sums and means, `torch.stack` and slices of complex numbers"""

    def error(self, y, wave):
        a, b = (torch.stft(x, 32, 16, window=torch.ones(32), pad_mode="replicate", return_complex=True) for x in (y, wave + 0.1))
        turned = torch.exp(1j * ((a[:, 1:-1] + 1).angle() - torch.angle(b[:, 1:-1] + 2)))
        cross = (a * b.conj()).mean(-1) / (a.abs().square().mean(-1) + 1)
        both = torch.stack([a, b], dim=1)[:, :, 2:5] * torch.tensor(0.5 - 0.25j) - 1
        return (1 - turned.real).mean((1, 2)) + cross.abs().mean(1) + (both.sum(1) / (2 + 1j)).imag.square().mean((1, 2)) + ((a - b) ** 2).abs().mean((1, 2)) * 0.01


class RotatedBuffer(_Attending):
    """rotary positions from a complex buffer, `freqs_cis`, sliced to the length, over heads"""

    def __init__(self):
        super().__init__()
        angles = torch.outer(torch.arange(64).float(), 1.0 / 100 ** (torch.arange(0, WIDTH // 2, 2).float() / WIDTH))
        self.register_buffer("freqs_cis", torch.polar(torch.ones_like(angles), angles))

    def rotated(self, y):
        z = torch.view_as_complex(y.float().reshape(*y.shape[:-1], -1, 2))
        return torch.view_as_real(z * self.freqs_cis[:y.shape[1]].view(1, y.shape[1], 1, -1)).flatten(3).type_as(y)

    def forward(self, x):
        q, k = (self.rotated(y.unflatten(-1, (2, -1))).transpose(1, 2) for y in (self.q(x), self.k(x)))
        return self.attended(q, k, x.unflatten(-1, (2, -1)).transpose(1, 2)).transpose(1, 2).flatten(2)


class ComplexLayers(Case):
    """a complex linear layer, `torch.complex(a, b) @ z`, `torch.einsum`, and an activation of both parts"""

    def __init__(self):
        super().__init__()
        self.a, self.b, self.linear = nn.Parameter(torch.randn(4, 4)), nn.Parameter(torch.randn(4, 4)), nn.Linear(WIDTH, WIDTH)

    def activation(self, z):
        return torch.complex(torch.tanh(z.real), torch.tanh(z.imag))

    def forward(self, x):
        z = torch.view_as_complex(self.linear(x).unflatten(-1, (-1, 2)))
        weight = torch.complex(self.a, self.b)
        z = self.activation(z @ weight) + torch.einsum("btc,cd->btd", z, weight) / torch.sqrt(torch.tensor(4.0))
        return torch.cat([z.real, torch.abs(z)], dim=-1)


class ComplexActivation(ComplexLayers):
    """functions of complex numbers without a rule, as `torch.tanh`"""

    refused = "tanh of complex numbers has no form"
    way_out = ComplexLayers

    def activation(self, z):
        return torch.tanh(z)  # blamed
