"""Models of attention: decoders, diffusion transformers, and the ways in which they know positions."""

import math

import torch
import torch.nn.functional as F
from torch import Tensor, nn
from torch.nn.utils.parametrizations import weight_norm

from frames import MELS, Frames, Residual, export, repeated


def heads(x: Tensor, count: int) -> Tensor:
    return x.unflatten(-1, (count, -1)).transpose(1, 2)


def joined(x: Tensor) -> Tensor:
    return x.transpose(1, 2).flatten(2)


class RMSNorm(nn.Module):
    """arXiv:1910.07467."""

    def __init__(self, width: int):
        super().__init__()
        self.weight = nn.Parameter(torch.ones(width))

    def forward(self, x: Tensor) -> Tensor:
        return x * torch.rsqrt(x.square().mean(-1, keepdim=True) + 1e-6) * self.weight


def rotated(x: Tensor) -> Tensor:
    """Rotary positions (arXiv:2104.09864)."""
    half = x.shape[-1] // 2
    angle = torch.arange(x.shape[-2])[:, None] * 10000 ** (-torch.arange(half) / half)
    a, b = x.chunk(2, -1)
    cos, sin = torch.cos(angle), torch.sin(angle)
    return torch.cat([a * cos - b * sin, b * cos + a * sin], -1)


class DecoderLayer(nn.Module):
    """RMSNorm, rotary positions, grouped queries and SwiGLU (arXiv:2302.13971)."""

    def __init__(self, width: int, count: int, groups: int):
        super().__init__()
        self.count, self.groups, size = count, groups, width // count
        self.norm1, self.norm2 = RMSNorm(width), RMSNorm(width)
        self.query, self.key_value = nn.Linear(width, width, bias=False), nn.Linear(width, 2 * groups * size, bias=False)
        self.out = nn.Linear(width, width, bias=False)
        self.gate, self.up, self.down = (nn.Linear(*shape, bias=False) for shape in ((width, 3 * width), (width, 3 * width), (3 * width, width)))

    def forward(self, x: Tensor) -> Tensor:
        y = self.norm1(x)
        key, value = self.key_value(y).chunk(2, -1)
        y = F.scaled_dot_product_attention(rotated(heads(self.query(y), self.count)), rotated(heads(key, self.groups)), heads(value, self.groups),
                                           is_causal=True, enable_gqa=True)
        x = x + self.out(joined(y))
        y = self.norm2(x)
        return x + self.down(F.silu(self.gate(y)) * self.up(y))


def decoder_only():
    return export("decoder_only", Frames(1024, repeated(8, lambda _: DecoderLayer(1024, 16, 4)), channels_last=True))


class RelativeLayer(nn.Module):
    """The encoder layer of VITS (arXiv:2106.06103): keys and values of the distances within a window (arXiv:1803.02155), which padding brings
    from distances to positions."""

    def __init__(self, width: int, count: int, window: int = 4):
        super().__init__()
        self.count, self.window, size = count, window, width // count
        self.query_key_value, self.out = nn.Conv1d(width, 3 * width, 1), nn.Conv1d(width, width, 1)
        self.keys, self.values = (nn.Parameter(torch.randn(1, 2 * window + 1, size) * size ** -0.5) for _ in range(2))
        self.norm1, self.norm2 = nn.LayerNorm(width), nn.LayerNorm(width)
        self.up, self.down = nn.Conv1d(width, 4 * width, 3, padding=1), nn.Conv1d(4 * width, width, 3, padding=1)

    def of_distances(self, table: Tensor, length: int) -> Tensor:
        return F.pad(table, (0, 0, length - 1 - self.window, length - 1 - self.window))

    def forward(self, x: Tensor) -> Tensor:
        batch, _, length = x.shape
        query, key, value = (heads(y.transpose(1, 2), self.count) for y in self.query_key_value(x).chunk(3, 1))
        query = query / math.sqrt(query.shape[-1])
        by_distance = query @ self.of_distances(self.keys, length).transpose(-1, -2)
        flat = F.pad(F.pad(by_distance, (0, 1)).flatten(2), (0, length - 1))
        scores = query @ key.transpose(-1, -2) + flat.view(batch, self.count, length + 1, 2 * length - 1)[:, :, :length, length - 1:]
        weights = torch.softmax(scores, -1)
        flat = F.pad(F.pad(weights, (0, length - 1)).flatten(2), (length, 0))
        by_distance = flat.view(batch, self.count, length, 2 * length)[..., 1:]
        y = weights @ value + by_distance @ self.of_distances(self.values, length)
        x = self.norm1((x + self.out(joined(y).transpose(1, 2))).transpose(1, 2)).transpose(1, 2)
        return self.norm2((x + self.down(F.relu(self.up(x)))).transpose(1, 2)).transpose(1, 2)


