"""Pieces of vocoders and codecs"""

import math

import numpy as np
import torch
import torch.nn.functional as F
from torch import nn
from torch.nn.utils.parametrizations import weight_norm

from .case import TABLE, WIDTH, Case
from .shapes import _Linear


class LocationVariable(Case):
    """a convolution whose kernels a network makes for each frame (UnivNet): two `unfold`, `einsum`"""

    hop = 4

    def __init__(self):
        super().__init__()
        self.kernels, self.first = nn.Conv1d(WIDTH, 4 * 4 * 3, 3, padding=1), nn.Conv1d(1, 4, 3, padding=1)

    def forward(self, x):
        frames = x.mT
        kernels = self.kernels(frames).view(x.shape[0], 4, 4, 3, -1)
        y = F.pad(self.first(F.interpolate(frames.mean(1, keepdim=True), scale_factor=float(self.hop))), (1, 1))
        y = y.unfold(2, self.hop + 2, self.hop).unfold(3, 3, 1)
        return torch.einsum("bildk,biokl->bold", y, kernels).flatten(2)


class OverlapAdd(_Linear):
    """a head that adds up frames itself (Vocos): `torch.fft.irfft`, a window, `F.fold`, and a division by the window's"""

    def __init__(self):
        super().__init__()
        self.head = nn.Linear(WIDTH, 18)
        self.register_buffer("window", torch.hann_window(16))

    def folded(self, y):
        return F.fold(y, (1, 4 * (y.shape[2] - 1) + 16), (1, 16), stride=(1, 4))[:, 0, 0, 6:-6]

    def forward(self, x):
        size, phase = self.head(self.linear(x)).mT.chunk(2, 1)
        spectrum = size.exp().clip(max=100) * (phase.cos() + 1j * phase.sin())
        frames = torch.fft.irfft(spectrum, 16, dim=1) * self.window[None, :, None]
        return self.folded(frames) / self.folded(self.window.square().expand(1, x.shape[1], -1).mT).clamp(min=1e-11)


class _Wave(Case):
    """wave through a convolution, and then some."""

    def __init__(self):
        super().__init__()
        self.filter = nn.Conv1d(1, 1, 7, padding=3)

    def loss(self, y, batch):
        rows = (batch["wave_lengths"] > 0).float()
        return {"loss": (y.flatten(1).square().mean(1) * rows).sum() / rows.sum().clamp(min=1), "loss_weight": rows.sum()}


class SubBands(_Wave):
    """a pseudo-QMF bank (multi-band MelGAN): filters of NumPy in buffers, strided down by an identity's kernel, and back by `F.conv_transpose1d`"""

    def __init__(self):
        super().__init__()
        places, bands = np.arange(15), np.arange(4)[:, None]
        kernel = np.kaiser(15, 9.0) * np.sinc((places - 7) * 0.15)
        filters = 2 * kernel * np.cos((2 * bands + 1) * np.pi / 8 * (places - 7) + (-1) ** bands * np.pi / 4)
        self.register_buffer("apart", torch.from_numpy(filters).float()[:, None])
        self.register_buffer("joined", torch.from_numpy(filters[:, ::-1].copy()).float()[None])
        self.register_buffer("strided", F.pad(torch.eye(4)[..., None], (0, 3)))
        self.middle = nn.Conv1d(4, 4, 3, padding=1)

    def forward(self, wave):
        bands = F.conv1d(F.conv1d(F.pad(self.filter(wave[:, None]), (7, 7)), self.apart), self.strided, stride=4)
        return F.conv1d(F.pad(F.conv_transpose1d(self.middle(bands), 4 * self.strided, stride=4), (7, 7)), self.joined)


