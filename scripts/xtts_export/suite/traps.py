"""Modules drawn at random: everyday parts, and at most one trap, which a tracer could step into silently.

A trap says what the refusal must say, or that the graph is equal to PyTorch.
"""

import os
import random
import time

import numpy as np
import torch
import torch.nn.functional as F
from torch import nn

from .case import WIDTH, Case

SHARED = nn.Linear(WIDTH, WIDTH)


class Part(nn.Module):
    """Something from [B, T, WIDTH] to [B, T, WIDTH], as residual parts are. A trap is one, too."""

    # Of a trap: a part of the refusal's message, or None where the graph must be equal.
    refused: str | None = None
    # Whether it may be exported as well, if the graph is equal.
    either = False

    def __init__(self):
        super().__init__()
        self.linear = nn.Linear(WIDTH, WIDTH)

    def loss(self, y, mask, rows):
        """A mean over frames, and its weight. The mean square of what a norm returns would always be 1."""
        errors = (y - torch.cos(torch.arange(WIDTH))).square().mean(-1)
        return (errors * mask).sum() / mask.sum().clamp(min=1), mask.sum()


class Feed(Part):
    def forward(self, x, mask):
        return x + F.gelu(self.linear(x))


class Conv(Part):
    def __init__(self):
        super().__init__()
        self.conv = nn.Conv1d(WIDTH, WIDTH, 3, padding=1)

    def forward(self, x, mask):
        return self.linear(x) + torch.tanh(self.conv((x * mask[..., None]).mT).mT)


class Norm(Part):
    def __init__(self):
        super().__init__()
        self.norm = nn.LayerNorm(WIDTH)

    def forward(self, x, mask):
        return self.norm(self.linear(x))


class Attention(Part):
    def forward(self, x, mask):
        scores = self.linear(x) @ x.mT * WIDTH**-0.5 - 1e9 * (1 - mask)[:, None]
        return x + scores.softmax(-1) @ x


class Recurrent(Part):
    def __init__(self):
        super().__init__()
        self.gru = nn.GRU(WIDTH, WIDTH, batch_first=True)

    def forward(self, x, mask):
        return x + self.gru(self.linear(x))[0]


class Gate(Part):
    def forward(self, x, mask):
        return x * torch.sigmoid(self.linear(x))


class Mean(Part):
    def forward(self, x, mask):
        mean = (x * mask[..., None]).sum(1) / mask.sum(1, keepdim=True).clamp(min=1)
        return x + self.linear(mean)[:, None]


PARTS = [Feed, Conv, Norm, Attention, Recurrent, Gate, Mean]


class PythonsRandom(Part):
    refused = "Python's random is drawn from"

    def forward(self, x, mask):
        return x + self.linear(x) if random.random() > 1e-9 else x


class NumPysRandom(Part):
    refused = "NumPy's random is drawn from"

    def forward(self, x, mask):
        return x + self.linear(x) if np.random.random() > 1e-9 else x


class OwnGenerator(Part):
    refused = "the generator"

    def __init__(self):
        super().__init__()
        self.draws = np.random.default_rng(0)

    def forward(self, x, mask):
        return x + self.linear(x) if self.draws.random() > 1e-9 else x


class FreshGenerator(Part):
    refused = "np.random.default_rng"

    def forward(self, x, mask):
        return x + self.linear(x) if np.random.default_rng().random() > 1e-9 else x


class Entropy(Part):
    refused = "os.urandom"

    def forward(self, x, mask):
        return x + self.linear(x) * (1 + os.urandom(1)[0] * 1e-9)


class Seeds(Part):
    refused = "PyTorch's generator is drawn from or set"

    def forward(self, x, mask):
        torch.manual_seed(1)
        return self.linear(x) + torch.randn(WIDTH)


class Order(Part):
    refused = "draws random numbers from a state"

    def forward(self, x, mask):
        return self.linear(x)[..., torch.randperm(WIDTH)]


class Clock(Part):
    refused = "forward returns something else for the same batch"

    def forward(self, x, mask):
        return self.linear(x) * (1 + time.time() % 3)


class Counter(Part):
    refused = "forward changes"

    def __init__(self):
        super().__init__()
        self.calls = 0

    def forward(self, x, mask):
        self.calls += 1
        return self.linear(x) if self.calls % 100 else x


class Average(Part):
    refused = "which outlives the step"

    def __init__(self):
        super().__init__()
        self.mean = torch.zeros(WIDTH)

    def forward(self, x, mask):
        self.mean = 0.9 * self.mean + 0.1 * x.detach().mean((0, 1))
        return self.linear(x) - self.mean


class Captured(Part):
    refused = "requires a gradient and is no parameter"

    def forward(self, x, mask):
        return self.linear(x)

    def loss(self, y, mask, rows):
        return super().loss(SHARED(y), mask, rows)


class CapturedTensor(Part):
    refused = "requires a gradient and is no parameter"

    def __init__(self):
        super().__init__()
        self.scales = [torch.ones(WIDTH, requires_grad=True)]

    def forward(self, x, mask):
        return self.linear(x) * self.scales[0]


class RowMean(Part):
    refused = "an empty row counts"

    def forward(self, x, mask):
        return self.linear(x)

    def loss(self, y, mask, rows):
        return ((y.square().mean(-1) * mask).sum(1) / mask.sum(1).clamp(min=1)).mean(), rows.sum()