def relative():
    return export("relative", Frames(192, repeated(6, lambda _: RelativeLayer(192, 2))))


class DiTLayer(nn.Module):
    """A transformer layer that a vector scales, shifts and gates (arXiv:2212.09748)."""

    def __init__(self, width: int, count: int):
        super().__init__()
        self.count = count
        self.norm1, self.norm2 = (nn.LayerNorm(width, elementwise_affine=False, eps=1e-6) for _ in range(2))
        self.modulation = nn.Linear(width, 6 * width)
        self.query_key_value, self.out = nn.Linear(width, 3 * width), nn.Linear(width, width)
        self.up, self.down = nn.Linear(width, 2 * width), nn.Linear(2 * width, width)

    def forward(self, x: Tensor, vector: Tensor) -> Tensor:
        shift1, scale1, gate1, shift2, scale2, gate2 = self.modulation(F.silu(vector)).unsqueeze(1).chunk(6, -1)
        query, key, value = (heads(y, self.count) for y in self.query_key_value(self.norm1(x) * (1 + scale1) + shift1).chunk(3, -1))
        y = F.scaled_dot_product_attention(rotated(query), rotated(key), value)
        x = x + gate1 * self.out(joined(y))
        y = self.norm2(x) * (1 + scale2) + shift2
        return x + gate2 * self.down(F.gelu(self.up(y), approximate="tanh"))


