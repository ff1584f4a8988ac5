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


class _Penalized(Case):
    """The gradient of what score returns with respect to x, whose norm should be 1."""

    def penalty(self, x):
        x = x.detach().requires_grad_()
        [slope] = torch.autograd.grad(self.score(x).sum(), x, create_graph=True)
        return ((slope.flatten(1).square().sum(1) + 1e-6).sqrt() - 1).square() + self.score(x).reshape(x.shape[0], -1).mean(1)


class Penalty(_Penalized):
    """gradient penalties (R1, WGAN-GP): `torch.autograd.grad(score, x, create_graph=True)` over `Conv1d`, `Conv2d`, `leaky_relu`, `LayerNorm`, `GroupNorm`, linear layers, `weight_norm` and `spectral_norm`"""

    def __init__(self):
        super().__init__()
        parametrizations = nn.utils.parametrizations
        self.frames = nn.Sequential(parametrizations.weight_norm(nn.Conv1d(WIDTH, 6, 5, stride=2, padding=2)), nn.GroupNorm(2, 6), nn.LeakyReLU(0.2),
                                    nn.Conv1d(6, 1, 3, padding=1))
        self.maps = nn.Sequential(nn.Conv2d(1, 2, (3, 5), padding=(1, 2)), nn.LeakyReLU(0.2), nn.Conv2d(2, 1, 1, bias=False))
        self.flat = nn.Sequential(parametrizations.spectral_norm(nn.Linear(WIDTH, 8)), nn.LayerNorm(8), nn.SiLU(), nn.Linear(8, 1))

    def score(self, x):
        return self.frames(x.mT).mean((1, 2)) + self.maps(x[:, None]).mean((1, 2, 3)) + self.flat(x).mean((1, 2))

    def forward(self, x):
        return self.penalty(x)[:, None, None]


class FunctionalGradients(_Linear):
    """`torch.func.grad`, `grad_and_value`, `vjp` and `jvp` of functions of layers, `torch.func.functional_call`, `torch.vmap`"""

    def forward(self, x, lengths):
        y = self.linear(x) * (lengths > 0)[:, None, None]
        slope = torch.func.grad(lambda z: torch.tanh(self.linear(z)).square().sum())(y)
        by_weight, value = torch.func.grad_and_value(
            lambda given: (torch.func.functional_call(self.linear, given, (y,)).square().mean((1, 2)) * (lengths > 0)).sum())(dict(self.linear.named_parameters()))
        result, pull = torch.func.vjp(lambda z: torch.tanh(self.linear(z)), y)
        _, forward = torch.func.jvp(torch.tanh, (y,), (torch.ones_like(y),))
        return slope + by_weight["weight"].sum(0) + value + pull(torch.cos(result))[0] + forward + torch.vmap(self.linear)(x)


class RecurrentPenalty(_Penalized):
    """a gradient penalty over `nn.GRU`, `nn.LSTM`, `nn.RNN` or `xtts_export.scan`"""

    refused = "a recurrence has no gradient of its gradient in a graph"
    way_out = Penalty

    def __init__(self):
        super().__init__()
        self.layer = nn.GRU(WIDTH, 4, batch_first=True)

    def score(self, x):
        return self.layer(x)[0]  # blamed

    def forward(self, x):
        return self.penalty(x)[:, None, None]