class MaskedMean(Part):
    refused = "an empty row counts"

    def forward(self, x, mask):
        return self.linear(x)

    def loss(self, y, mask, rows):
        return (y.square().mean(-1) * mask).mean(), mask.sum()


class WeightOfRows(Part):
    refused = "loss_weight does not count"

    def forward(self, x, mask):
        return self.linear(x)

    def loss(self, y, mask, rows):
        return super().loss(y, mask, rows)[0], rows.sum()


class Numbered(Part):
    refused = "in another order"

    def forward(self, x, mask):
        return self.linear(x)

    def loss(self, y, mask, rows):
        return super().loss(y, mask * (mask.amax(1).cumsum(0) * rows)[:, None] / 2, rows)[0], mask.sum()


class Branch(Part):
    refused = "the value of a tensor chooses a branch"

    def forward(self, x, mask):
        return self.linear(x) if x.mean() > -1e9 else x


class Item(Part):
    refused = "the value of a tensor becomes a number"
    either = True

    def forward(self, x, mask):
        return self.linear(x) * x.abs().max().item()


class Loop(Part):
    refused = "T was baked in"

    def forward(self, x, mask):
        state, states = x[:, 0], []
        for t in range(x.shape[1]):
            state = torch.tanh(self.linear(state) + x[:, t])
            states.append(state)
        return torch.stack(states, 1)


class Running(Part):
    refused = "has no form in plain ONNX"

    def forward(self, x, mask):
        return torch.cummax(self.linear(x), 1).values


class OwnWrite(Part):
    refused = "which outlives the step"

    def forward(self, x, mask):
        with torch.no_grad():
            self.linear.weight.clamp_(-0.3, 0.3)
        return self.linear(x)


class Lengths(Part):
    refused = "is NaN"

    def forward(self, x, mask):
        return x + self.linear((x * mask[..., None]).sum(1) / mask.sum(1, keepdim=True))[:, None]


class Training(Part):
    def forward(self, x, mask):
        return self.linear(x) * (0.5 if self.training else 1)


class InPlace(Part):
    def __init__(self):
        super().__init__()
        self.drop = nn.Dropout(0.5, inplace=True)

    def forward(self, x, mask):
        y = self.linear(x)
        self.drop(y)
        F.leaky_relu_(y, 0.3)
        return y


class SliceWrite(Part):
    def forward(self, x, mask):
        y = self.linear(x)
        y[:, 0] = 0
        y[..., ::2] += x[..., ::2]
        return y


class MaskedWrite(Part):
    def forward(self, x, mask):
        y = self.linear(x)
        y[mask == 0] = 0.5
        y[y < -1] = -1
        return y


class ViewWrite(Part):
    def forward(self, x, mask):
        y = self.linear(x).contiguous()
        y.view(y.shape[0], -1, 2).mul_(2)
        y[..., 0].add_(1)
        return y


class Table(Part):
    def __init__(self):
        super().__init__()
        self.table = None

    def forward(self, x, mask):
        if self.table is None or len(self.table) < x.shape[1]:
            self.table = torch.arange(x.shape[1]).cos()[:, None]
        return self.linear(x) + self.table[:x.shape[1]]


class MaskedQueries(Part):
    def forward(self, x, mask):
        seen = mask[:, None, :, None] * mask[:, None, None, :] > 0
        return x + F.scaled_dot_product_attention(self.linear(x)[:, None], x[:, None], x[:, None], attn_mask=seen)[:, 0]


class Equal(Part):
    def forward(self, x, mask):
        y = self.linear(x)
        return torch.maximum(y, y) + torch.stack([y, y]).amax(0) + torch.relu(y * 0)


class Double(Part):
    def forward(self, x, mask):
        return (self.linear(x).double() * 0.1).cumsum(1).tanh().float()


class GradientHook(Part):
    def forward(self, x, mask):
        y = self.linear(x)
        if y.requires_grad:
            y.register_hook(lambda g: g * 0.25)
        return y


class Detached(Part):
    def forward(self, x, mask):
        y = self.linear(x)
        return y + (y.round() - y).detach()


TRAPS = [c for c in list(globals().values()) if isinstance(c, type) and issubclass(c, Part) and c not in (Part, *PARTS)]


class Drawn(Case):
    def __init__(self, seed: int, trap: type[Part] | None = None):
        super().__init__()
        torch.manual_seed(seed)
        draw = random.Random(seed)
        parts = [part() for part in draw.choices(PARTS, k=draw.randint(1, 3))]
        self.trap = trap and trap()
        if trap:
            parts.insert(draw.randint(0, len(parts)), self.trap)
        self.parts = nn.ModuleList(parts)

    def forward(self, x, lengths):
        mask = (torch.arange(x.shape[1])[None, :] < lengths[:, None]).float()
        for part in self.parts:
            x = part(x, mask)
        return x

    def loss(self, y, batch):
        mask = (torch.arange(y.shape[1])[None, :] < batch["lengths"][:, None]).float()
        loss, weight = (self.trap or self.parts[0]).loss(y - 0.3, mask, (batch["lengths"] > 0).float())
        return {"loss": loss, "loss_weight": weight}
