"""Pieces of speech models"""

import math

import torch
import torch.nn.functional as F
from torch import nn

from .case import TABLE, WIDTH, Case
from .shapes import _Linear


class AntiAliasedSnake(_Linear):
    """a snake activation between filters that double the rate and halve it again (BigVGAN): `F.conv_transpose1d` of an expanded filter, `torch.kaiser_window`"""

    def __init__(self):
        super().__init__()
        self.alpha, places = nn.Parameter(torch.zeros(WIDTH)), torch.arange(-6, 6) + 0.5
        self.register_buffer("filter", (torch.sinc(places / 2) * torch.kaiser_window(12, False, 4.66))[None, None] / 2)

    def forward(self, x):
        y, filters = self.linear(x).mT, self.filter.expand(WIDTH, -1, -1)
        y = 2 * F.conv_transpose1d(F.pad(y, (5, 5), mode="replicate"), filters, stride=2, groups=WIDTH)[..., 15:-15]
        slope = torch.exp(self.alpha)[:, None]
        y = y + (1 / (slope + 1e-9)) * torch.sin(y * slope).pow(2)
        return F.conv1d(F.pad(y, (5, 6), mode="replicate"), filters, stride=2, groups=WIDTH).mT[:, :x.shape[1]]


class StyleNorm(_Linear):
    """adaptive instance norm of a style vector (StyleTTS 2), then a convolution with weight norm"""

    def __init__(self):
        super().__init__()
        self.norm, self.style = nn.InstanceNorm1d(WIDTH, affine=False), nn.Linear(WIDTH, 2 * WIDTH)
        self.conv = nn.utils.parametrizations.weight_norm(nn.Conv1d(WIDTH, WIDTH, 3, padding=1))

    def forward(self, x, voice):
        h = self.style(voice)
        scale, shift = torch.chunk(h.view(h.size(0), h.size(1), 1), chunks=2, dim=1)
        y = (1 + scale) * self.norm(x.transpose(1, 2)) + shift
        return (self.conv(F.leaky_relu(y, 0.2)).transpose(1, 2) + self.linear(x)) / math.sqrt(2)


class HarmonicSource(Case):
    """the source of a vocoder with harmonics (NSF): `cumsum` of the fundamental frequency over the samples, `% 1`, `sin`, and noise where there is no voice"""

    def __init__(self):
        super().__init__()
        self.pitch, self.merge, self.filter = nn.Linear(WIDTH, 1), nn.Linear(9, 1), nn.Conv1d(1, 4, 7, padding=3)

    def forward(self, x):
        pitch = F.interpolate(80 + 200 * torch.sigmoid(self.pitch(x)).mT, scale_factor=16.0).mT
        cycles = (pitch * torch.arange(1, 10) / 24000) % 1
        wrapped = cycles.cumsum(1) % 1
        turns = torch.zeros_like(cycles)
        turns[:, 1:] = (wrapped[:, 1:] - wrapped[:, :-1] < 0) * -1.0
        voiced = (pitch > 150).float()
        sines = voiced * 0.1 * torch.sin((cycles + turns).cumsum(1) * 2 * math.pi) + (1 - voiced) * 0.003 * torch.zeros_like(cycles)
        return self.filter(torch.tanh(self.merge(sines + 0.1 * torch.sin(cycles.cumsum(1) * 2 * math.pi))).mT)


class GroupedQueries(_Linear):
    """attention with two keys for four queries, `repeat_interleave` of the heads, and linear biases (ALiBi)"""

    def __init__(self):
        super().__init__()
        self.query, self.both = nn.Linear(WIDTH, WIDTH), nn.Linear(WIDTH, WIDTH)
        self.register_buffer("slopes", 2 ** (-8 * torch.arange(1, 5) / 4), persistent=False)

    def forward(self, x, lengths):
        rows, frames, _ = x.size()
        query = self.query(x).view(rows, frames, 4, 2).transpose(1, 2)
        key, value = (y.transpose(1, 2).repeat_interleave(2, dim=1) for y in self.both(x).view(rows, frames, 2, 2, 2).unbind(2))
        places = torch.arange(frames, device=x.device)
        bias = -(places[None] - places[:, None]).abs()[None] * self.slopes[:, None, None]
        mask = (places[None] < lengths[:, None])[:, None, None]
        weights = (query @ key.transpose(-2, -1) / 2 ** 0.5 + bias).masked_fill(~mask, torch.finfo(x.dtype).min).softmax(-1)
        return self.linear((weights @ value).transpose(1, 2).reshape(rows, frames, -1))


class Experts(_Linear):
    """a mixture of experts: `topk` of the gates, `scatter` of their softmax, and a loss that balances them"""

    def __init__(self):
        super().__init__()
        self.gate = nn.Linear(WIDTH, 4)
        self.experts = nn.ModuleList(nn.Sequential(nn.Linear(WIDTH, 16), nn.GELU(), nn.Linear(16, WIDTH)) for _ in range(4))

    def forward(self, x):
        gates = self.gate(x)
        best, ids = gates.topk(2, dim=-1)
        weights = torch.zeros_like(gates).scatter(-1, ids, best.softmax(-1))
        made = torch.stack([expert(x) for expert in self.experts], -2)
        return self.linear(x) + (weights.unsqueeze(-1) * made).sum(-2) + 4 * weights.mean(1, keepdim=True).pow(2).sum(-1, keepdim=True)


