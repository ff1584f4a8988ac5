"""MyXTTS in the sizes above nano: a text encoder, a mel encoder whose mean over time is the voice, and an autoregressive mel decoder
that attends to the text.
"""

import math
from dataclasses import dataclass

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from .model import sinusoids, valid, waves

_HEAD = 64
_MASKED = 1e4


@dataclass(frozen=True)
class Sizes:
    """Width and number of layers of each part. positions is the length of learned position tables, which need equal widths; 0 computes positions."""

    text: tuple[int, int]
    audio: tuple[int, int]
    decoder: tuple[int, int]
    vocab: int = 32000
    n_mels: int = 80
    positions: int = 0
    prosody: bool = True


class Attention(nn.Module):
    def __init__(self, width: int, memory_width: int):
        super().__init__()
        self.query = nn.Linear(width, width)
        self.key_value = nn.Linear(memory_width, 2 * width)
        self.out = nn.Linear(width, width)

    def forward(self, x: Tensor, memory: Tensor, mask: Tensor) -> Tensor:
        keys, values = self.keys_values(memory)
        return self.mix(self.queries(x), keys, values, mask)

    def queries(self, x: Tensor) -> Tensor:
        return _split(self.query(x))

    def keys_values(self, memory: Tensor) -> tuple[Tensor, Tensor]:
        key, value = self.key_value(memory).chunk(2, -1)
        return _split(key), _split(value)

    def mix(self, queries: Tensor, keys: Tensor, values: Tensor, mask: Tensor | float) -> Tensor:
        """Where the queries look, of f32[B, heads, T, _HEAD] each."""
        scores = torch.matmul(queries, keys.transpose(-1, -2)) * (1 / math.sqrt(_HEAD)) + mask
        return self.out(torch.matmul(torch.softmax(scores, -1), values).transpose(1, 2).flatten(2))


def _split(x: Tensor) -> Tensor:
    return x.unflatten(-1, (-1, _HEAD)).transpose(1, 2)


class Block(nn.Module):
    """Pre-norm transformer block; with memory_width it attends to a memory, too."""

    def __init__(self, width: int, memory_width: int | None = None):
        super().__init__()
        self.attention_norm, self.attention = nn.LayerNorm(width), Attention(width, width)
        self.feed_norm, self.feed_in, self.feed_out = nn.LayerNorm(width), nn.Linear(width, 4 * width), nn.Linear(4 * width, width)
        if memory_width is not None:
            self.cross_norm, self.cross = nn.LayerNorm(width), Attention(width, memory_width)

    def forward(self, x: Tensor, mask: Tensor, memory: Tensor | None = None, memory_mask: Tensor | None = None) -> Tensor:
        y = self.attention_norm(x)
        x = x + self.attention(y, y, mask)
        if memory is not None:
            x = x + self.cross(self.cross_norm(x), memory, memory_mask)
        return x + self.feed(x)

    def feed(self, x: Tensor) -> Tensor:
        return self.feed_out(F.gelu(self.feed_in(self.feed_norm(x)), approximate="tanh"))


class MyXTTS(nn.Module):
    """forward returns what model.MyXTTS's does."""

    def __init__(self, sizes: Sizes):
        super().__init__()
        (text, text_layers), (audio, audio_layers), (decoder, decoder_layers) = sizes.text, sizes.audio, sizes.decoder
        self.embedding = nn.Embedding(sizes.vocab, text)
        if sizes.positions:
            self.text_positions = nn.Parameter(torch.randn(sizes.positions, text) * 0.02)
            self.mel_positions = nn.Parameter(torch.randn(sizes.positions, decoder) * 0.02)
        self.text_encoder = nn.ModuleList(Block(text) for _ in range(text_layers))
        self.audio_in = nn.Linear(sizes.n_mels, audio)
        self.audio_encoder = nn.ModuleList(Block(audio) for _ in range(audio_layers))
        between = lambda width: nn.Identity() if width == audio else nn.Linear(audio, width, bias=False)
        self.voice_to_text, self.voice_to_decoder = between(text), between(decoder)
        self.decoder_in = nn.Linear(sizes.n_mels, decoder)
        self.decoder = nn.ModuleList(Block(decoder, text) for _ in range(decoder_layers))
        self.norm = nn.LayerNorm(decoder)
        self.mel_head, self.stop_head = nn.Linear(decoder, sizes.n_mels), nn.Linear(decoder, 1)
        if sizes.prosody:
            self.pitch_head, self.energy_head = nn.Linear(decoder, 1), nn.Linear(decoder, 1)
        self.prosody = sizes.prosody
        self.learned = sizes.positions > 0

    def forward(self, text_sequences, text_lengths, mel_spectrograms, mel_lengths):
        mel = mel_spectrograms
        x, text_mask, offset = self.read(text_sequences, text_lengths, self.voice(mel, mel_lengths))
        y = self.decoder_in(torch.cat([torch.zeros_like(mel[:, :1]), mel[:, :-1]], dim=1))
        y = y + self._positions("mel_positions", y) + offset
        at = torch.arange(mel.shape[1])
        causal = ((at[None, :] <= at[:, None]).to(mel.dtype) - 1) * _MASKED + _mask(valid(mel_lengths, mel.shape[1]).to(mel.dtype))
        for block in self.decoder:
            y = block(y, causal, x, text_mask)
        y = self.norm(y)
        heads = (self.stop_head, self.pitch_head, self.energy_head) if self.prosody else (self.stop_head,)
        return self.mel_head(y), *(head(y).squeeze(-1) for head in heads)

    # The parts from which speaking.py makes one frame after the other are those of model.MyXTTS.

    @property
    def frame_blocks(self) -> nn.ModuleList:
        return self.decoder

    def voice(self, mel: Tensor, lengths: Tensor) -> Tensor:
        """f32[B, 1, width of the mel encoder]."""
        frames = valid(lengths, mel.shape[1]).to(mel.dtype)
        voice = self.audio_in(mel)
        voice = voice + self._positions("mel_positions", voice)
        for block in self.audio_encoder:
            voice = block(voice, _mask(frames))
        return (voice * frames[:, :, None]).sum(1, keepdim=True) / frames.sum(1)[:, None, None].clamp(min=1)

    def read(self, text: Tensor, lengths: Tensor, voice: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        x = self.embedding(text)
        x = x + self._positions("text_positions", x)
        mask = _mask(valid(lengths, text.shape[1]).to(x.dtype))
        for block in self.text_encoder:
            x = block(x, mask)
        return x + self.voice_to_text(voice), mask, self.voice_to_decoder(voice)

    def enter(self, previous: Tensor, position: Tensor) -> Tensor:
        x = self.decoder_in(previous)
        return x + (self.mel_positions[position.long()][:, None] if self.learned else waves(position.to(x.dtype)[:, None, None], x.shape[2]))

    def leave(self, x: Tensor) -> tuple[Tensor, Tensor]:
        y = self.norm(x)
        return self.mel_head(y), self.stop_head(y).squeeze(-1)

    def _positions(self, table: str, x: Tensor) -> Tensor:
        return getattr(self, table)[:x.shape[1]] if self.learned else sinusoids(x.shape[1], x.shape[2], 1.0, x)


def _mask(inside: Tensor) -> Tensor:
    """f32[B, 1, 1, T] to add to scores."""
    return ((inside - 1) * _MASKED)[:, None, None, :]
