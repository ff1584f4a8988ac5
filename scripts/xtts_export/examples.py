"""Three models as their users would write them: how much a `build()` takes. The tests export them; docs/export.md trains the first.

They are toys: what they show is that the usual layers of a FastSpeech, a Conformer and a GPT need no special care.
"""

import math

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from . import Export, Input, sequence, tokenizer
from .presets import FEATURES

LOGMEL = {"name": "target", "stage": "logmel", "inputs": {"waveform": "waveform", "waveform_lengths": "waveform_lengths"},
          "outputs": {"mel_spectrograms": "mel_spectrograms", "mel_lengths": "mel_lengths"}}
VOCABULARY = len(tokenizer.VOCABULARY)


def valid(lengths: Tensor, size: int) -> Tensor:
    """f32[B, size]: 1 before each row's length."""
    return (torch.arange(size)[None, :] < lengths[:, None]).float()


class FastSpeech(nn.Module):
    """Text to mel_spectrograms in parallel, spread over the frames by predicted durations."""

    def __init__(self, width: int = 32, n_mels: int = 80):
        super().__init__()
        self.embedding = nn.Embedding(VOCABULARY, width)
        self.layers = nn.ModuleList(nn.Conv1d(width, width, 3, padding=1) for _ in range(2))
        self.duration = nn.Linear(width, 1)
        self.head = nn.Linear(width, n_mels)

    def forward(self, text_sequences, text_lengths, mel_spectrograms):
        tokens = valid(text_lengths, text_sequences.shape[1])
        x = self.embedding(text_sequences) * tokens[:, :, None]
        for layer in self.layers:
            x = (x + F.relu(layer(x.transpose(1, 2))).transpose(1, 2)) * tokens[:, :, None]
        durations = F.softplus(self.duration(x).squeeze(-1)) * tokens
        centres = torch.cumsum(durations, 1) - durations / 2
        frame = torch.arange(mel_spectrograms.shape[1]) + 0.5
        # Gaussians of two frames: much narrower ones leave a duration's gradient to rounding.
        nearness = -(frame[None, :, None] - centres[:, None, :]).square() / 8 + (tokens - 1)[:, None, :] * 1e9
        return self.head(torch.softmax(nearness, -1) @ x), durations.sum(1)


def spectrum_loss(outputs, batch):
    mel, frames = outputs
    target, lengths = batch["mel_spectrograms"], batch["mel_lengths"]
    weight = valid(lengths, target.shape[1])
    count = weight.sum()
    l1 = ((mel - target).abs().mean(-1) * weight).sum() / count.clamp(min=1)
    length = ((frames - lengths).abs() * (lengths > 0)).sum() / count.clamp(min=1)
    return {"loss": l1 + 0.1 * length, "loss_weight": count, "spectrum_loss": l1, "length_loss": length}


def fast_speech() -> Export:
    torch.manual_seed(0)
    return Export(
        name="fast-speech", module=FastSpeech(), loss=spectrum_loss,
        inputs=[*sequence("text_sequences", "i32", "T_text", lengths="text_lengths", below=VOCABULARY),
                *sequence("mel_spectrograms", "f32", "T_mel", 80, lengths="mel_lengths", origin="stage")],
        buckets=[{"T_text": text, "T_wav": 256 * hops, "T_mel": 1 + hops} for text, hops in ((72, 258), (124, 440))],
        features=FEATURES, tokenizer=tokenizer.build(), pipeline=[LOGMEL])


