"""The transformer of GPT-2 (Radford et al. 2019) under the parameter names of Hugging Face's GPT2Model, without its embeddings.

Blocks normalize before attention and before the feed-forward layers, whose activation is the tanh form of GELU. Matrices are stored as
[in, out].
"""

import math

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from ..lowering import attend

# GPT2Config's attn_pdrop, resid_pdrop and embd_pdrop, and initializer_range.
DROPOUT = 0.1
_SPREAD = 0.02

# Keys and values of a block, f32[B, heads, S, width / heads].
Past = tuple[Tensor, Tensor]


class Projection(nn.Module):
    """A linear layer whose matrix is [in, out]: transformers' Conv1D."""

    inputs_first = True  # which adapters of it have to know

    def __init__(self, inner: int, outer: int, spread: float = _SPREAD):
        super().__init__()
        self.weight, self.bias = nn.Parameter(spread * torch.randn(inner, outer)), nn.Parameter(torch.zeros(outer))

    def forward(self, x: Tensor) -> Tensor:
        return F.linear(x, self.weight.T, self.bias)


class Attention(nn.Module):
    def __init__(self, width: int, heads: int, spread: float):
        super().__init__()
        self.heads = heads
        self.c_attn, self.c_proj = Projection(width, 3 * width), Projection(width, width, spread)
        self.dropout = nn.Dropout(DROPOUT)

    def forward(self, x: Tensor, mask: Tensor, past: Past | None = None) -> tuple[Tensor, Past]:
        """Also returns the keys and values of x, after those of past."""
        q, k, v = (y.unflatten(-1, (self.heads, -1)).transpose(1, 2) for y in self.c_attn(x).chunk(3, -1))
        if past is not None:
            k, v = torch.cat([past[0], k], 2), torch.cat([past[1], v], 2)
        y = attend(q, k, v, mask, drop=self.dropout)
        return self.dropout(self.c_proj(y.transpose(1, 2).flatten(2))), (k, v)


class FeedForward(nn.Module):
    def __init__(self, width: int, spread: float):
        super().__init__()
        self.c_fc, self.c_proj = Projection(width, 4 * width), Projection(4 * width, width, spread)
        self.dropout = nn.Dropout(DROPOUT)

    def forward(self, x: Tensor) -> Tensor:
        return self.dropout(self.c_proj(F.gelu(self.c_fc(x), approximate="tanh")))


class Block(nn.Module):
    def __init__(self, width: int, heads: int, spread: float):
        super().__init__()
        self.ln_1, self.attn = nn.LayerNorm(width), Attention(width, heads, spread)
        self.ln_2, self.mlp = nn.LayerNorm(width), FeedForward(width, spread)

    def forward(self, x: Tensor, mask: Tensor, past: Past | None = None) -> tuple[Tensor, Past]:
        y, past = self.attn(self.ln_1(x), mask, past)
        x = x + y
        return x + self.mlp(self.ln_2(x)), past


class GPT2(nn.Module):
    """x f32[B, S, width]; mask f32[B, 1, S, past + S] is added to the scores. past has the keys and values of each block for what came before x."""

    def __init__(self, layers: int, width: int, heads: int):
        super().__init__()
        # What is added to the residual stream, by two projections a block, begins smaller.
        spread = _SPREAD / math.sqrt(2 * layers)
        self.drop = nn.Dropout(DROPOUT)
        self.h = nn.ModuleList(Block(width, heads, spread) for _ in range(layers))
        self.ln_f = nn.LayerNorm(width)

    def forward(self, x: Tensor, mask: Tensor, past: list[Past] | None = None) -> tuple[Tensor, list[Past]]:
        x, now = self.drop(x), []
        for i, block in enumerate(self.h):
            x, kept = block(x, mask, None if past is None else past[i])
            now.append(kept)
        return self.ln_f(x), now
