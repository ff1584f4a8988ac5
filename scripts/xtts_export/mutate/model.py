"""A model of the field in miniature, whose build() is changed at random."""

import torch
import torch.nn.functional as F
from torch import nn

from xtts_export import Export, sequence
from xtts_export.examples import FEATURES

WIDTH, MELS, VOCABULARY = 8, 4, 11


class Acoustic(nn.Module):
    def __init__(self, width=WIDTH, heads=2):
        super().__init__()
        self.table = nn.Embedding(VOCABULARY, width, padding_idx=0)
        self.prenet = nn.Sequential(nn.Linear(MELS, width), nn.ReLU(), nn.Dropout(0.1))
        self.attention = nn.MultiheadAttention(width, heads, batch_first=True)
        self.conv = nn.Conv1d(width, width, kernel_size=3, padding=1)
        self.norm = nn.LayerNorm(width)
        self.out = nn.Linear(width, MELS)
        self.register_buffer("scale", torch.full((MELS,), 0.5))

    def forward(self, text, text_lengths, mel, mel_lengths):
        keys = self.table(text)
        hidden = torch.arange(text.shape[1])[None, :] >= text_lengths[:, None]
        y = self.prenet(F.pad(mel, (0, 0, 1, 0))[:, :-1])
        y = y + self.attention(y, keys, keys, key_padding_mask=hidden, need_weights=False)[0]
        y = self.norm(y + self.conv(y.transpose(1, 2)).transpose(1, 2))
        return self.out(y) * self.scale


def error(mel, batch):
    target, lengths = batch["mel"], batch["mel_lengths"]
    weight = (torch.arange(target.shape[1])[None, :] < lengths[:, None]).float()
    l1 = ((mel - target).abs().mean(-1) * weight).sum() / weight.sum().clamp(min=1)
    return {"loss": l1, "loss_weight": weight.sum(), "spectrum": l1}


def build():
    torch.manual_seed(0)
    return Export(
        name="acoustic", module=Acoustic(width=8, heads=2), loss=error,
        inputs=[*sequence("text", "i32", "T_text", lengths="text_lengths", below=11),
                *sequence("mel", "f32", "T_mel", 4, lengths="mel_lengths", origin="stage")],
        buckets=[{"T_text": 13, "T_wav": 5888, "T_mel": 24}, {"T_text": 40, "T_wav": 15104, "T_mel": 60}],
        features=FEATURES, pipeline=[], eval_graph=False)
