"""Checkpointing, hooks and gradients of gradients"""

import torch
from torch import nn
from torch.utils.checkpoint import checkpoint, checkpoint_sequential

from .case import TABLE, WIDTH, Case
from .shapes import _Linear


class _Block(nn.Module):
    def __init__(self):
        super().__init__()
        self.first, self.second = nn.Linear(WIDTH, WIDTH), nn.Linear(WIDTH, WIDTH)
        self.dropout, self.later = nn.Dropout(0.2), nn.Dropout(0.1)

    def forward(self, x):
        return x + self.later(self.second(self.dropout(torch.tanh(self.first(x)))))


class Checkpointed(Case):
    """`torch.utils.checkpoint.checkpoint` of blocks with dropout, `use_reentrant=False` and `True`, and `checkpoint_sequential`: a graph keeps what it would compute twice"""

    draws = True

    def __init__(self):
        super().__init__()
        self.linear, self.blocks = nn.Linear(WIDTH, WIDTH), nn.ModuleList(_Block() for _ in range(4))

    def forward(self, x):
        y = checkpoint(self.blocks[0], self.linear(x), use_reentrant=False)
        y = checkpoint(self.blocks[1], y, use_reentrant=True)
        return checkpoint_sequential(list(self.blocks[2:]), 2, y, use_reentrant=False)


class HookedParameters(Case):
    """hooks of parameters: `emb.weight.register_hook(lambda g: g * mask)`, as new tokens alone are trained; `register_post_accumulate_grad_hook` that changes `p.grad`"""

    def __init__(self):
        super().__init__()
        self.table, self.linear = nn.Embedding(TABLE, WIDTH), nn.Linear(WIDTH, WIDTH)
        new = (torch.arange(TABLE) >= 5).float()[:, None]
        self.table.weight.register_hook(lambda g: g * new)
        self.linear.weight.register_post_accumulate_grad_hook(self.pull)

    @staticmethod
    def pull(p):
        p.grad.mul_(0.5).add_(p, alpha=0.01)

    def forward(self, ids):
        return self.linear(self.table(ids))


class HookedResults(_Linear):
    """hooks of results: `y.register_hook(lambda g: g.clamp(-a, a))`, `retain_grad`, `register_full_backward_hook` of a layer"""

    def __init__(self):
        super().__init__()
        self.second = nn.Linear(WIDTH, WIDTH)
        self.second.register_full_backward_hook(lambda module, given, taken: (given[0] * 0.5,))

    def forward(self, x):
        y = self.linear(x)
        y.register_hook(lambda g: g.clamp(-1e-3, 1e-3))
        y.retain_grad()
        return self.second(torch.tanh(y))


class SteppingHook(_Linear):
    """a hook that is the optimizer: it updates the parameter and takes its gradient away"""

    refused = "writes into linear.weight, which outlives the step"
    way_out = HookedParameters

    def __init__(self):
        super().__init__()
        self.linear.weight.register_post_accumulate_grad_hook(self.step)

    @staticmethod
    def step(p):
        p.data.add_(p.grad, alpha=-0.1)  # blamed
        p.grad = None

    def forward(self, x):
        return self.linear(x)


class TakenGradient(_Linear):
    """a hook that takes the gradient away, `p.grad = None`, for an optimizer of its own"""

    refused = "a hook of the accumulated gradient updates the parameter or takes its gradient away"
    way_out = HookedParameters

    def __init__(self):
        super().__init__()
        self.seen = {}
        self.linear.weight.register_post_accumulate_grad_hook(self.take)

    def take(self, p):  # blamed
        self.seen["norm"] = p.grad.norm()
        p.grad = None

    def forward(self, x):
        return self.linear(x)
