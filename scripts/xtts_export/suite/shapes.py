"""Shapes"""

import torch
import torch.nn.functional as F
from torch import nn

from .case import TABLE, WIDTH, Case


class _Linear(Case):
    def __init__(self):
        super().__init__()
        self.linear = nn.Linear(WIDTH, WIDTH)


class Joined(Case):
    """`torch.cat` of text and frames over time, then a linear layer; `split` with sizes"""

    def __init__(self):
        super().__init__()
        self.table, self.linear = nn.Embedding(TABLE, WIDTH), nn.Linear(WIDTH, WIDTH)

    def forward(self, x, ids):
        y = self.linear(torch.cat([self.table(ids), x], dim=1))
        text, frames = y.split([ids.shape[1], x.shape[1]], dim=1)
        return frames * text.mean(1, keepdim=True)


class Flattened(_Linear):
    """`reshape(-1, d)`, `view(B, -1)`, `flatten`, `unflatten`"""

    def forward(self, x):
        y = self.linear(x.reshape(-1, WIDTH)).view(x.size(0), -1)
        y = y.unflatten(1, (-1, WIDTH)).flatten(0, 1).reshape(x.shape[0], x.shape[1], 2, -1)
        return self.linear(y.flatten(start_dim=2))


class Heads(_Linear):
    """`view(B, -1, h, d)`, `permute`, `contiguous().view(B, T, -1)`, `transpose`"""

    def forward(self, x):
        b, t, d = x.size()
        y = self.linear(x).view(b, -1, 2, d // 2).permute(0, 2, 1, 3)
        return y.transpose(1, 2).contiguous().view(b, t, -1) + y.reshape(b * 2, t, -1).sum(-1).view(b, 2, t).mean(1)[..., None]


class Pieces(_Linear):
    """`chunk`, `split`, `unbind`, `stack`, `tensor_split`, `*` over a tensor's rows"""

    def forward(self, x):
        a, b = self.linear(x).chunk(2, -1)
        c, d = torch.split(a, 2, dim=-1)
        e = torch.stack([c, d], dim=2).unbind(dim=2)
        return torch.cat([*e, *torch.tensor_split(b, 2, dim=-1)], dim=-1)


class Shuffle(_Linear):
    """pixel shuffle over time: `view`, `permute`, `reshape` to twice the length and back"""

    def forward(self, x):
        b, t, d = x.shape
        y = self.linear(x).view(b, t, 2, d // 2).reshape(b, 2 * t, d // 2)
        return y.reshape(b, t, 2, -1).permute(0, 1, 3, 2).reshape(b, t, d)


class Repeated(_Linear):
    """`expand`, `repeat`, `repeat_interleave` by a number, `tile`, `expand_as`"""

    def forward(self, x):
        y = self.linear(x).repeat_interleave(2, dim=1) + x.repeat(1, 2, 1) + torch.tile(x, (1, 2, 1))
        return y + x.mean(1, keepdim=True).expand(-1, y.size(1), -1) + x[:, :1].expand_as(y)


class Turned(_Linear):
    """`flip`, `roll`, `movedim`, `swapaxes`, `T`, `mT`"""

    def forward(self, x):
        y = torch.roll(self.linear(x), 1, dims=1).flip(1) + torch.roll(x, shifts=(-2, 1), dims=(1, 2))
        return y.movedim(1, 2).swapaxes(1, 2) + y.mT.mT @ self.linear.weight.T


class Windows(_Linear):
    """`unfold` over time: overlapping windows"""

    def forward(self, x):
        y = self.linear(x)
        return y.unfold(1, 3, 2).flatten(2) * 0.5 + F.pad(y, (0, 0, 1, 1)).unfold(1, 3, 1).mean(-1)[:, :1].repeat(1, 1, 3)


class Squeezed(_Linear):
    """`squeeze`, `unsqueeze`, `None` and `...` in indices, negative steps of `range`"""

    def forward(self, x):
        y = self.linear(x).unsqueeze(1).squeeze(1)[:, None, ...].squeeze()
        return y.view(x.shape) + x[..., None, :].squeeze(-2)[:, :, [7, 6, 5, 4, 3, 2, 1, 0]]


class Cut(_Linear):
    """slices of dynamic lengths: `x[:, 1:]`, `x[:, :-1]`, `x[:, ::2]`, `x[:, -1]`, `narrow`, `select`"""

    def forward(self, x):
        y = self.linear(x)
        difference = y[:, 1:] - y[:, :-1]
        return difference.sum(1) + y[:, ::2].sum(1) + y[:, -1] + y.select(1, 0) + y.narrow(1, 1, x.shape[1] - 2).sum(1)


class Broadcast(_Linear):
    """broadcasting of [B, T, 1, D] and [B, 1, N, D], `torch.broadcast_to`, `cdist` by hand"""

    def forward(self, x, ids):
        y = self.linear(x)[:, :, None] - ids[:, None, :, None] * 0.1
        return torch.exp(-y.square().sum(-1)) @ torch.broadcast_to(ids[..., None].float(), (*ids.shape, WIDTH))


class Einsum(_Linear):
    """`einsum`, `matmul`, `bmm`, `outer`, `tensordot`, `baddbmm`"""

    def forward(self, x):
        y = torch.einsum("btd,de->bte", self.linear(x), self.linear.weight) + torch.einsum("...d,d->...", x, self.linear.bias)[..., None]
        z = torch.bmm(y, x.transpose(1, 2)).matmul(y) + torch.tensordot(y, self.linear.weight, dims=([2], [1]))
        return torch.baddbmm(z, y.transpose(1, 2).mT, self.linear.weight.expand(x.size(0), -1, -1), beta=0.5) + torch.outer(self.linear.bias, self.linear.bias)[0]


class Types(Case):
    """type promotion: integers with numbers, `float64` that returns to `float32`, `bool * float`, `type_as`, `half` masks"""

    def __init__(self):
        super().__init__()
        self.linear = nn.Linear(WIDTH, WIDTH)

    def forward(self, x, lengths, ids):
        y = self.linear(x) * (x > 0) * (x < 1).half() + lengths[:, None, None] / 7 + (ids.sum(1) // 2)[:, None, None] * 0.1
        return (y.double() + 1).float() + lengths.to(torch.int64).type_as(x)[:, None, None] + (ids[:, :1, None] % 3)


class Rounded(_Linear):
    """rounding to `float16` or `bfloat16` and back: `y.half().float()`"""

    # Where a sum is rounded in another order, a half float may be another one.
    tolerance = 1e-3

    def forward(self, x):
        y = self.linear(x)
        return y.half().transpose(1, 2).float().mT + torch.cat([x, y.half()], 1)[:, :x.shape[1]] + y.bfloat16().mT.float().mT


class Halves(_Linear):
    """arithmetic in `float16` or `bfloat16`"""

    refused = "computes in float16"
    way_out = Rounded

    def forward(self, x):
        y = self.linear(x).half()
        return (y * 1.1 + 0.3).float()  # blamed


class Meshes(_Linear):
    """`torch.meshgrid`, `linspace`, `full`, `ones_like`, `new_tensor`, `torch.tensor` in `forward`"""

    def forward(self, x):
        rows, columns = torch.meshgrid(torch.arange(x.shape[1]).float(), torch.linspace(0, 1, WIDTH), indexing="ij")
        return self.linear(x) * torch.sin(rows * columns) + torch.full((WIDTH,), 0.5) + torch.ones_like(x) * x.new_tensor([0.25] * WIDTH)


class FloatOfSize(_Linear):
    """`float(x.shape[1])`, which is a number of the example"""

    refused = "dimension T was baked in"
    way_out = Meshes

    def forward(self, x):
        return self.linear(x) / float(x.shape[1])  # blamed
