"""MultiSpeaker: a small non-autoregressive mel model whose voices are rows of a table.

It spreads the text over the frames by predicted durations, as FastSpeech does (arXiv:1905.09263), but learns them without an aligner:
each frame takes a mean of the tokens around it, weighted by a Gaussian of the distance to their centres (arXiv:2006.03575,
appendix A), through which the mel loss reaches the durations. At training time they are scaled to the target's length.

Written for export like model.py. Its two losses have denominators of their own, frames and clips, so its accumulation is `mean`. As a
bundle it differs from MyXTTS wherever a bundle may differ: architecture, inputs, features, optimizer, kind of accumulation.
"""

import math
from dataclasses import dataclass

import torch
from torch import Tensor, nn

from . import tokenizer
from .dropout import Dropout
from .model import silu, sinusoids, valid
from .inputs import Input, sequence
from .module import Export
from .presets import logmel


@dataclass(frozen=True)
class Sizes:
    vocab: int
    n_mels: int = 40
    width: int = 48
    speakers: int = 8
    languages: int = 4
    text_blocks: int = 2
    frame_blocks: int = 2
    text_kernel: int = 3
    frame_kernel: int = 5
    dropout: float = 0.05
    # At usual speaking rate, 16 characters and 62.5 frames a second: where durations begin. They end at four times that.
    frames_per_token: float = 4.0
    # Where the prediction of a band begins: log10 of the power of speech.
    typical_level: float = -1.6


LENGTH_WEIGHT = 0.1
# Standard deviation, in frames, of a token's Gaussian.
_SPREAD = 2.0
_MASKED = 1e9


class Convolution(nn.Module):
    """x[B, T, width] plus a convolution over time of it, normed: a matrix product over shifted copies, so that its gradients are, too."""

    def __init__(self, width: int, kernel: int, dropout: float, site: int):
        super().__init__()
        self.reach = kernel // 2
        self.norm = nn.LayerNorm(width)
        self.mix = nn.Linear(kernel * width, width)
        nn.init.kaiming_normal_(self.mix.weight, nonlinearity="relu")
        self.dropout = Dropout(dropout, site)

    def forward(self, x: Tensor, inside: Tensor, seed: Tensor | None) -> Tensor:
        # Zeros after each row's length, as after the tensor's end: a row's result is the same in every bucket.
        y = self.norm(x) * inside
        # Not F.pad: tracing it bakes in the example's sizes.
        margin = torch.zeros_like(y[:, :1]).expand(-1, self.reach, -1)
        padded = torch.cat([margin, y, margin], dim=1)
        time = x.shape[1]
        y = silu(self.mix(torch.cat([padded[:, i:i + time] for i in range(2 * self.reach + 1)], dim=2)))
        return x + (y if seed is None else self.dropout(y, seed))


class Table(nn.Module):
    """One vector for each id. Ids beyond the table's ends take the row at that end."""

    def __init__(self, rows: int, width: int):
        super().__init__()
        self.weight = nn.Parameter(0.3 * torch.randn(rows, width))

    def forward(self, ids: Tensor, weight: Tensor) -> Tensor:
        """f32[B, width], zero where weight f32[B] is."""
        rows = self.weight.shape[0]
        return torch.matmul(one_hot(ids.clamp(0, rows - 1), rows, weight), self.weight)


def one_hot(ids: Tensor, size: int, weight: Tensor) -> Tensor:
    """f32[..., size] of ids[...], times weight[...]. Times a table it is a look-up whose gradient has a fixed order."""
    choices = torch.arange(size, device=ids.device, dtype=ids.dtype)
    return (ids[..., None] == choices).to(weight.dtype) * weight[..., None]