class SpectralDiscriminator(_Wave):
    """a discriminator of magnitudes (UnivNet, Vocos): `torch.stft` with `center=False`, `torch.norm(view_as_real(...))`, convolutions, feature matching"""

    def __init__(self):
        super().__init__()
        self.layers = nn.ModuleList([weight_norm(nn.Conv2d(1, 4, (3, 9), padding=(1, 4))), weight_norm(nn.Conv2d(4, 4, (3, 9), stride=(1, 2), padding=(1, 4)))])

    def features(self, y):
        y = F.pad(y, (int((32 - 8) / 2), int((32 - 8) / 2)), mode="reflect")[:, 0]
        y = torch.stft(y, 32, 8, 32, window=torch.ones(32), center=False, return_complex=True)
        y, found = torch.norm(torch.view_as_real(y), p=2, dim=-1)[:, None], []
        for layer in self.layers:
            y = layer(y)
            found.append(y.flatten(1))
            y = F.leaky_relu(y, 0.1)
        return found

    def forward(self, wave):
        made = torch.tanh(self.filter(wave[:, None]))
        return torch.cat([real.detach() - fake for real, fake in zip(self.features(wave[:, None]), self.features(made), strict=True)], 1)


class RandomSegments(_Linear):
    """segments of a fixed length at random places, as VITS trains its vocoder on: `gather` at `start[:, None] + torch.arange(n)`"""

    draws = True

    def forward(self, x, lengths):
        start = (torch.rand(x.shape[0]) * (lengths - 3).clamp(min=1)).long()
        places = (start[:, None] + torch.arange(4)).clamp(max=x.shape[1] - 1)
        return self.linear(x).gather(1, places[..., None].expand(-1, -1, WIDTH))


class SlicedSegments(_Linear):
    """the same by slices, `y[i, :, s:s + 4]`"""

    refused = "the value of a tensor chooses a size"
    way_out = RandomSegments

    def forward(self, x, lengths):
        y = self.linear(x).mT
        start = (torch.rand(x.shape[0]) * (lengths - 3).clamp(min=1)).long()
        return torch.stack([y[i, :, start[i]:start[i] + 4] for i in range(2)])  # blamed


class DelayedCodes(Case):
    """codes of three books, each one step later (MusicGen): writes of slices into `torch.full`, `sum` of embeddings, `cross_entropy` of each book"""

    def __init__(self):
        super().__init__()
        self.tables = nn.ModuleList(nn.Embedding(TABLE + 1, WIDTH) for _ in range(3))
        self.heads, self.layer = nn.ModuleList(nn.Linear(WIDTH, TABLE) for _ in range(3)), nn.Conv1d(WIDTH, WIDTH, 3)

    def forward(self, ids, id_lengths):
        codes = torch.stack([(ids + book) % TABLE for book in range(3)], 1).long()
        b, books, n = codes.shape
        delayed = torch.full((b, books, n + books - 1), TABLE)
        for book in range(books):
            delayed[:, book, book:n + book] = codes[:, book]
        y = self.layer(F.pad(sum(table(delayed[:, book]) for book, table in enumerate(self.tables)).mT, (2, 0))).mT
        inside, loss = (torch.arange(n) < id_lengths[:, None]).float(), 0.0
        for book, head in enumerate(self.heads):
            errors = F.cross_entropy(head(y[:, book:n + book - 1]).reshape(-1, TABLE), codes[:, book, 1:].reshape(-1), reduction="none")
            loss = loss + (errors.view(b, -1) * inside[:, 1:]).sum() / books
        return {"loss": loss / inside.sum().clamp(min=1), "loss_weight": inside.sum()}


class MixtureOfLogistics(Case):
    """the likelihood of samples by a discretized mixture of logistic distributions (WaveNet): nested `torch.where`, `log_softmax`, `logsumexp`"""

    def __init__(self):
        super().__init__()
        self.linear = nn.Linear(1, 9)

    def forward(self, wave, wave_lengths):
        weights, means, scales = self.linear(wave[..., None]).chunk(3, -1)
        y, scales = torch.tanh(wave)[..., None].expand_as(means), scales.clamp(min=-7.0)
        middle, half = (y - means) * torch.exp(-scales), torch.exp(-scales) / 255
        share = torch.sigmoid(middle + half) - torch.sigmoid(middle - half)
        inner = torch.where(share > 1e-5, share.clamp(min=1e-12).log(), middle - scales - 2 * F.softplus(middle) - math.log(127.5))
        p = torch.where(y < -0.999, middle + half - F.softplus(middle + half), torch.where(y > 0.999, -F.softplus(middle - half), inner))
        inside = (torch.arange(wave.shape[1]) < wave_lengths[:, None]).float()
        return {"loss": -(torch.logsumexp(p + F.log_softmax(weights, -1), -1) * inside).sum() / inside.sum().clamp(min=1), "loss_weight": inside.sum()}


