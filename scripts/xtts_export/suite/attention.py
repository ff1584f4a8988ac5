"""Attention and transformer layers"""

import math

import torch
import torch.nn.functional as F
from torch import nn

from .case import TABLE, WIDTH, Case


def valid(x, lengths):
    """bool[B, T], true inside each row's length."""
    return torch.arange(x.shape[1])[None, :] < lengths[:, None]


def causal(x):
    """bool[T, T], true where a frame may see another."""
    return torch.ones(x.shape[1], x.shape[1], dtype=torch.bool).tril()


class SelfAttention(Case):
    """`nn.MultiheadAttention` as it is: with weights, without masks"""

    def __init__(self):
        super().__init__()
        self.attention = nn.MultiheadAttention(WIDTH, 2, batch_first=True)

    def forward(self, x):
        y, weights = self.attention(x, x, x)
        return y * weights.square().sum(-1, keepdim=True)


class SelfAttentionTimeFirst(Case):
    """`nn.MultiheadAttention` with time first, `need_weights=False`, `add_bias_kv`"""

    def __init__(self):
        super().__init__()
        self.attention = nn.MultiheadAttention(WIDTH, 2, add_bias_kv=True)

    def forward(self, x):
        x = x.transpose(0, 1)
        return self.attention(x, x, x, need_weights=False)[0].transpose(0, 1)


class PaddedAttention(Case):
    """`nn.MultiheadAttention` with a boolean `key_padding_mask`"""

    nan_when_empty = True

    def __init__(self):
        super().__init__()
        self.attention = nn.MultiheadAttention(WIDTH, 2, batch_first=True)

    def forward(self, x, lengths):
        return self.attention(x, x, x, key_padding_mask=~valid(x, lengths), need_weights=False)[0]


class PaddedAttentionWithWeights(PaddedAttention):
    """`nn.MultiheadAttention` with a boolean `key_padding_mask`, with weights"""

    def forward(self, x, lengths):
        y, weights = self.attention(x, x, x, key_padding_mask=~valid(x, lengths))
        return y + weights.max(-1, keepdim=True).values


class FloatMaskAttention(PaddedAttention):
    """`nn.MultiheadAttention` with masks of numbers: `key_padding_mask` and a causal `attn_mask`"""

    nan_when_empty = False

    def forward(self, x, lengths):
        padding = (~valid(x, lengths)).float() * -1e4
        later = torch.triu(torch.full((x.shape[1], x.shape[1]), -1e4), diagonal=1)
        return self.attention(x, x, x, key_padding_mask=padding, attn_mask=later)[0]


class InfiniteMaskAttention(PaddedAttention):
    """`nn.MultiheadAttention` with a causal `attn_mask` of `-inf`, `nn.Transformer.generate_square_subsequent_mask`"""

    nan_when_empty = False

    def forward(self, x):
        later = nn.Transformer.generate_square_subsequent_mask(x.shape[1])
        return self.attention(x, x, x, attn_mask=later, is_causal=True)[0] + self.attention(x, x, x, attn_mask=later)[0]


class CrossAttention(Case):
    """`nn.MultiheadAttention` from frames to text, `kdim` and `vdim`, padded"""

    nan_when_empty = True

    def __init__(self):
        super().__init__()
        self.table = nn.Embedding(TABLE, 6)
        self.attention = nn.MultiheadAttention(WIDTH, 2, kdim=6, vdim=6, batch_first=True)

    def forward(self, x, ids, id_lengths):
        text = self.table(ids)
        return self.attention(x, text, text, key_padding_mask=~valid(ids, id_lengths))[0]


class ScaledDotProduct(Case):
    """`F.scaled_dot_product_attention` with heads, a boolean mask, `is_causal`, `enable_gqa`"""

    nan_when_empty = True

    def __init__(self):
        super().__init__()
        self.qkv, self.out = nn.Linear(WIDTH, 3 * WIDTH), nn.Linear(WIDTH, WIDTH)

    def forward(self, x, lengths):
        q, k, v = (y.view(*y.shape[:2], 2, -1).transpose(1, 2) for y in self.qkv(x).chunk(3, dim=-1))
        y = F.scaled_dot_product_attention(q, k, v, attn_mask=valid(x, lengths)[:, None, None])
        y = y + F.scaled_dot_product_attention(q, k, v, is_causal=True)
        y = y + F.scaled_dot_product_attention(q, k[:, :1], v[:, 1:], enable_gqa=True)
        return self.out(y.transpose(1, 2).flatten(2))


