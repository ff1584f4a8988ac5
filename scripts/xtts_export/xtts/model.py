"""The GPT of XTTS v2 (Casanova et al. 2024) and its loss: the next token of the text, and the next code of the audio.

The sequence of a row is its voice (32 vectors), its text and its codes. Text and codes have position tables of their own, so that a row's
result does not depend on how far the batch is padded. Parameters have the names of coqui's checkpoints.
"""

from dataclasses import dataclass

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from .conditioning import Encoder, Resampler, masked
from .gpt2 import GPT2, Past

# What a row's sequences have beside its tokens and codes. A text begins with a start token. Codes begin with one, too, and three stop codes
# follow them: coqui counts three codes more than there are.
TEXT_MORE, CODES_MORE = 1, 4
# gpt_loss_text_ce_weight and gpt_loss_mel_ce_weight of coqui's trainer.
TEXT_WEIGHT, CODE_WEIGHT = 0.01, 1.0


@dataclass(frozen=True)
class Sizes:
    """text_positions and audio_positions are rows of the position tables."""

    layers: int = 30
    width: int = 1024
    heads: int = 16
    text_tokens: int = 6681
    audio_tokens: int = 1026
    text_positions: int = 404
    audio_positions: int = 608
    start_text: int = 261
    stop_text: int = 0
    start_audio: int = 1024
    stop_audio: int = 1025


class Positions(nn.Module):
    def __init__(self, rows: int, width: int):
        super().__init__()
        self.emb = nn.Embedding(rows, width)
        nn.init.normal_(self.emb.weight, std=0.02)

    def forward(self, count: int) -> Tensor:
        return self.emb.weight[:count]


class GPT(nn.Module):
    """Logits of text_targets and code_targets: the inputs, shifted by one."""

    def __init__(self, s: Sizes):
        super().__init__()
        self.conditioning_encoder, self.conditioning_perceiver = Encoder(s.width, s.heads), Resampler(s.width)
        self.text_embedding, self.mel_embedding = nn.Embedding(s.text_tokens, s.width), nn.Embedding(s.audio_tokens, s.width)
        self.text_pos_embedding, self.mel_pos_embedding = Positions(s.text_positions, s.width), Positions(s.audio_positions, s.width)
        self.gpt = GPT2(s.layers, s.width, s.heads)
        self.final_norm = nn.LayerNorm(s.width)
        self.text_head, self.mel_head = nn.Linear(s.width, s.text_tokens), nn.Linear(s.width, s.audio_tokens)

    def forward(self, text: Tensor, text_inside: Tensor, codes: Tensor, codes_inside: Tensor, mel: Tensor, mel_inside: Tensor) -> tuple[Tensor, Tensor]:
        """text and codes are inputs, with start tokens. Each *_inside is 1 where the tensor is not padding."""
        voice = self.voice(mel, mel_inside)
        keys = torch.cat([torch.ones_like(voice[:, :, 0]), text_inside, codes_inside], 1)
        y, _ = self.hidden(voice, text, codes, keys)
        y = y[:, voice.shape[1]:]
        return self.text_head(y[:, :text.shape[1]]), self.mel_head(y[:, text.shape[1]:])

    def voice(self, mel: Tensor, inside: Tensor) -> Tensor:
        """f32[B, LATENTS, width]."""
        return self.conditioning_perceiver(self.conditioning_encoder(mel, inside), inside)

    def hidden(self, voice: Tensor, text: Tensor, codes: Tensor, keys: Tensor) -> tuple[Tensor, list[Past]]:
        """f32[B, S, width], what the heads take, of voice, text and codes in a row. keys f32[B, S] is 0 for what none may attend to."""
        spoken = self.text_embedding(text) + self.text_pos_embedding(text.shape[1])
        heard = self.mel_embedding(codes) + self.mel_pos_embedding(codes.shape[1])
        x = torch.cat([voice, spoken, heard], 1)
        at = torch.arange(x.shape[1])
        before = (at[None, :] <= at[:, None]).float()
        y, past = self.gpt(x, masked(before[None, None] * keys[:, None, None, :]))
        return self.final_norm(y), past


class XTTS(nn.Module):
    """The training step. Text and codes are padded with their stop tokens."""

    def __init__(self, sizes: Sizes):
        super().__init__()
        self.sizes, self.gpt = sizes, GPT(sizes)

    def forward(self, text_sequences, text_lengths, audio_codes, code_lengths, conditioning_mel, conditioning_lengths, text_count, code_count):
        s = self.sizes
        rows = (text_lengths * code_lengths > 0).float()[:, None]
        text = between(text_sequences, s.start_text, s.stop_text, TEXT_MORE)
        codes = between(audio_codes, s.start_audio, s.stop_audio, CODES_MORE)
        # Of a row's sequence and its targets equally many count. In an empty row there are none.
        text_inside = inside(text_lengths + TEXT_MORE, text.shape[1] - 1) * rows
        codes_inside = inside(code_lengths + CODES_MORE, codes.shape[1] - 1) * rows
        mel_inside = inside(conditioning_lengths, conditioning_mel.shape[1])
        text_logits, code_logits = self.gpt(text[:, :-1], text_inside, codes[:, :-1], codes_inside, conditioning_mel, mel_inside)
        text_loss = _entropy(text_logits, text[:, 1:], text_inside) / text_count
        code_loss = _entropy(code_logits, codes[:, 1:], codes_inside) / code_count
        return {"loss": TEXT_WEIGHT * text_loss + CODE_WEIGHT * code_loss, "loss_weight": rows.sum().clamp(max=1), "text_loss": text_loss, "code_loss": code_loss}


def between(ids: Tensor, start: int, stop: int, stops: int) -> Tensor:
    """The ids after a start token and before stop tokens. They are joined as floats, which a graph adds up with zeros in between."""
    ids = ids.float()
    first = torch.ones_like(ids[:, :1])
    return torch.cat([start * first, ids, *[stop * first] * stops], 1).long()


def inside(lengths: Tensor, size: int) -> Tensor:
    return (torch.arange(size)[None, :] < lengths[:, None]).float()


def _entropy(logits: Tensor, targets: Tensor, inside: Tensor) -> Tensor:
    """The sum of the cross entropies of what is inside."""
    return (F.cross_entropy(logits.flatten(0, 1), targets.flatten(), reduction="none").view(inside.shape) * inside).sum()