class AttentiveStatistics(_Linear):
    """a speaker encoder as ECAPA-TDNN: Res2Net's splits, squeeze and excitation, mean and deviation by attention"""

    def __init__(self):
        super().__init__()
        self.splits = nn.ModuleList(nn.Conv1d(2, 2, 3, padding=2, dilation=2) for _ in range(3))
        self.excite = nn.Sequential(nn.Conv1d(WIDTH, 4, 1), nn.ReLU(), nn.Conv1d(4, WIDTH, 1), nn.Sigmoid())
        self.attend = nn.Sequential(nn.Conv1d(3 * WIDTH, 6, 1), nn.Tanh(), nn.Conv1d(6, WIDTH, 1))

    def forward(self, x, lengths):
        parts, made, last = torch.split(self.linear(x).transpose(1, 2), 2, 1), [], 0
        for part, conv in zip(parts, self.splits, strict=False):
            last = F.relu(conv(last + part))
            made.append(last)
        y = torch.cat([*made, parts[3]], 1)
        y = y * self.excite(y.mean(2, keepdim=True))
        frames, count = y.size(-1), lengths.clamp(min=1)[:, None].float()
        mask = (torch.arange(frames)[None] < lengths[:, None]).unsqueeze(1)
        mean = (y * mask).sum(2) / count
        deviation = torch.sqrt((((y - mean.unsqueeze(2)) ** 2) * mask).sum(2).div(count).clamp(min=1e-4))
        whole = torch.cat((y, mean.unsqueeze(2).repeat(1, 1, frames), deviation.unsqueeze(2).repeat(1, 1, frames)), 1)
        weights = F.softmax(self.attend(whole).masked_fill(~mask, -1e4), 2)
        mean = (y * weights).sum(2)
        return torch.cat((mean, torch.sqrt(((y ** 2 * weights).sum(2) - mean ** 2).clamp(min=1e-4))), 1)


class GaussianUpsampling(_Linear):
    """frames from text by Gaussian weights around the middle of each token, whose durations are learned"""

    def __init__(self):
        super().__init__()
        self.embedding, self.duration = nn.Embedding(TABLE, WIDTH), nn.Linear(WIDTH, 1)

    def forward(self, ids, id_lengths, x):
        text, mask = self.embedding(ids), torch.arange(ids.size(1))[None] < id_lengths[:, None]
        durations = F.softplus(self.duration(text)).squeeze(-1) * mask
        centres = durations.cumsum(1) - 0.5 * durations
        energy = -0.1 * (torch.arange(x.size(1))[None, :, None] + 0.5 - centres[:, None]) ** 2
        return self.linear(energy.masked_fill(~mask[:, None], -1e9).softmax(-1) @ text)


class AveragedPitch(Case):
    """the mean pitch of each token (FastPitch): differences of cumulative sums, by `gather` at the ends of durations"""

    def __init__(self):
        super().__init__()
        self.pitch = nn.Linear(WIDTH, 1)

    def forward(self, x, ids, id_lengths):
        durations = (ids % 3 + 1) * (torch.arange(ids.shape[1]) < id_lengths[:, None])
        ends = torch.cumsum(durations, 1).long().clamp(max=x.shape[1])
        starts, pitch = F.pad(ends[:, :-1], (1, 0)), F.relu(self.pitch(x)[..., 0])
        total, voiced = F.pad(pitch.cumsum(1), (1, 0)), F.pad((pitch != 0).cumsum(1), (1, 0))
        total, voiced = (t.gather(1, ends) - t.gather(1, starts) for t in (total, voiced))
        return torch.where(voiced == 0, 0.0, total / voiced.clamp(min=1))


class GuidedAttention(_Linear):
    """guided attention, and durations as sums of `F.one_hot` of the best token, whose classes are a length"""

    def __init__(self):
        super().__init__()
        self.embedding = nn.Embedding(TABLE, WIDTH)

    def forward(self, x, lengths, ids, id_lengths):
        mask = torch.arange(ids.size(1))[None] < id_lengths[:, None]
        weights = (self.linear(x) @ self.embedding(ids).mT / 3).masked_fill(~mask[:, None], -1e9).softmax(-1)
        text = torch.arange(ids.size(1))[None, None] / id_lengths.clamp(min=1)[:, None, None]
        time = torch.arange(x.size(1))[None, :, None] / lengths.clamp(min=1)[:, None, None]
        guide = 1 - torch.exp(-((text - time) ** 2) / (2 * 0.2 ** 2))
        seen = (torch.arange(x.size(1))[None] < lengths[:, None])[..., None]
        durations = (F.one_hot(weights.argmax(-1), ids.size(1)) * seen).sum(1).float()
        return (weights * guide * seen).sum(-1, keepdim=True) + 0.01 * (weights.sum(1) * durations).mean(1)[:, None, None]


class StreamingConvolution(_Linear):
    """causal convolutions with a cache of former frames, which is an argument, `None` at the beginning"""

    def __init__(self):
        super().__init__()
        self.conv = nn.Conv1d(WIDTH, WIDTH, 3, dilation=2)

    def convolved(self, x, cache=None):
        if cache is None:
            cache = torch.zeros((x.shape[0], x.shape[1], 4), dtype=x.dtype, device=x.device)
        x = torch.cat((cache, x), dim=2)
        return self.conv(x), x[:, :, -4:]

    def forward(self, x):
        y, cache = self.convolved(x.transpose(1, 2))
        z, _ = self.convolved(y, cache)
        return self.linear(z.transpose(1, 2))
