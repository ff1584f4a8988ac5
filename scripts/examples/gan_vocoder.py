"""A vocoder that is trained as a GAN: the generator of HiFi-GAN (arXiv:2010.05646) against discriminators of periods and scales.

Two players train in turn on each batch. Their losses are those of the paper: least squares, and for the generator also the distance of the
discriminators' features and of mel spectrograms. The periods are powers of two, which divide the hop.

    xtts-export module scripts/examples/gan_vocoder.py:build --out runs/gan-vocoder
"""

from dataclasses import replace

import torch
import torch.nn.functional as F
from torch import Tensor, nn

import vocoder
from common import FEATURES, HOP, LOGMEL, MELS, bucket, inside, means
from xtts_export import Export, Player, sequence

SLOPE = 0.1
WEIGHTS = {"feature_loss": 2.0, "mel_loss": 45.0}
ADAMW = {"name": "adamw", "lr": 2e-4, "betas": [0.8, 0.99], "eps": 1e-8, "weight_decay": 0.01, "grad_clip": 0.0}


class Critic(nn.Module):
    """Strided convolutions; returns what each layer makes of a signal [N, 1, T], the scores last."""

    def __init__(self, width: int, kernel: int, stride: int, layers: int):
        super().__init__()
        widths = [1] + [width << i for i in range(layers)]
        self.layers = nn.ModuleList(nn.Conv1d(a, b, kernel, stride=stride, padding=kernel // 2) for a, b in zip(widths, widths[1:]))
        self.score = nn.Conv1d(widths[-1], 1, 3, padding=1)

    def forward(self, x: Tensor) -> list[Tensor]:
        made = []
        for layer in self.layers:
            x = F.leaky_relu(layer(x), SLOPE)
            made.append(x)
        return [*made, self.score(x)]


class Discriminator(nn.Module):
    """Critics of every p-th sample, from each of the p first ones on, and of means of s samples."""

    def __init__(self, width: int, periods: tuple[int, ...], scales: tuple[int, ...], layers: int):
        super().__init__()
        self.periods, self.scales = periods, scales
        self.of_periods = nn.ModuleList(Critic(width, 5, 3, layers) for _ in periods)
        self.of_scales = nn.ModuleList(Critic(width, 15, 4, layers) for _ in scales)

    def forward(self, waveform: Tensor, hops: int) -> list[list[Tensor]]:
        """What the layers of each critic make of rows of so many hops."""
        rows, found = waveform.shape[0], []
        for p, critic in zip(self.periods, self.of_periods, strict=True):
            columns = waveform.reshape(rows, hops * (HOP // p), p).transpose(1, 2).reshape(rows * p, 1, hops * (HOP // p))
            found.append([x.reshape(rows, p, *x.shape[1:]) for x in critic(columns)])
        for s, critic in zip(self.scales, self.of_scales, strict=True):
            found.append([x[:, None] for x in critic(waveform.reshape(rows, 1, hops * (HOP // s), s).mean(-1))])
        return found


class Gan(nn.Module):
    def __init__(self, sizes: vocoder.Sizes, width: int, periods: tuple[int, ...], scales: tuple[int, ...], layers: int):
        super().__init__()
        self.generator = vocoder.Vocoder(sizes)
        self.discriminator = Discriminator(width, periods, scales, layers)

    def forward(self, mel_spectrograms, waveform_lengths):
        waveform = self.generator(mel_spectrograms)
        return waveform * inside(waveform_lengths, waveform.shape[1])


def of_rows(x: Tensor) -> Tensor:
    """The mean of each row."""
    return x.mean(tuple(range(1, x.dim())))


def judged(real: list[list[Tensor]], made: list[list[Tensor]]) -> dict[str, Tensor]:
    """The discriminator's loss of each row, by what it finds in real and in made signals."""
    right, wrong = sum(of_rows((1 - critic[-1]).square()) for critic in real), sum(of_rows(critic[-1].square()) for critic in made)
    return {"loss": right + wrong, "real_loss": right, "fake_loss": wrong}


def fooled(real: list[list[Tensor]], made: list[list[Tensor]]) -> dict[str, Tensor]:
    """The generator's losses of each row by the discriminator."""
    return {"adversarial_loss": sum(of_rows((1 - critic[-1]).square()) for critic in made),
            "feature_loss": sum(of_rows((x - y).abs()) for a, b in zip(made, real, strict=True) for x, y in zip(a[:-1], b[:-1], strict=True))}


def heard(fake: Tensor, real: Tensor, hops: int) -> Tensor:
    """The distance of the mel spectrograms of each row."""
    fake, real = (x.reshape(x.shape[0], hops, HOP) for x in (fake, real))
    return sum(part(fake, real) for part in vocoder.LOSSES) / len(vocoder.LOSSES)


def weighed(terms: dict[str, Tensor]) -> Tensor:
    """The generator's loss of its terms, those without a weight as they are."""
    return sum(WEIGHTS.get(name, 1.0) * x for name, x in terms.items())


SMALL = replace(vocoder.SMALL, width=16, frames=(181, 441))  # clips of the sample data


def build(sizes: vocoder.Sizes = SMALL, width: int = 8, periods: tuple[int, ...] = (2, 8), scales: tuple[int, ...] = (2,), layers: int = 3) -> Export:
    torch.manual_seed(0)
    model = Gan(sizes, width, periods, scales, layers)

    def criticize(fake, batch):
        return [model.discriminator(x, batch["mel_spectrograms"].shape[1] - 1) for x in (batch["waveform"], fake)]

    def judge(fake, batch):
        return means(batch["waveform_lengths"], **judged(*criticize(fake.detach(), batch)))

    def make(fake, batch):
        terms = fooled(*criticize(fake, batch)) | {"mel_loss": heard(fake, batch["waveform"], batch["mel_spectrograms"].shape[1] - 1)}
        return means(batch["waveform_lengths"], loss=weighed(terms), **terms)

    return Export(
        name="gan-vocoder", module=model, description="the generator of HiFi-GAN with discriminators of periods and scales",
        inputs=[*sequence("mel_spectrograms", "f32", "T_mel", MELS, lengths="mel_lengths", origin="stage"),
                *sequence("waveform", "f32", "T_wav", lengths="waveform_lengths")],
        players={"discriminator": Player("discriminator", judge, ADAMW), "generator": Player("generator", make, ADAMW)},
        schedule={"name": "exponential", "warmup_steps": 0},
        buckets=[bucket(n) for n in sizes.frames], features=FEATURES, pipeline=[LOGMEL])


def large() -> Export:
    """Of the size of HiFi-GAN V1."""
    return build(vocoder.LARGE, width=32, periods=(2, 4, 8, 16, 32), scales=(1, 2, 4), layers=5)
