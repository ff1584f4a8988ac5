"""Alignment of text and frames"""

import torch
from torch import nn

from .case import TABLE, WIDTH, Case
from .recurrences import MonotonicAlignment


class _Aligned(Case):
    def __init__(self):
        super().__init__()
        self.embedding, self.linear = nn.Embedding(TABLE, WIDTH), nn.Linear(WIDTH, WIDTH)

    def scores(self, x, ids, id_lengths):
        """[B, T, N]: minus the distance of each frame from each symbol."""
        text = self.embedding(ids)
        distance = (self.linear(x)[:, :, None] - text[:, None]).square().sum(-1)
        return text, -0.1 * distance - 1e9 * (torch.arange(ids.shape[1])[None, None, :] >= id_lengths[:, None, None])


class SoftAlignment(_Aligned):
    """an alignment that is learned: a softmax of distances over the text, with a prior near the diagonal; durations are its sums over the frames"""

    def forward(self, x, ids, lengths, id_lengths):
        text, scores = self.scores(x, ids, id_lengths)
        frame = (torch.arange(x.shape[1]) + 0.5)[None, :, None] / lengths.clamp(min=1)[:, None, None]
        symbol = (torch.arange(ids.shape[1]) + 0.5)[None, None, :] / id_lengths.clamp(min=1)[:, None, None]
        soft = torch.softmax(scores - 8.0 * (frame - symbol).square(), -1)
        valid = (torch.arange(x.shape[1])[None, :] < lengths[:, None]).float()[..., None]
        durations = (soft * valid).sum(1)
        return soft @ text + 0.01 * durations.sum(-1)[:, None, None]


class MonotonicSearch(_Aligned):
    """monotonic alignment search in NumPy, as Glow-TTS and VITS have it"""

    refused = ".numpy() is not supported"
    way_out = MonotonicAlignment

    def forward(self, x, ids, id_lengths):
        text, scores = self.scores(x, ids, id_lengths)
        best = scores.detach().cpu().numpy()  # blamed
        for t in range(1, best.shape[1]):
            best[:, t, 1:] += best[:, t - 1, 1:].clip(best[:, t - 1, :-1])
        return torch.from_numpy(best == best.max(-1, keepdims=True)).float() @ text
