"""A GPT over the codes of an audio codec: the next code of each row from those before it.

The codes are the ids of the row's text here; a stage of your own can compute others.

    xtts-export module scripts/examples/code_gpt.py:build --out runs/code-gpt --precision f32,bf16
"""

from dataclasses import dataclass

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from common import FEATURES, inside, mean
from xtts_export import Export, sequence, tokenizer


@dataclass(frozen=True)
class Sizes:
    width: int
    heads: int
    layers: int
    codes: int
    lengths: tuple[int, ...]  # of the buckets


SMALL = Sizes(width=32, heads=2, layers=2, codes=512, lengths=(72, 124))
LARGE = Sizes(width=1024, heads=16, layers=12, codes=1024, lengths=(512,))


class Block(nn.Module):
    def __init__(self, s: Sizes):
        super().__init__()
        self.heads = s.heads
        self.attention_norm, self.feed_norm = nn.LayerNorm(s.width), nn.LayerNorm(s.width)
        self.query_key_value, self.out = nn.Linear(s.width, 3 * s.width), nn.Linear(s.width, s.width)
        self.feed_in, self.feed_out = nn.Linear(s.width, 4 * s.width), nn.Linear(4 * s.width, s.width)

    def forward(self, x: Tensor) -> Tensor:
        q, k, v = (y.unflatten(-1, (self.heads, -1)).transpose(1, 2) for y in self.query_key_value(self.attention_norm(x)).chunk(3, -1))
        x = x + self.out(F.scaled_dot_product_attention(q, k, v, is_causal=True).transpose(1, 2).flatten(2))
        return x + self.feed_out(F.gelu(self.feed_in(self.feed_norm(x))))


class CodeGPT(nn.Module):
    def __init__(self, s: Sizes):
        super().__init__()
        self.codes, self.positions = nn.Embedding(s.codes, s.width), nn.Embedding(s.lengths[-1], s.width)
        self.blocks = nn.ModuleList(Block(s) for _ in range(s.layers))
        self.norm, self.head = nn.LayerNorm(s.width), nn.Linear(s.width, s.codes, bias=False)

    def forward(self, text_sequences):
        x = self.codes(text_sequences) + self.positions(torch.arange(text_sequences.shape[1]))
        for block in self.blocks:
            x = block(x)
        return self.head(self.norm(x))


def loss(logits, batch):
    codes = batch["text_sequences"].long()
    next_code = torch.cat([codes[:, 1:], torch.zeros_like(codes[:, :1])], 1)
    weight = inside(batch["text_lengths"] - 1, codes.shape[1]).float()
    entropy = mean(F.cross_entropy(logits.flatten(0, 1), next_code.flatten(), reduction="none").view(weight.shape), weight)
    return {"loss": entropy, "loss_weight": weight.sum()}


def build(sizes: Sizes = SMALL) -> Export:
    torch.manual_seed(0)
    return Export(
        name="code-gpt", module=CodeGPT(sizes), loss=loss,
        inputs=sequence("text_sequences", "i32", "T_text", lengths="text_lengths", below=sizes.codes),
        buckets=[{"T_text": n, "T_wav": 512 * n} for n in sizes.lengths], features=FEATURES, tokenizer=tokenizer.build())


def large() -> Export:
    return build(LARGE)