class DiT(nn.Module):
    """The in-filling DiT of F5-TTS (arXiv:2410.06885): a grouped convolution of 31 as position. Its moment follows from an input, in f32, as a drawn one is."""

    def __init__(self, width: int, layers: int):
        super().__init__()
        self.first, self.last = nn.Linear(MELS, width), nn.Linear(width, MELS)
        self.position = nn.Sequential(nn.Conv1d(width, width, 31, groups=16, padding=15), nn.Mish(), nn.Conv1d(width, width, 31, groups=16, padding=15), nn.Mish())
        self.time = nn.Sequential(nn.Linear(256, width), nn.SiLU(), nn.Linear(width, width))
        self.layers = nn.ModuleList(DiTLayer(width, width // 64) for _ in range(layers))

    def forward(self, mel_spectrograms: Tensor) -> Tensor:
        moment = mel_spectrograms[:, 0, :1].sigmoid() * 1000
        angles = moment * torch.exp(-math.log(10000) * torch.arange(128) / 128)
        vector = self.time(torch.cat([angles.sin(), angles.cos()], -1))
        x = self.first(mel_spectrograms)
        x = x + self.position(x.transpose(1, 2)).transpose(1, 2)
        for layer in self.layers:
            x = layer(x, vector)
        return self.last(x)


def dit():
    return export("dit", DiT(1024, 8))


class BucketedLayer(nn.Module):
    """Attention with a learned bias for each bucket of distances, as T5 has it (arXiv:1910.10683), and a gated feed-forward layer."""

    def __init__(self, width: int, count: int):
        super().__init__()
        self.count, self.bias = count, nn.Embedding(32, count)
        self.norm1, self.norm2 = RMSNorm(width), RMSNorm(width)
        self.query_key_value, self.out = nn.Linear(width, 3 * width, bias=False), nn.Linear(width, width, bias=False)
        self.gate, self.up, self.down = (nn.Linear(*shape, bias=False) for shape in ((width, 2 * width), (width, 2 * width), (2 * width, width)))

    def buckets(self, length: int) -> Tensor:
        apart = torch.arange(length)[None, :] - torch.arange(length)[:, None]
        far = apart.abs()
        log = 8 + (torch.log(far.clamp(min=1) / 8) / math.log(128 / 8) * 8).long().clamp(max=7)
        return torch.where(far < 8, far, log) + 16 * (apart > 0)

    def forward(self, x: Tensor) -> Tensor:
        query, key, value = (heads(y, self.count) for y in self.query_key_value(self.norm1(x)).chunk(3, -1))
        bias = self.bias(self.buckets(x.shape[1])).permute(2, 0, 1)
        x = x + self.out(joined(torch.softmax(query @ key.transpose(-1, -2) + bias, -1) @ value))
        y = self.norm2(x)
        return x + self.down(F.gelu(self.gate(y), approximate="tanh") * self.up(y))


def bucketed():
    return export("bucketed", Frames(512, repeated(6, lambda _: BucketedLayer(512, 8)), channels_last=True))


class LinearLayer(nn.Module):
    """Attention by positive features in place of a softmax (arXiv:2006.16236)."""

    def __init__(self, width: int, count: int):
        super().__init__()
        self.count, self.norm1, self.norm2 = count, nn.LayerNorm(width), nn.LayerNorm(width)
        self.query_key_value, self.out = nn.Linear(width, 3 * width), nn.Linear(width, width)
        self.feed = nn.Sequential(nn.Linear(width, 4 * width), nn.GELU(), nn.Linear(4 * width, width))

    def forward(self, x: Tensor) -> Tensor:
        query, key, value = (heads(y, self.count) for y in self.query_key_value(self.norm1(x)).chunk(3, -1))
        query, key = F.elu(query) + 1, F.elu(key) + 1
        sums = key.transpose(-1, -2) @ value
        scale = (query * key.sum(2, keepdim=True)).sum(-1, keepdim=True)
        x = x + self.out(joined(query @ sums / (scale + 1e-6)))
        return x + self.feed(self.norm2(x))


def linear_attention():
    return export("linear_attention", Frames(512, repeated(8, lambda _: LinearLayer(512, 8)), channels_last=True))


class Perceiver(nn.Module):
    """A few learned vectors attend to all frames (arXiv:2103.03206), as the conditioning of XTTS, and the frames to them."""

    def __init__(self, width: int, count: int, latents: int, layers: int):
        super().__init__()
        self.count, self.latents = count, nn.Parameter(torch.randn(latents, width) * 0.02)
        self.norm, self.query, self.key_value, self.out = (
            nn.ModuleList(make() for _ in range(layers)) for make in (lambda: nn.LayerNorm(width), lambda: nn.Linear(width, width), lambda: nn.Linear(width, 2 * width),
                                                                     lambda: nn.Linear(width, width)))
        self.feed = nn.ModuleList(Residual(nn.LayerNorm(width), nn.Linear(width, 4 * width), nn.GELU(), nn.Linear(4 * width, width)) for _ in range(layers))

    def forward(self, x: Tensor) -> Tensor:
        y = self.latents.expand(x.shape[0], -1, -1)
        for norm, query, key_value, out, feed in zip(self.norm, self.query, self.key_value, self.out, self.feed, strict=True):
            key, value = (heads(z, self.count) for z in key_value(torch.cat([x, y], 1)).chunk(2, -1))
            y = feed(y + out(joined(F.scaled_dot_product_attention(heads(query(norm(y)), self.count), key, value))))
        return x + torch.softmax(x @ y.transpose(1, 2) / x.shape[-1] ** 0.5, -1) @ y


def perceiver():
    return export("perceiver", Frames(512, Perceiver(512, 8, 32, 4), channels_last=True))


class Wav2Vec(nn.Module):
    """wav2vec 2.0 (arXiv:2006.11477): a convolution of 128 in 16 groups as position, then transformer layers of PyTorch."""

    def __init__(self, width: int, layers: int):
        super().__init__()
        self.position = weight_norm(nn.Conv1d(width, width, 128, padding=64, groups=16), dim=2)
        self.norm = nn.LayerNorm(width)
        self.layers = nn.ModuleList(nn.TransformerEncoderLayer(width, width // 64, 4 * width, dropout=0.0, activation="gelu", batch_first=True) for _ in range(layers))

    def forward(self, x: Tensor) -> Tensor:
        x = self.norm(x + F.gelu(self.position(x.transpose(1, 2))[:, :, :-1]).transpose(1, 2))
        for layer in self.layers:
            x = layer(x)
        return x


def wav2vec():
    return export("wav2vec", Frames(512, Wav2Vec(512, 6), channels_last=True))


class SlopedLayer(nn.Module):
    """Attention within 64 frames, with a bias that falls with the distance (arXiv:2108.12409)."""

    def __init__(self, width: int, count: int, window: int = 64):
        super().__init__()
        self.count, self.window, self.norm1, self.norm2 = count, window, nn.LayerNorm(width), nn.LayerNorm(width)
        self.query_key_value, self.out = nn.Linear(width, 3 * width), nn.Linear(width, width)
        self.feed = nn.Sequential(nn.Linear(width, 4 * width), nn.ReLU(), nn.Linear(4 * width, width))
        self.register_buffer("slopes", 2.0 ** -torch.arange(1, count + 1).float(), persistent=False)

    def forward(self, x: Tensor) -> Tensor:
        query, key, value = (heads(y, self.count) for y in self.query_key_value(self.norm1(x)).chunk(3, -1))
        far = (torch.arange(x.shape[1])[None, :] - torch.arange(x.shape[1])[:, None]).abs()
        bias = torch.where(far > self.window, -1e9, -self.slopes[:, None, None] * far)
        y = F.scaled_dot_product_attention(query, key, value, attn_mask=bias[None].to(query.dtype))
        x = x + self.out(joined(y))
        return x + self.feed(self.norm2(x))


def sloped():
    return export("sloped", Frames(512, repeated(6, lambda _: SlopedLayer(512, 8)), channels_last=True))
