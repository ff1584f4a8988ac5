"""A FastSpeech 2 (arXiv:2006.04558): text to spectrogram in parallel.

Blocks of attention and convolutions over tokens; predictors of durations, pitch and energy; each token repeated over its frames; the same
blocks over frames. A row's durations are even here; a stage of your own can compute others with an aligner.

    xtts-export module scripts/examples/fast_speech.py:build --out runs/fast-speech --precision f32,bf16
"""

import math
from dataclasses import dataclass

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from common import FEATURES, LOGMEL, MELS, bucket, inside, mean
from xtts_export import Export, Input, sequence, tokenizer

PROSODY = {"name": "prosody", "stage": "prosody", "inputs": {"waveform": "waveform", "waveform_lengths": "waveform_lengths"},
           "outputs": {"pitch": "pitch", "energy": "energy", "prosody_lengths": "prosody_lengths"}}


@dataclass(frozen=True)
class Sizes:
    width: int
    heads: int
    layers: int
    kernel: int
    text: tuple[int, ...]  # of the buckets
    frames: tuple[int, ...]


SMALL = Sizes(width=32, heads=2, layers=1, kernel=5, text=(72, 124), frames=(181, 441))
LARGE = Sizes(width=512, heads=8, layers=4, kernel=9, text=(128,), frames=(768,))


class Block(nn.Module):
    """Attention and two convolutions, each normed after its sum."""

    def __init__(self, s: Sizes):
        super().__init__()
        self.heads = s.heads
        self.query_key_value, self.out = nn.Linear(s.width, 3 * s.width), nn.Linear(s.width, s.width)
        self.attention_norm, self.feed_norm = nn.LayerNorm(s.width), nn.LayerNorm(s.width)
        self.feed_in = nn.Conv1d(s.width, 4 * s.width, s.kernel, padding=s.kernel // 2)
        self.feed_out = nn.Conv1d(4 * s.width, s.width, 1)

    def forward(self, x: Tensor, seen: Tensor) -> Tensor:
        weight = seen[:, :, None]
        q, k, v = (y.unflatten(-1, (self.heads, -1)).transpose(1, 2) for y in self.query_key_value(x).chunk(3, -1))
        y = F.scaled_dot_product_attention(q, k, v, attn_mask=seen[:, None, None, :])
        x = self.attention_norm(x + self.out(y.transpose(1, 2).flatten(2))) * weight
        y = self.feed_out(F.relu(self.feed_in(x.transpose(1, 2)))).transpose(1, 2)
        return self.feed_norm(x + y) * weight


class Predictor(nn.Module):
    """Numbers for each token."""

    def __init__(self, width: int, numbers: int):
        super().__init__()
        self.first, self.second = nn.Conv1d(width, width, 3, padding=1), nn.Conv1d(width, width, 3, padding=1)
        self.first_norm, self.second_norm, self.head = nn.LayerNorm(width), nn.LayerNorm(width), nn.Linear(width, numbers)

    def forward(self, x: Tensor) -> Tensor:
        for convolution, norm in (self.first, self.first_norm), (self.second, self.second_norm):
            x = norm(F.relu(convolution(x.transpose(1, 2))).transpose(1, 2))
        return self.head(x)


class FastSpeech(nn.Module):
    def __init__(self, s: Sizes):
        super().__init__()
        self.embedding = nn.Embedding(len(tokenizer.VOCABULARY), s.width)
        self.encoder, self.decoder = (nn.ModuleList(Block(s) for _ in range(s.layers)) for _ in range(2))
        self.duration, self.prosody = Predictor(s.width, 1), Predictor(s.width, 2)
        self.prosody_in = nn.Conv1d(2, s.width, 3, padding=1)
        self.head = nn.Linear(s.width, MELS)

    def forward(self, text_sequences, text_lengths, mel_lengths, pitch, energy):
        tokens, frames = inside(text_lengths, text_sequences.shape[1]), inside(mel_lengths, pitch.shape[1])
        x = self.embedding(text_sequences) * tokens[:, :, None]
        x = x + sinusoids(x)
        for block in self.encoder:
            x = block(x, tokens)
        spread = alignment(text_lengths, mel_lengths, tokens.shape[1], frames.shape[1])
        counts = spread.sum(1)
        numbers = torch.stack([pitch, energy], -1)
        spoken = (spread.transpose(1, 2).to(numbers.dtype) @ numbers) / counts[:, :, None].clamp(min=1).to(numbers.dtype)
        durations, prosody = self.duration(x.detach()).squeeze(-1), self.prosody(x)
        x = x + self.prosody_in(spoken.transpose(1, 2)).transpose(1, 2)
        y = spread.to(x.dtype) @ x
        y = (y + sinusoids(y)) * frames[:, :, None]
        for block in self.decoder:
            y = block(y, frames)
        return self.head(y), durations, (counts + 1).log(), prosody, spoken


def alignment(text_lengths: Tensor, mel_lengths: Tensor, tokens: int, frames: int) -> Tensor:
    """f32[B, frames, tokens]: 1 where a frame belongs to a token. Times a matrix of tokens it repeats each over its frames."""
    at = torch.arange(frames)[None, :] * text_lengths[:, None] // mel_lengths[:, None].clamp(min=1)
    return ((at[:, :, None] == torch.arange(tokens)) & inside(mel_lengths, frames)[:, :, None]).float()


def sinusoids(x: Tensor) -> Tensor:
    """f32[T, width] positions."""
    half = x.shape[-1] // 2
    speed = torch.exp(torch.arange(half).float() * (-math.log(10000.0) / half))
    angle = torch.arange(x.shape[1]).float()[:, None] * speed[None, :]
    return torch.cat([angle.sin(), angle.cos()], -1).to(x.dtype)


def loss(outputs, batch):
    mel, durations, target_durations, prosody, target_prosody = outputs
    frames = inside(batch["mel_lengths"], mel.shape[1]).float()
    tokens = inside(batch["text_lengths"], durations.shape[1]).float()
    parts = {"mel_loss": mean((mel - batch["mel_spectrograms"]).abs().mean(-1), frames),
             "duration_loss": mean((durations - target_durations).square(), tokens),
             "prosody_loss": mean((prosody - target_prosody).square().mean(-1), tokens)}
    return {"loss": sum(parts.values()) * (frames.sum() > 0), "loss_weight": (frames.sum() > 0).float(), **parts}


def build(sizes: Sizes = SMALL) -> Export:
    torch.manual_seed(0)
    return Export(
        name="fast-speech-2", module=FastSpeech(sizes), loss=loss, accumulation="mean",
        inputs=[*sequence("text_sequences", "i32", "T_text", lengths="text_lengths", below=len(tokenizer.VOCABULARY)),
                *sequence("mel_spectrograms", "f32", "T_mel", MELS, lengths="mel_lengths", origin="stage"),
                *(Input(name, "f32", ("B", "T_mel"), lengths="mel_lengths", origin="stage") for name in ("pitch", "energy"))],
        buckets=[bucket(n, text) for n, text in zip(sizes.frames, sizes.text, strict=True)], features=FEATURES,
        tokenizer=tokenizer.build(), pipeline=[LOGMEL, PROSODY])


def large() -> Export:
    return build(LARGE)