class MultiSpeaker(nn.Module):
    """forward takes text_sequences i32[B, T_text], text_lengths i32[B], speaker_ids i32[B], language_ids i32[B],
    target_mels f32[B, T_mel, n_mels], target_mel_lengths i32[B] and seed i64[] (None: no dropout). It returns the loss, its weight
    and its two parts.
    """

    def __init__(self, sizes: Sizes):
        super().__init__()
        s = self.sizes = sizes
        self.characters = Table(s.vocab, s.width)
        self.speakers = Table(s.speakers, s.width)
        self.languages = Table(s.languages, s.width)
        self.text = nn.ModuleList(Convolution(s.width, s.text_kernel, s.dropout, site) for site in range(s.text_blocks))
        self.text_norm = nn.LayerNorm(s.width)
        self.duration = nn.Linear(s.width, 1)
        nn.init.constant_(self.duration.bias, -math.log(3.0))
        self.frames = nn.ModuleList(
            Convolution(s.width, s.frame_kernel, s.dropout, s.text_blocks + site) for site in range(s.frame_blocks))
        self.frame_norm = nn.LayerNorm(s.width)
        self.mel_head = nn.Linear(s.width, s.n_mels)
        nn.init.constant_(self.mel_head.bias, s.typical_level)

    def forward(self, text_sequences, text_lengths, speaker_ids, language_ids, target_mels, target_mel_lengths, seed=None):
        mel = target_mels
        weight = valid(target_mel_lengths, mel.shape[1]).to(mel.dtype)
        spoken = (target_mel_lengths > 0).to(mel.dtype)
        length = weight.sum(1)

        voice = (self.speakers(speaker_ids, spoken) + self.languages(language_ids, spoken))[:, None, :]
        tokens = valid(text_lengths, text_sequences.shape[1]).to(mel.dtype)
        x = self.characters(text_sequences, tokens) + sinusoids(tokens.shape[1], self.sizes.width, 1.0, mel) + voice
        for block in self.text:
            x = block(x, tokens[:, :, None], seed)
        x = self.text_norm(x)

        # A quarter of four times the usual duration, to begin with.
        durations = 4 * self.sizes.frames_per_token * torch.sigmoid(self.duration(x).squeeze(-1)) * tokens
        predicted = durations.sum(1).clamp(min=1.0)
        x = spread(x, durations * (length / predicted)[:, None], tokens, mel.shape[1]) + voice
        for block in self.frames:
            x = block(x, weight[:, :, None], seed)
        error = (self.mel_head(self.frame_norm(x)) - mel).abs().mean(-1)

        clips = spoken.sum()
        spectrum_loss = (error * weight).sum() / weight.sum().clamp(min=1.0)
        length_loss = ((predicted.log() - length.clamp(min=1.0).log()).square() * spoken).sum() / clips.clamp(min=1.0)
        loss = spectrum_loss + LENGTH_WEIGHT * length_loss
        return {"loss": loss, "loss_weight": clips.clamp(max=1.0), "spectrum_loss": spectrum_loss, "length_loss": length_loss}


def spread(x: Tensor, durations: Tensor, tokens: Tensor, frames: int) -> Tensor:
    """f32[B, frames, width] of x[B, T_text, width]: at each frame the mean of the tokens near it.

    durations f32[B, T_text] are in frames; tokens f32[B, T_text] is 1 where there is a token.
    """
    at = torch.arange(x.shape[1], device=x.device)
    # A product with a triangle is the running sum, and its gradient a product, too.
    ends = torch.matmul(durations, (at[:, None] <= at[None, :]).to(x.dtype))
    centres = ends - 0.5 * durations
    frame = torch.arange(frames, device=x.device).to(x.dtype) + 0.5
    distance = frame[None, :, None] - centres[:, None, :]
    nearness = distance.square() * (-0.5 / _SPREAD**2) + ((tokens - 1) * _MASKED)[:, None, :]
    return torch.matmul(torch.softmax(nearness, dim=-1), x)


SIZES = Sizes(vocab=len(tokenizer.VOCABULARY))


def build() -> Export:
    """The bundle's model with weights from a fixed seed."""
    torch.manual_seed(0)
    return Export(
        name="myxtts-multispeaker", description="speakers by number, text spread over the frames by durations, mels in parallel",
        module=MultiSpeaker(SIZES),
        inputs=[*sequence("text_sequences", "i32", "T_text", lengths="text_lengths", below=SIZES.vocab),
                Input("speaker_ids", "i32", ("B",), below=SIZES.speakers), Input("language_ids", "i32", ("B",), below=SIZES.languages),
                *sequence("target_mels", "f32", "T_mel", SIZES.n_mels, lengths="target_mel_lengths", origin="stage")],
        buckets=[{"T_text": text, "T_wav": 256 * hops, "T_mel": 1 + hops} for text, hops in ((48, 125), (62, 160), (96, 250))],
        dynamic={"T_text": 512, "T_wav": 750 * 256},
        features={
            "sample_rate": 16000, "n_fft": 512, "win_length": 400, "hop_length": 256, "window": "hann", "center": True, "pad_mode": "reflect",
            "power": 2, "n_mels": SIZES.n_mels, "mel_scale": "htk", "mel_norm": "none", "f_min": 60, "f_max": 7600,
            "log": "log10", "log_floor": 1e-4,
        },
        tokenizer=tokenizer.build(), pipeline=[logmel("target", "waveform", "waveform_lengths", "target_mels", "target_mel_lengths")],
        accumulation="mean", optimizer={"name": "sgd", "lr": 0.1, "momentum": 0.9, "weight_decay": 1e-5, "grad_clip": 0.25},
        schedule={"name": "constant", "warmup_steps": 10}, baselines=[{"metric": "spectrum_loss", "target": "target_mels", "loss": "l1"}])