class _Rounded(torch.autograd.Function):
    """Levels of a quantizer, whose gradient ends at its bounds."""

    @staticmethod
    def forward(ctx, x, levels):
        ctx.save_for_backward(x)
        return torch.round(x * levels) / levels

    @staticmethod
    def backward(ctx, gradient):
        [x] = ctx.saved_tensors
        return gradient * (x.abs() <= 0.9), None


class _Reversed(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x, factor):
        ctx.factor = factor
        return x.view_as(x)

    @staticmethod
    def backward(ctx, gradient):
        return -ctx.factor * gradient, None


class OwnGradients(_Linear):
    """`torch.autograd.Function` of one's own, straight through a quantizer of levels (FSQ), and gradients reversed for a classifier of speakers"""

    def __init__(self):
        super().__init__()
        self.speakers = nn.Linear(WIDTH, TABLE)

    def forward(self, x, lengths, speaker):
        y = _Rounded.apply(torch.tanh(self.linear(x)), 3)
        rows = (lengths > 0).float()
        errors = F.cross_entropy(self.speakers(_Reversed.apply(y.mean(1), 0.5)), speaker.long(), reduction="none") + (y - x).square().mean((1, 2))
        return {"loss": (errors * rows).sum() / rows.sum().clamp(min=1), "loss_weight": rows.sum()}


class Spline(Case):
    """a rational quadratic spline with tails, as VITS predicts durations by: `cumsum` of a softmax, its ends set, `gather` of the bin's knots, `torch.where`"""

    def __init__(self):
        super().__init__()
        self.shape, self.place = nn.Linear(WIDTH, 14), nn.Linear(WIDTH, 1)

    @staticmethod
    def knots(raw):
        ends = F.pad(torch.cumsum(1e-3 + (1 - 5e-3) * F.softmax(raw, -1), -1), (1, 0)) * 10 - 5
        ends[..., 0], ends[..., -1] = -5.0, 5.0
        return ends, ends[..., 1:] - ends[..., :-1]

    def forward(self, x, lengths):
        (lefts, widths), (lows, heights) = (self.knots(raw) for raw in self.shape(x)[..., :10].chunk(2, -1))
        slopes = F.pad(self.shape(x)[..., 10:], (1, 1))
        slopes[..., 0] = slopes[..., -1] = math.log(math.exp(1 - 1e-3) - 1)
        slopes, z = 1e-3 + F.softplus(slopes), 4 * self.place(x)[..., 0]
        inside = (z >= -5) & (z <= 5)
        at = torch.where(inside, z, 0.0)
        bin = ((at[..., None] >= torch.cat([lefts[..., :-1], lefts[..., -1:] + 1e-6], -1)).sum(-1) - 1)[..., None]
        left, width, low, height, slope, start, end = (t.gather(-1, bin)[..., 0] for t in (lefts, widths, lows, heights, heights / widths, slopes, slopes[..., 1:]))
        part = (at - left) / width
        both = part * (1 - part)
        over = slope + (start + end - 2 * slope) * both
        y = torch.where(inside, low + height * (slope * part.square() + start * both) / over, z)
        rate = slope.square() * (end * part.square() + 2 * slope * both + start * (1 - part).square())
        gain, frames = torch.where(inside, rate.log() - 2 * over.log(), 0.0), (torch.arange(x.shape[1]) < lengths[:, None]).float()
        return {"loss": ((0.5 * y.square() - gain) * frames).sum() / frames.sum().clamp(min=1), "loss_weight": frames.sum()}
