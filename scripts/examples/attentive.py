"""Frames that look for their text by attention, and probes of it: what `xtts-host --probe 'attention.*'` draws.

Each frame asks with its place in the clip and with the frame before it. Attention may go anywhere in the text; a prior begins near the diagonal.

    .cache/venv-mine/bin/xtts-export module scripts/examples/attentive.py:build --out runs/attentive-bundle
    bin/xtts-host --plugins ./plugins --graph runs/attentive-bundle --max-steps 200 --probe 'attention.*' --run-dir runs/attentive
"""

import math
from dataclasses import dataclass

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from common import FEATURES, HOP, LOGMEL, MELS, bucket, inside, mean
from xtts_export import Export, probe, sequence, tokenizer


@dataclass(frozen=True)
class Sizes:
    width: int
    heads: int
    layers: int
    buckets: tuple[tuple[int, int], ...]  # tokens and frames
    longest: tuple[int, int] = (512, 1024)  # of texts and clips, for buckets that are computed from the data


SMALL = Sizes(width=64, heads=4, layers=2, buckets=((72, 259), (124, 441)))
# That of the host's tests.
LEAST = Sizes(width=8, heads=2, layers=2, buckets=((32, 87), (64, 173)))


class Attention(nn.Module):
    """From frames to text. Its weights are the probe of this name."""

    def __init__(self, s: Sizes, name: str):
        super().__init__()
        self.heads, self.name = s.heads, name
        self.query, self.key_value, self.out = nn.Linear(s.width, s.width), nn.Linear(s.width, 2 * s.width), nn.Linear(s.width, s.width)

    def forward(self, frames: Tensor, text: Tensor, prior: Tensor) -> Tensor:
        q, k, v = (x.unflatten(-1, (self.heads, -1)).transpose(1, 2) for x in (self.query(frames), *self.key_value(text).chunk(2, -1)))
        scores = q @ k.transpose(2, 3) / math.sqrt(q.shape[-1]) + prior[:, None]
        weights = probe(self.name, scores.softmax(-1))
        return frames + self.out((weights @ v).transpose(1, 2).flatten(2))


class Attentive(nn.Module):
    def __init__(self, s: Sizes, tokens: int):
        super().__init__()
        self.embedding, self.encoder = nn.Embedding(tokens, s.width), nn.Conv1d(s.width, s.width, 5, padding=2)
        self.before, self.place = nn.Linear(MELS, s.width), nn.Linear(2, s.width)
        self.layers = nn.ModuleList(Attention(s, f"attention.{i}") for i in range(s.layers))
        self.norm, self.head = nn.LayerNorm(s.width), nn.Linear(s.width, MELS)

    def forward(self, text_sequences, text_lengths, mel_spectrograms, mel_lengths):
        tokens = inside(text_lengths, text_sequences.shape[1]).float()
        x = self.embedding(text_sequences) * tokens[:, :, None]
        x = probe("encoder", (x + F.gelu(self.encoder(x.transpose(1, 2)).transpose(1, 2))) * tokens[:, :, None])
        frame = torch.arange(mel_spectrograms.shape[1])[None, :] / mel_lengths.clamp(min=1)[:, None]
        symbol = tokens.cumsum(1) / text_lengths.clamp(min=1)[:, None]
        prior = -20 * (frame[:, :, None] - symbol[:, None, :]).square() + (tokens - 1)[:, None, :] * 1e9
        y = self.before(F.pad(mel_spectrograms, (0, 0, 1, 0))[:, :-1]) + self.place(torch.stack([frame, frame.square()], -1))
        for layer in self.layers:
            y = layer(y, x, prior)
        return self.head(self.norm(y))


def loss(frames, batch):
    weight = inside(batch["mel_lengths"], frames.shape[1]).float()
    value = mean((frames - batch["mel_spectrograms"]).abs().mean(-1), weight)
    return {"loss": value, "loss_weight": weight.sum()}


def build(sizes: Sizes = SMALL, vocabulary: list[str] = tokenizer.VOCABULARY) -> Export:
    torch.manual_seed(0)
    tokens, frames = sizes.longest
    return Export(
        name="attentive", module=Attentive(sizes, len(vocabulary)), loss=loss,
        inputs=[*sequence("text_sequences", "i32", "T_text", lengths="text_lengths", below=len(vocabulary)),
                *sequence("mel_spectrograms", "f32", "T_mel", MELS, lengths="mel_lengths", origin="stage")],
        buckets=[bucket(n, text) for text, n in sizes.buckets], dynamic={"T_text": tokens, "T_wav": HOP * (frames - 1)},
        features=FEATURES, tokenizer=tokenizer.build(vocabulary), pipeline=[LOGMEL], schedule={"name": "cosine", "warmup_steps": 20})


def least() -> Export:
    return build(LEAST, tokenizer.ENGLISH)
