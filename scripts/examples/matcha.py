"""Text to spectrogram by flow matching, as Matcha-TTS (arXiv:2309.03199), which finds the durations by itself.

Each token predicts the mean of its frames. Monotonic alignment search gives frames to tokens, and a transformer moves noise to the
spectrogram, beside the means of its frames.

    xtts-export module scripts/examples/matcha.py:build --out runs/matcha --precision f32,bf16
"""

import math
from dataclasses import dataclass

import torch
import torch.nn.functional as F
from torch import Tensor, nn

import fast_speech
import flow_dit
from common import FEATURES, LOGMEL, MELS, bucket, inside, mean
from xtts_export import Export, monotonic_path, sequence, tokenizer


@dataclass(frozen=True)
class Sizes:
    text: fast_speech.Sizes
    flow: flow_dit.Sizes


SMALL = Sizes(fast_speech.SMALL, flow_dit.SMALL)
LARGE = Sizes(fast_speech.Sizes(width=384, heads=6, layers=6, kernel=5, text=(128,), frames=(768,)),
              flow_dit.Sizes(width=512, heads=8, layers=12, frames=(768,)))


class Matcha(nn.Module):
    def __init__(self, s: Sizes):
        super().__init__()
        width, flow = s.text.width, s.flow.width
        self.embedding, self.mean = nn.Embedding(len(tokenizer.VOCABULARY), width), nn.Linear(width, MELS)
        self.encoder = nn.ModuleList(fast_speech.Block(s.text) for _ in range(s.text.layers))
        self.duration = fast_speech.Predictor(width, 1)
        self.time_in, self.time_out = nn.Linear(flow, flow), nn.Linear(flow, flow)
        self.frame_in, self.frame_out, self.norm = nn.Linear(2 * MELS, flow), nn.Linear(flow, MELS), nn.LayerNorm(flow)
        self.blocks = nn.ModuleList(flow_dit.Block(s.flow) for _ in range(s.flow.layers))

    def forward(self, text_sequences, text_lengths, mel_spectrograms, mel_lengths):
        tokens, frames = inside(text_lengths, text_sequences.shape[1]), inside(mel_lengths, mel_spectrograms.shape[1])
        x = self.embedding(text_sequences) * tokens[:, :, None]
        x = x + fast_speech.sinusoids(x)
        for block in self.encoder:
            x = block(x, tokens)
        means = self.mean(x)
        path = monotonic_path(likelihood(means, mel_spectrograms), text_lengths, mel_lengths)
        near = path.transpose(1, 2).to(means.dtype) @ means
        durations = self.duration(x.detach()).squeeze(-1)
        flow, target = self.flow(mel_spectrograms, near, frames)
        return flow, target, near, durations, (path.sum(2) + 1).log()

    def flow(self, mel: Tensor, near: Tensor, frames: Tensor) -> tuple[Tensor, Tensor]:
        """How a mixture of noise and spectrogram should move, and how it moves."""
        noise, at = torch.randn_like(mel), torch.rand(mel.shape[0])
        x = self.frame_in(torch.cat([noise + at[:, None, None] * (mel - noise), near], -1).to(mel.dtype))
        half = self.time_in.in_features // 2
        angle = 1000 * at[:, None] * torch.exp(torch.arange(half).float() * (-math.log(10000.0) / half))[None, :]
        time = self.time_out(F.silu(self.time_in(torch.cat([angle.cos(), angle.sin()], -1).to(mel.dtype))))
        for block in self.blocks:
            x = block(x, time, frames[:, None, None, :])
        return self.frame_out(self.norm(x)), mel - noise


def likelihood(means: Tensor, mel: Tensor) -> Tensor:
    """f32[B, T_text, T_mel]: the logarithm, but for a constant, of how likely a frame is if its bands are normal around a token's means."""
    squares = means.square().sum(-1)[:, :, None] + mel.square().sum(-1)[:, None, :]
    return means @ mel.transpose(1, 2) - 0.5 * squares


def loss(outputs, batch):
    flow, target, near, durations, target_durations = outputs
    frames = inside(batch["mel_lengths"], flow.shape[1]).float()
    tokens = inside(batch["text_lengths"], durations.shape[1]).float()
    parts = {"flow_loss": mean((flow - target).square().mean(-1), frames),
             "prior_loss": mean(0.5 * (near - batch["mel_spectrograms"]).square().mean(-1), frames),
             "duration_loss": mean((durations - target_durations).square(), tokens)}
    return {"loss": sum(parts.values()), "loss_weight": (frames.sum() > 0).float(), **parts}


def build(sizes: Sizes = SMALL) -> Export:
    torch.manual_seed(0)
    return Export(
        name="matcha", module=Matcha(sizes), loss=loss,
        inputs=[*sequence("text_sequences", "i32", "T_text", lengths="text_lengths", below=len(tokenizer.VOCABULARY)),
                *sequence("mel_spectrograms", "f32", "T_mel", MELS, lengths="mel_lengths", origin="stage")],
        buckets=[bucket(n, text) for n, text in zip(sizes.text.frames, sizes.text.text, strict=True)],
        features=FEATURES, pipeline=[LOGMEL], tokenizer=tokenizer.build(), accumulation="mean")


def large() -> Export:
    return build(LARGE)