class Conformer(nn.Module):
    """Mel frames to symbols: attention, then a gated depthwise convolution."""

    def __init__(self, width: int = 16, n_mels: int = 80, symbols: int = 11):
        super().__init__()
        self.frame_in = nn.Conv1d(n_mels, width, 3, padding=1)
        self.attention_norm = nn.LayerNorm(width)
        self.query_key_value = nn.Linear(width, 3 * width, bias=False)
        self.attention_out = nn.Linear(width, width)
        self.convolution_norm = nn.LayerNorm(width)
        self.pointwise_in = nn.Conv1d(width, 2 * width, 1)
        self.depthwise = nn.Conv1d(width, width, 7, padding="same", groups=width)
        self.group_norm = nn.GroupNorm(2, width)
        self.pointwise_out = nn.Conv1d(width, width, 1)
        self.head = nn.Linear(width, symbols)

    def forward(self, mel_spectrograms, mel_lengths):
        inside = valid(mel_lengths, mel_spectrograms.shape[1])
        x = F.relu(self.frame_in(mel_spectrograms.transpose(1, 2))).transpose(1, 2) * inside[:, :, None]
        q, k, v = self.query_key_value(self.attention_norm(x)).chunk(3, dim=-1)
        scores = q @ k.transpose(1, 2) / math.sqrt(q.shape[-1]) + (inside - 1)[:, None, :] * 1e9
        x = x + self.attention_out(torch.softmax(scores, -1) @ v)
        y = F.glu(self.pointwise_in((self.convolution_norm(x) * inside[:, :, None]).transpose(1, 2)), dim=1)
        y = self.pointwise_out(F.silu(self.group_norm(self.depthwise(y))))
        return self.head(x + y.transpose(1, 2))


def symbol_loss(logits, batch):
    weight = valid(batch["mel_lengths"], logits.shape[1])
    # In place of labels: the speaker's id in every frame.
    target = (torch.arange(logits.shape[1])[None, :] + batch["speaker_ids"][:, None]) % logits.shape[2]
    losses = F.cross_entropy(logits.transpose(1, 2), target, reduction="none")
    return {"loss": (losses * weight).sum() / weight.sum().clamp(min=1), "loss_weight": weight.sum()}


def conformer() -> Export:
    torch.manual_seed(0)
    return Export(
        name="conformer", module=Conformer(), loss=symbol_loss,
        inputs=[*sequence("mel_spectrograms", "f32", "T_mel", 80, lengths="mel_lengths", origin="stage"),
                Input("speaker_ids", "i32", ("B",), below=8)],
        buckets=[{"T_wav": 66048, "T_mel": 259}], features=FEATURES, pipeline=[LOGMEL])


class CodeModel(nn.Module):
    """The next of a row's codes from those before it."""

    def __init__(self, codes: int = VOCABULARY, width: int = 16, positions: int = 128):
        super().__init__()
        self.codes, self.positions = nn.Embedding(codes, width), nn.Embedding(positions, width)
        self.layers = nn.ModuleList(
            nn.TransformerEncoderLayer(width, 2, 2 * width, activation="gelu", batch_first=True, norm_first=True) for _ in range(2))
        self.norm, self.head = nn.LayerNorm(width), nn.Linear(width, codes)

    def forward(self, text_sequences):
        time = text_sequences.shape[1]
        x = self.codes(text_sequences) + self.positions(torch.arange(time))
        causal = torch.full((time, time), -1e9).triu(1)
        for layer in self.layers:
            x = layer(x, src_mask=causal)
        return self.head(self.norm(x))


def next_code_loss(logits, batch):
    codes = batch["text_sequences"].long()
    weight = valid(batch["text_lengths"] - 1, codes.shape[1] - 1)
    losses = F.cross_entropy(logits[:, :-1].flatten(0, 1), codes[:, 1:].flatten(), reduction="none").view(weight.shape)
    return {"loss": (losses * weight).sum() / weight.sum().clamp(min=1), "loss_weight": weight.sum()}


def code_model() -> Export:
    torch.manual_seed(0)
    return Export(
        name="code-model", module=CodeModel(), loss=next_code_loss,
        inputs=sequence("text_sequences", "i32", "T_text", lengths="text_lengths", below=VOCABULARY),
        buckets=[{"T_text": 72, "T_wav": 66048}, {"T_text": 124, "T_wav": 112640}], features=FEATURES, tokenizer=tokenizer.build())
