"""Values that would choose sizes and branches"""

import torch
from torch import nn

from .case import WIDTH, Case
from .masks import LengthMasks, MaskedMean
from .recurrences import OwnRecurrence
from .shapes import Flattened, _Linear


class Chosen(_Linear):
    """a choice by a value: `torch.where(x.mean() > 0, a, b)`"""

    def forward(self, x):
        y = self.linear(x)
        return torch.where(x.mean((1, 2), keepdim=True) > 0, y * 2, y)


class Branch(_Linear):
    """`if x.mean() > 0`"""

    refused = "the value of a tensor chooses a branch"
    way_out = Chosen

    def forward(self, x):
        y = self.linear(x)
        return y * 2 if x.mean() > 0 else y  # blamed


class Check(_Linear):
    """a check of values: `assert (lengths >= 0).all()`"""

    refused = "the value of a tensor chooses a branch"
    way_out = Chosen

    def forward(self, x, lengths):
        assert (lengths >= 0).all()  # blamed
        return self.linear(x)


class LongestRow(_Linear):
    """`y[:, :lengths.max()]`"""

    refused = "the value of a tensor chooses a size"
    way_out = LengthMasks

    def forward(self, x, lengths):
        return self.linear(x)[:, :lengths.max()]  # blamed


class EachRow(_Linear):
    """a Python loop over rows and their lengths"""

    refused = "chooses a size"
    way_out = MaskedMean

    def forward(self, x, lengths):
        return torch.stack([row[:n].mean(0) for row, n in zip(self.linear(x), lengths)])  # blamed


class FixedBatch(_Linear):
    """`reshape` with a number of the example: `y.reshape(3, -1)`"""

    refused = "dimension B was baked in by reshape"
    way_out = Flattened

    def forward(self, x):
        return self.linear(x).reshape(3, -1)  # blamed


class Convolved(_Linear):
    """a recurrence as a weighted sum over the past: a lower triangle of [T, T]"""

    def forward(self, x):
        t = torch.arange(x.shape[1])
        decay = torch.where(t[:, None] >= t[None], 0.9 ** (t[:, None] - t[None]).clamp(min=0), 0.0)
        return decay @ self.linear(x)


class Loop(_Linear):
    """a Python loop over time"""

    refused = "dimension T was baked in"
    way_out = OwnRecurrence

    def forward(self, x):
        state, states = torch.zeros(WIDTH), []
        for t in range(x.shape[1]):  # blamed
            state = 0.9 * state + self.linear(x[:, t])
            states.append(state)
        return torch.stack(states, dim=1)


class Numpy(_Linear):
    """NumPy in `forward`"""

    refused = ".numpy() is not supported"
    way_out = Chosen

    def forward(self, x):
        return self.linear(x) + torch.from_numpy(x.numpy())  # blamed


class UnusedParameter(_Linear):
    """a parameter that the loss does not depend on, frozen"""

    def __init__(self):
        super().__init__()
        self.rest = nn.Linear(2, 2).requires_grad_(False)

    def forward(self, x):
        return self.linear(x)
