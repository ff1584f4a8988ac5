"""Indexing, sorting and choosing"""

import torch
import torch.nn.functional as F
from torch import nn

from .case import TABLE, WIDTH, Case
from .shapes import _Linear


class Gathered(_Linear):
    """`torch.gather` of frames by indices: a length regulator by durations"""

    def forward(self, x, ids):
        places = (ids.cumsum(1) % x.shape[1]).long()
        return torch.gather(self.linear(x), 1, places[..., None].expand(-1, -1, WIDTH))


class GatheredElements(_Linear):
    """`torch.gather` of one element for each place"""

    def forward(self, x, ids):
        scores = self.linear(x)[:, 0]
        return scores.gather(1, ids.long() % WIDTH).log_softmax(-1)


class LastFrames(_Linear):
    """the last frame of each row: `y[torch.arange(B), lengths - 1]`"""

    def forward(self, x, lengths):
        return self.linear(x)[torch.arange(x.shape[0]), lengths.long().clamp(min=1) - 1]


class Selected(_Linear):
    """`index_select`, a list of indices, a tensor of indices over time, `torch.take_along_dim`"""

    def forward(self, x):
        y = self.linear(x)
        y = y.index_select(2, torch.tensor([0, 3, 3])) + y[..., [1, 2, 1]] + y[:, torch.arange(x.shape[1] - 1, -1, -1)][..., :3]
        return torch.take_along_dim(y, y.argsort(dim=-1), dim=-1)


class Tables(Case):
    """`F.embedding` of a computed table, `table[ids]`, `one_hot(...) @ table`, `padding_idx`"""

    def __init__(self):
        super().__init__()
        self.table, self.padded, self.linear = nn.Parameter(torch.randn(TABLE, WIDTH)), nn.Embedding(TABLE, WIDTH, padding_idx=0), nn.Linear(WIDTH, WIDTH)

    def forward(self, ids):
        y = F.embedding(ids, self.linear(self.table)) + self.table[ids] + self.padded(ids)
        return y + F.one_hot(ids.long(), TABLE).float() @ self.table


class Speakers(_Linear):
    """of each row a number, for `nn.Embedding` and `gather`, and a vector: the id and the embedding of a speaker; `torch.addcmul`"""

    def __init__(self):
        super().__init__()
        self.speakers = nn.Embedding(TABLE, 2 * WIDTH)
        self.register_buffer("gains", torch.linspace(0.5, 1.5, TABLE))

    def forward(self, x, speaker, voice):
        scale, shift = self.speakers(speaker)[:, None].chunk(2, dim=-1)
        y = self.linear(x + voice[:, None]) * self.gains.gather(0, speaker.long()).view(-1, 1, 1)
        return torch.addcmul(shift, y, 1 + scale)


class Sorted(_Linear):
    """`torch.sort`, `argsort` and `gather`, descending"""

    def forward(self, x):
        y = self.linear(x)
        values, places = torch.sort(y, dim=-1, descending=True)
        return values * torch.arange(1.0, WIDTH + 1) + torch.gather(x, -1, places) + torch.sort(y, dim=1).values


class Best(_Linear):
    """`topk` with its values and indices, `argmax` and a look-up (vector quantization, straight through)"""

    def __init__(self):
        super().__init__()
        self.codes = nn.Embedding(TABLE, WIDTH)

    def forward(self, x):
        y = self.linear(x)
        distance = y.square().sum(-1, keepdim=True) - 2 * y @ self.codes.weight.T + self.codes.weight.square().sum(-1)
        nearest = self.codes(distance.argmin(-1))
        values, places = y.topk(3, dim=-1)
        return y + (nearest - y).detach() + nearest * 0.1 + values.sum(-1, keepdim=True) + places.float().mean(-1, keepdim=True)


class Warped(_Linear):
    """frames at places between frames, which are learned: `floor`, `gather` of both neighbours, `torch.lerp`"""

    def forward(self, x):
        y, n = self.linear(x), x.shape[1]
        at = (torch.arange(n) + 2 * torch.tanh(y[..., 0])).clamp(0, n - 1)
        left = at.detach().floor().long()
        frames = [y.gather(1, i[..., None].expand(-1, -1, WIDTH)) for i in (left, (left + 1).clamp(max=n - 1))]
        return torch.lerp(*frames, (at - left)[..., None])


class GridSampled(_Linear):
    """`F.grid_sample`"""

    refused = "operator aten.grid_sampler_2d_backward.default has no form"
    way_out = Warped

    def forward(self, x):
        y = self.linear(x)
        return F.grid_sample(y[:, None], torch.tanh(y[:, :, None, :2]), align_corners=False)[:, 0, :, 0]  # blamed


class ScaledTable(Case):
    """rows of a table that are shorter than a limit, scaled in `forward`"""

    def __init__(self):
        super().__init__()
        self.table = nn.Parameter(torch.randn(TABLE, WIDTH))

    def forward(self, ids):
        return F.embedding(ids, self.table * (1.5 / self.table.norm(dim=1, keepdim=True).clamp(min=1.5)))


class MaxNorm(Case):
    """`nn.Embedding` with `max_norm`, which writes into its table"""

    refused = "embedding_renorm"
    way_out = ScaledTable

    def __init__(self):
        super().__init__()
        self.table = nn.Embedding(TABLE, WIDTH, max_norm=1.5)

    def forward(self, ids):
        return self.table(ids)  # blamed


class Bucketized(Case):
    """`torch.bucketize` and an embedding: quantized pitch and energy"""

    def __init__(self):
        super().__init__()
        self.linear, self.table = nn.Linear(WIDTH, 1), nn.Embedding(9, WIDTH)
        self.register_buffer("bins", torch.linspace(-2, 2, 8))

    def forward(self, x):
        pitch = self.linear(x)
        return self.table(torch.bucketize(pitch.squeeze(-1), self.bins)) + pitch


class Counted(_Linear):
    """`scatter_add` of a known shape, `index_add`, `scatter` of a number"""

    def forward(self, x, speaker, lengths):
        y, speaker = self.linear(x).sum(1), torch.where(lengths > 0, speaker, 0)
        sums = torch.zeros(TABLE, WIDTH).index_add(0, speaker, y)
        by_class = x.new_zeros(x.shape[0], TABLE).scatter_add(1, speaker[:, None].long().expand(-1, WIDTH), y)
        chosen = x.new_zeros(x.shape[0], TABLE).scatter(1, speaker[:, None].long(), 1.0)
        return (sums[speaker] + (by_class * chosen).sum(1, keepdim=True)) * 0.1


class Expanded(Case):
    """durations to frames without `repeat_interleave`: cumulative sums, compared with positions, as a matrix"""

    def __init__(self):
        super().__init__()
        self.table = nn.Embedding(TABLE, WIDTH)

    def forward(self, x, ids):
        ends = (ids % 3).cumsum(1)
        t = torch.arange(x.shape[1])[None, :, None]
        path = (t < ends[:, None]) & (t >= (ends - ids % 3)[:, None])
        return path.float() @ self.table(ids) + x


class RepeatedByDurations(Case):
    """durations by `repeat_interleave` of a tensor"""

    refused = "as many elements as the values decide"
    way_out = Expanded

    def __init__(self):
        super().__init__()
        self.table = nn.Embedding(TABLE, WIDTH)

    def forward(self, ids):
        return self.table(torch.repeat_interleave(ids[0], ids[0] % 3))[None] + self.table(ids[:, :1])  # blamed
