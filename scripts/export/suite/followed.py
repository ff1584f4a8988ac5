"""Hints that are followed: of each pair, the first function is refused where it is called, and the second one is what the
hint says.

They are not on the page of what is exported: most are mistakes in an argument. All that hints say is one module.
"""

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from .case import WIDTH, Case

PAIRS: dict[str, tuple] = {}


class Followed(Case):
    """What the hints of PAIRS say."""

    def __init__(self):
        super().__init__()
        self.linear, self.kernel = nn.Linear(WIDTH, WIDTH), nn.Conv1d(WIDTH, 2, 3)

    def forward(self, x, lengths):
        y = self.linear(x)
        total = sum(good(self, y, lengths).flatten(1).sum(1) for _, good, _ in PAIRS.values())
        return y + 0.01 * total[:, None, None]


class Refused(Followed):
    """What they are the hints for."""

    def __init__(self, name: str):
        super().__init__()
        self.way = PAIRS[name][0]

    def forward(self, x, lengths):
        y = self.linear(x)
        return y + self.way(self, y, lengths).sum() + 0 * self.kernel(y.mT).sum()


def _packed(y: Tensor, lengths: object) -> Tensor:
    packed = nn.utils.rnn.pack_padded_sequence(y, lengths, batch_first=True, enforce_sorted=False)
    return nn.utils.rnn.pad_packed_sequence(packed, batch_first=True, total_length=y.shape[1])[0]


# The name: (refused, followed, part of the refusal). The functions get the case, y[B, T, WIDTH] and lengths[B].
PAIRS |= {
    "real": (lambda m, y, n: torch.complex(y, y).float(), lambda m, y, n: torch.complex(y, y).real, "complex numbers become real"),
    "pairs": (lambda m, y, n: torch.view_as_complex(y.unflatten(-1, (2, -1))).real,
              lambda m, y, n: torch.view_as_complex(y.unflatten(-1, (-1, 2))).real, "view_as_complex of a last axis of"),
    "channels": (lambda m, y, n: m.kernel(y.transpose(1, 2)[:, 1:]), lambda m, y, n: m.kernel(y.transpose(1, 2)),
                 "a convolution of 8 channels gets 7"),
    "indices": (lambda m, y, n: F.max_pool1d(y.mT, 2, return_indices=True)[0], lambda m, y, n: F.max_pool1d(y.mT, 2),
                "returns indices"),
    "reflect": (lambda m, y, n: F.pad(y, (9, 0), mode="reflect"), lambda m, y, n: F.pad(y, (7, 0), mode="reflect"),
                "F.pad adds 9"),
    "bicubic": (lambda m, y, n: F.interpolate(y[:, None], scale_factor=2.0, mode="bicubic"),
                lambda m, y, n: F.interpolate(y[:, None], scale_factor=2.0, mode="bilinear"), "has the mode 'bicubic'"),
    "norm": (lambda m, y, n: torch.fft.rfft(y, norm="both").real, lambda m, y, n: torch.fft.rfft(y, norm="ortho").real,
             "a Fourier transform has the norm"),
    "kaiser": (lambda m, y, n: torch.kaiser_window(y.shape[1])[:, None] * y,
               lambda m, y, n: torch.hann_window(y.shape[1])[:, None] * y, "kaiser_window has a dynamic length"),
    "packed": (lambda m, y, n: _packed(y, [3, 2, 1]), lambda m, y, n: _packed(y, n), "lengths that are no tensor"),
}
