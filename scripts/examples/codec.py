"""A neural codec as EnCodec (arXiv:2210.13438): a convolutional encoder with an LSTM, a residual vector quantizer whose codebooks follow their
vectors by moving averages, a decoder, and a discriminator of complex spectrograms for each of its windows.

Two players train in turn. The generator's losses are the distances of waveforms and of mel spectrograms, the hinge loss of each
discriminator, the distance of its features, and the commitment of the encoder to its codes.

    xtts-export module scripts/examples/codec.py:build --out runs/codec
"""

import math
from dataclasses import dataclass

import torch
import torch.nn.functional as F
from torch import Tensor, nn
from torch.nn.utils import weight_norm

from common import FEATURES, HOP, LOGMEL, MELS, bucket, inside, means
from xtts_export import Export, Player, sequence

ADAM = {"name": "adamw", "lr": 3e-4, "betas": [0.5, 0.9], "eps": 1e-8, "weight_decay": 0.0, "grad_clip": 0.0}
WEIGHTS = {"time_loss": 0.1, "mel_loss": 1.0, "adversarial_loss": 3.0, "feature_loss": 3.0, "commitment_loss": 1.0}


@dataclass(frozen=True)
class Sizes:
    width: int  # doubled by each strided convolution
    dimension: int
    rates: tuple[int, ...]
    codebooks: int
    codes: int
    critic: int
    windows: tuple[int, ...]  # of the discriminators
    frames: tuple[int, ...]  # of the buckets


SMALL = Sizes(width=4, dimension=16, rates=(8, 8, 4), codebooks=2, codes=32, critic=4, windows=(256,), frames=(181, 441))


class Conv(nn.Module):
    """A convolution with weight norm, reflected at both ends so that it gives one number for each stride."""

    def __init__(self, a: int, b: int, kernel: int, stride: int = 1, dilation: int = 1):
        super().__init__()
        self.conv = weight_norm(nn.Conv1d(a, b, kernel, stride=stride, dilation=dilation))
        self.total = (kernel - 1) * dilation + 1 - stride

    def forward(self, x: Tensor) -> Tensor:
        right = self.total // 2
        return self.conv(F.pad(x, (self.total - right, right), mode="reflect"))


class Transposed(nn.Module):
    """The opposite of a strided Conv: what stands over at both ends is cut off."""

    def __init__(self, a: int, b: int, kernel: int, stride: int):
        super().__init__()
        self.conv = weight_norm(nn.ConvTranspose1d(a, b, kernel, stride=stride))
        self.total = kernel - stride

    def forward(self, x: Tensor) -> Tensor:
        y, right = self.conv(x), self.total // 2
        return y[..., self.total - right:y.shape[-1] - right]