class HandMadeAttention(ScaledDotProduct):
    """attention written by hand, with `masked_fill` of a large negative number, `softmax`, `einsum`"""

    nan_when_empty = False

    def forward(self, x, lengths):
        q, k, v = self.qkv(x).view(x.size(0), x.size(1), 3, 2, -1).unbind(2)
        scores = torch.einsum("bqhd,bkhd->bhqk", q, k) / math.sqrt(q.size(-1))
        scores = scores.masked_fill(~valid(x, lengths)[:, None, None], -1e9).softmax(-1)
        return self.out(torch.einsum("bhqk,bkhd->bqhd", scores, v).reshape(x.size(0), -1, WIDTH))


class InfiniteFill(ScaledDotProduct):
    """`masked_fill` of `-inf` before a softmax, with `nan_to_num` for empty rows"""

    nan_when_empty = False

    def forward(self, x, lengths):
        q, k, v = self.qkv(x).chunk(3, dim=-1)
        inside = valid(x, lengths) | (lengths == 0)[:, None]
        scores = (q @ k.transpose(1, 2)).masked_fill(~inside[:, None], float("-inf"))
        return self.out(torch.softmax(scores, dim=-1) @ v)


class HuggingFaceViews(ScaledDotProduct):
    """views as Hugging Face writes them: `view(new_shape)`, `permute`, `contiguous`, `torch.finfo(...).min`"""

    nan_when_empty = False

    def split(self, x):
        new_shape = x.size()[:-1] + (2, x.size(-1) // 2)
        return x.view(new_shape).permute(0, 2, 1, 3)

    def forward(self, x, lengths):
        q, k, v = (self.split(y) for y in self.qkv(x).split(WIDTH, dim=2))
        mask = (1.0 - valid(x, lengths)[:, None, None, :].to(x.dtype)) * torch.finfo(x.dtype).min
        scores = torch.matmul(q, k.transpose(-1, -2)) / q.size(-1) ** 0.5
        scores = torch.where(causal(x)[None, None], scores, torch.full([], torch.finfo(x.dtype).min)) + mask.clamp(min=-1e30)
        y = torch.matmul(F.softmax(scores, dim=-1), v).permute(0, 2, 1, 3).contiguous()
        return self.out(y.view(y.size()[:-2] + (WIDTH,)))


class EncoderLayer(Case):
    """`nn.TransformerEncoderLayer` with `src_key_padding_mask`, norm after"""

    nan_when_empty = True

    def __init__(self):
        super().__init__()
        self.layer = nn.TransformerEncoderLayer(WIDTH, 2, 16, dropout=0.0, batch_first=True)

    def forward(self, x, lengths):
        return self.layer(x, src_key_padding_mask=~valid(x, lengths))


class Encoder(Case):
    """`nn.TransformerEncoder`, norm before, gelu, `mask`, `src_key_padding_mask`, a last norm"""

    nan_when_empty = True

    def __init__(self):
        super().__init__()
        layer = nn.TransformerEncoderLayer(WIDTH, 2, 16, dropout=0.0, batch_first=True, norm_first=True, activation="gelu")
        self.encoder = nn.TransformerEncoder(layer, 1, norm=nn.LayerNorm(WIDTH), enable_nested_tensor=False)

    def forward(self, x, lengths):
        return self.encoder(x, mask=~causal(x), src_key_padding_mask=~valid(x, lengths))


class NestedEncoder(Encoder):
    """`nn.TransformerEncoder` with its defaults (`enable_nested_tensor=True`)"""

    def __init__(self):
        super().__init__()
        layer = nn.TransformerEncoderLayer(WIDTH, 2, 16, dropout=0.0, batch_first=True)
        self.encoder = nn.TransformerEncoder(layer, 1)

    def forward(self, x, lengths):
        return self.encoder(x, src_key_padding_mask=~valid(x, lengths))


class DecoderLayer(Case):
    """`nn.TransformerDecoderLayer` with causal, target and memory masks"""

    nan_when_empty = True

    def __init__(self):
        super().__init__()
        self.table, self.layer = nn.Embedding(TABLE, WIDTH), nn.TransformerDecoderLayer(WIDTH, 2, 16, dropout=0.0, batch_first=True)

    def forward(self, x, lengths, ids, id_lengths):
        later = nn.Transformer.generate_square_subsequent_mask(x.size(1))
        return self.layer(x, self.table(ids), tgt_mask=later, tgt_is_causal=True, memory_key_padding_mask=~valid(ids, id_lengths))
