"""The voice of XTTS v2: a spectrogram of a clip, encoded by attention, becomes 32 vectors by a perceiver resampler (Jaegle et al. 2021,
Alayrac et al. 2022), under the parameter names of coqui's checkpoints.

A spectrogram is padded to the batch. Its frames alone count: in the norms, as keys of the encoder, and as keys of the resampler. coqui has no
such masks, because its clips are never padded, or padded with silence that counts.
"""

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from ..lowering import attend

MELS = 80
LATENTS = 32
_BLOCKS = 6
_EPSILON = 1e-5
# Of the resampler.
_LAYERS, _HEADS, _HEAD, _WIDENING = 2, 8, 64, 4
_MASKED = -1e9


def masked(inside: Tensor) -> Tensor:
    """f32 like inside, which is 1 for keys that exist and 0 for others: what to add to scores."""
    return (1 - inside) * _MASKED


class GroupNorm(nn.GroupNorm):
    """Of x f32[B, T, channels], over the frames for which inside f32[B, T] is 1."""

    def __init__(self, channels: int):
        groups = 8 if channels <= 16 else 16 if channels <= 64 else 32
        while channels % groups:
            groups //= 2
        super().__init__(groups, channels, eps=_EPSILON)

    def forward(self, x: Tensor, inside: Tensor) -> Tensor:
        y, weight = x.unflatten(-1, (self.num_groups, -1)), inside[:, :, None, None]
        count = (weight.sum(1, keepdim=True) * (self.num_channels // self.num_groups)).clamp(min=1)
        # What is outside becomes 0: an empty row has no variance, and each norm would make its frames larger.
        y = (y - (y * weight).sum((1, 3), keepdim=True) / count) * weight
        y = y * torch.rsqrt(y.square().sum((1, 3), keepdim=True) / count + self.eps)
        return y.flatten(2) * self.weight + self.bias


class Pointwise(nn.Conv1d):
    """A convolution with a kernel of 1, of x[B, T, inner]."""

    def __init__(self, inner: int, outer: int):
        super().__init__(inner, outer, 1)

    def forward(self, x: Tensor) -> Tensor:
        return F.linear(x, self.weight.flatten(1), self.bias)


class AttentionBlock(nn.Module):
    """The residual is that of the normalized frames, as the weights of XTTS were trained."""

    def __init__(self, width: int, heads: int):
        super().__init__()
        self.heads = heads
        self.norm, self.qkv, self.proj_out = GroupNorm(width), Pointwise(width, 3 * width), Pointwise(width, width)
        for p in self.proj_out.parameters():
            nn.init.zeros_(p)

    def forward(self, x: Tensor, inside: Tensor, mask: Tensor) -> Tensor:
        x = self.norm(x, inside)
        # Query, key and value of a head are neighbours.
        q, k, v = self.qkv(x).unflatten(-1, (self.heads, 3, -1)).permute(3, 0, 2, 1, 4)
        return x + self.proj_out(attend(q, k, v, mask).transpose(1, 2).flatten(2))


class Encoder(nn.Module):
    def __init__(self, width: int, heads: int):
        super().__init__()
        self.init = Pointwise(MELS, width)
        self.attn = nn.ModuleList(AttentionBlock(width, heads) for _ in range(_BLOCKS))

    def forward(self, mel: Tensor, inside: Tensor) -> Tensor:
        x, mask = self.init(mel), masked(inside)[:, None, None, :]
        for block in self.attn:
            x = block(x, inside, mask)
        return x


class CrossAttention(nn.Module):
    """From the latents to themselves and to the frames."""

    def __init__(self, width: int):
        super().__init__()
        inner = _HEADS * _HEAD
        self.to_q, self.to_kv = nn.Linear(width, inner, bias=False), nn.Linear(width, 2 * inner, bias=False)
        self.to_out = nn.Linear(inner, width, bias=False)

    def forward(self, latents: Tensor, x: Tensor, mask: Tensor) -> Tensor:
        split = lambda y: y.unflatten(-1, (_HEADS, _HEAD)).transpose(1, 2)
        k, v = self.to_kv(torch.cat([latents, x], 1)).chunk(2, -1)
        y = attend(split(self.to_q(latents)), split(k), split(v), mask)
        return self.to_out(y.transpose(1, 2).flatten(2))


class Gate(nn.Module):
    """GEGLU (Shazeer 2020)."""

    def forward(self, x: Tensor) -> Tensor:
        x, gate = x.chunk(2, -1)
        return x * F.gelu(gate)


class RootMeanSquareNorm(nn.Module):
    def __init__(self, width: int):
        super().__init__()
        self.gamma = nn.Parameter(torch.ones(width))

    def forward(self, x: Tensor) -> Tensor:
        return F.normalize(x, dim=-1) * x.shape[-1] ** 0.5 * self.gamma


class Resampler(nn.Module):
    def __init__(self, width: int):
        super().__init__()
        # Two thirds, because half of what the first layer makes are gates.
        inner = _WIDENING * width * 2 // 3
        feed_forward = lambda: nn.Sequential(nn.Linear(width, 2 * inner), Gate(), nn.Linear(inner, width))
        self.latents = nn.Parameter(0.02 * torch.randn(LATENTS, width))
        self.layers = nn.ModuleList(nn.ModuleList([CrossAttention(width), feed_forward()]) for _ in range(_LAYERS))
        self.norm = RootMeanSquareNorm(width)

    def forward(self, x: Tensor, inside: Tensor) -> Tensor:
        """f32[B, LATENTS, width]."""
        latents = self.latents.expand(x.shape[0], -1, -1)
        mask = masked(torch.cat([torch.ones_like(latents[:, :, 0]), inside], 1))[:, None, None, :]
        for attention, feed_forward in self.layers:
            latents = latents + attention(latents, x, mask)
            latents = latents + feed_forward(latents)
        return self.norm(latents)