class Residual(nn.Module):
    def __init__(self, width: int):
        super().__init__()
        self.block = nn.Sequential(nn.ELU(), Conv(width, width // 2, 3), nn.ELU(), Conv(width // 2, width, 1))
        self.shortcut = Conv(width, width, 1)

    def forward(self, x: Tensor) -> Tensor:
        return self.shortcut(x) + self.block(x)


class Recurrent(nn.Module):
    """An LSTM of two layers over time, beside which the input passes."""

    def __init__(self, width: int):
        super().__init__()
        self.lstm = nn.LSTM(width, width, 2)

    def forward(self, x: Tensor) -> Tensor:
        y = x.permute(2, 0, 1)
        y = self.lstm(y)[0] + y
        return y.permute(1, 2, 0)


def encoder(s: Sizes) -> nn.Sequential:
    layers, width = [Conv(1, s.width, 7)], s.width
    for rate in reversed(s.rates):
        layers += [Residual(width), nn.ELU(), Conv(width, 2 * width, 2 * rate, stride=rate)]
        width *= 2
    return nn.Sequential(*layers, Recurrent(width), nn.ELU(), Conv(width, s.dimension, 7))


def decoder(s: Sizes) -> nn.Sequential:
    width = s.width << len(s.rates)
    layers = [Conv(s.dimension, width, 7), Recurrent(width)]
    for rate in s.rates:
        layers += [nn.ELU(), Transposed(width, width // 2, 2 * rate, rate), Residual(width // 2)]
        width //= 2
    return nn.Sequential(*layers, nn.ELU(), Conv(width, 1, 7))


class Codebook(nn.Module):
    """Vectors that follow those which choose them: moving averages of their number and of their sum, with Laplace's smoothing."""

    def __init__(self, codes: int, dimension: int, decay: float = 0.99, epsilon: float = 1e-5):
        super().__init__()
        self.codes, self.decay, self.epsilon = codes, decay, epsilon
        vectors = torch.randn(codes, dimension) * 0.1
        self.register_buffer("embed", vectors)
        self.register_buffer("embed_avg", vectors.clone())
        self.register_buffer("cluster_size", torch.ones(codes))

    def forward(self, x: Tensor, seen: Tensor) -> Tensor:
        flat = x.reshape(-1, x.shape[-1])
        distance = flat.pow(2).sum(1, keepdim=True) - 2 * flat @ self.embed.t() + self.embed.t().pow(2).sum(0, keepdim=True)
        chosen = (-distance).max(dim=-1).indices
        found = F.embedding(chosen, self.embed).view_as(x)
        if self.training:
            with torch.no_grad():
                hot = F.one_hot(chosen, self.codes).type(x.dtype) * seen.reshape(-1, 1)
                self.cluster_size.data.mul_(self.decay).add_(hot.sum(0), alpha=1 - self.decay)
                self.embed_avg.data.mul_(self.decay).add_(hot.t() @ flat, alpha=1 - self.decay)
                total = self.cluster_size.sum()
                size = (self.cluster_size + self.epsilon) / (total + self.codes * self.epsilon) * total
                self.embed.data.copy_(self.embed_avg / size.unsqueeze(1))
        return found


class Quantizer(nn.Module):
    """Each codebook takes what those before it left."""

    def __init__(self, s: Sizes):
        super().__init__()
        self.layers = nn.ModuleList(Codebook(s.codes, s.dimension) for _ in range(s.codebooks))

    def forward(self, x: Tensor, seen: Tensor) -> tuple[Tensor, Tensor]:
        """The codes' vectors, straight through, and the commitment of each row."""
        left, made, losses, count = x, 0.0, [], seen.sum(1).clamp(min=1)
        for layer in self.layers:
            y = layer(left, seen)
            losses.append(((left - y.detach()).pow(2).mean(-1) * seen).sum(1) / count)
            y = left + (y - left).detach()
            left, made = left - y.detach(), made + y
        return made, torch.stack(losses).mean(0)


class Codec(nn.Module):
    def __init__(self, s: Sizes):
        super().__init__()
        self.encoder, self.quantizer, self.decoder = encoder(s), Quantizer(s), decoder(s)
        self.discriminator = nn.ModuleList(Critic(s.critic, window) for window in s.windows)

    def forward(self, mel_spectrograms, waveform, waveform_lengths):
        waveform = in_hops(waveform, mel_spectrograms)
        seen = inside((waveform_lengths + HOP - 1) // HOP, mel_spectrograms.shape[1] - 1).float()
        latent = self.encoder(waveform[:, None]).transpose(1, 2)
        quantized, commitment = self.quantizer(latent, seen)
        made = self.decoder(quantized.transpose(1, 2)).squeeze(1)
        return made * inside(waveform_lengths, made.shape[1]), commitment


def in_hops(waveform: Tensor, mel_spectrograms: Tensor) -> Tensor:
    """The same, whose length is known as a number of hops: then what strides make of it are multiples of one number, and not divisions."""
    return waveform.reshape(waveform.shape[0], (mel_spectrograms.shape[1] - 1) * HOP)


class Critic(nn.Module):
    """Convolutions over the complex spectrogram of one resolution; returns what each makes, and the scores."""

    def __init__(self, width: int, window: int):
        super().__init__()
        self.window = window
        self.register_buffer("hann", torch.hann_window(window), persistent=False)
        conv = lambda a, b, **rest: weight_norm(nn.Conv2d(a, b, **rest))
        self.convs = nn.ModuleList([conv(2, width, kernel_size=(3, 9), padding=(1, 4))])
        self.convs += [conv(width, width, kernel_size=(3, 9), stride=(1, 2), dilation=(d, 1), padding=(d, 4)) for d in (1, 2, 4)]
        self.score = conv(width, 1, kernel_size=(3, 3), padding=(1, 1))

    def forward(self, waveform: Tensor) -> tuple[list[Tensor], Tensor]:
        z = torch.stft(waveform, self.window, self.window // 4, self.window, window=self.hann, normalized=True, center=False, return_complex=True)
        x, made = torch.stack([z.real, z.imag], 1).transpose(2, 3), []
        for conv in self.convs:
            x = F.leaky_relu(conv(x), 0.2)
            made.append(x)
        return made, self.score(x)


_MELS = {}


def mel(waveform: Tensor, window: int) -> Tensor:
    """Logarithms of bands, whose filters and window are made once."""
    if window not in _MELS:
        places = torch.linspace(0, 1, 22).square() * (window // 2)
        bins = torch.arange(window // 2 + 1).float()
        up = (bins[None] - places[:-2, None]) / (places[1:-1] - places[:-2])[:, None]
        down = (places[2:, None] - bins[None]) / (places[2:] - places[1:-1])[:, None]
        _MELS[window] = torch.minimum(up, down).clamp(min=0), torch.hann_window(window)
    bands, hann = _MELS[window]
    z = torch.view_as_real(torch.stft(waveform, window, window // 4, window, hann, center=True, pad_mode="reflect", normalized=True, return_complex=True))
    return torch.log10((bands @ z.pow(2).sum(-1)).clamp(min=1e-5))


def of_rows(x: Tensor) -> Tensor:
    """The mean of each row, axis by axis: one long sum of nearly equal numbers, as silence has them, loses digits in f32."""
    while x.dim() > 1:
        x = x.mean(-1)
    return x


def build(sizes: Sizes = SMALL) -> Export:
    torch.manual_seed(0)
    model = Codec(sizes)

    def judge(outputs, batch):
        loss, real = 0.0, in_hops(batch["waveform"], batch["mel_spectrograms"])
        for critic in model.discriminator:
            (_, right), (_, wrong) = critic(real), critic(outputs[0].detach())
            loss = loss + of_rows(F.relu(1 - right)) + of_rows(F.relu(1 + wrong))
        return means(batch["waveform_lengths"], loss=loss / len(model.discriminator))

    def make(outputs, batch):
        fake, commitment = outputs
        real, count = in_hops(batch["waveform"], batch["mel_spectrograms"]), len(model.discriminator)
        terms = {"time_loss": of_rows((fake - real).abs()), "commitment_loss": commitment, "adversarial_loss": 0.0, "feature_loss": 0.0, "mel_loss": 0.0}
        for window in sizes.windows:
            a, b = mel(fake, window), mel(real, window)
            terms["mel_loss"] = terms["mel_loss"] + (of_rows((a - b).abs()) + of_rows((a - b).square())) / len(sizes.windows)
        for critic in model.discriminator:
            (right, _), (wrong, score) = critic(real), critic(fake)
            terms["adversarial_loss"] = terms["adversarial_loss"] + of_rows(F.relu(1 - score)) / count
            for x, y in zip(right, wrong, strict=True):
                terms["feature_loss"] = terms["feature_loss"] + of_rows((x.detach() - y).abs()) / of_rows(x.detach().abs()).clamp(min=1e-6) / (count * len(right))
        return means(batch["waveform_lengths"], loss=sum(WEIGHTS[name] * x for name, x in terms.items()), **terms)

    return Export(
        name="codec", module=model, description="an encoder, a residual vector quantizer and a decoder, with discriminators of spectrograms",
        inputs=[*sequence("mel_spectrograms", "f32", "T_mel", MELS, lengths="mel_lengths", origin="stage"),
                *sequence("waveform", "f32", "T_wav", lengths="waveform_lengths")],
        players={"discriminator": Player("discriminator", judge, ADAM), "generator": Player("*", make, ADAM)},
        schedule={"name": "constant", "warmup_steps": 0},
        buckets=[bucket(n) for n in sizes.frames], features=FEATURES, pipeline=[LOGMEL])
