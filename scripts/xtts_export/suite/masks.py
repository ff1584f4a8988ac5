"""Masks and writes in place"""

import torch
import torch.nn.functional as F
from torch import nn

from .case import WIDTH, Case


class _Linear(Case):
    def __init__(self):
        super().__init__()
        self.linear = nn.Linear(WIDTH, WIDTH)


class LengthMasks(_Linear):
    """masks from lengths: `arange < lengths[:, None]`, `ge`, `expand`, `unsqueeze(1).unsqueeze(-1)`, `~`, `&`, `|`"""

    def forward(self, x, lengths):
        t = torch.arange(x.size(1), device=x.device)
        inside = t.expand(x.size(0), x.size(1)) < lengths.unsqueeze(1)
        late = t.unsqueeze(0).ge(lengths.unsqueeze(-1) // 2)
        y = self.linear(x) * inside.unsqueeze(-1).type_as(x)
        return y.masked_fill((~inside | late & inside).unsqueeze(-1), 0.5)


class RowsByLen(Case):
    """masks of `len(lengths)` rows, as SpeechBrain has them: `torch.arange(n).expand(len(lengths), n) < lengths.unsqueeze(1)`"""

    def __init__(self):
        super().__init__()
        self.linear = nn.Linear(WIDTH, WIDTH)

    def forward(self, x, lengths):
        n = x.shape[1]
        mask = torch.as_tensor(torch.arange(n, dtype=lengths.dtype).expand(len(lengths), n) < lengths.unsqueeze(1), dtype=x.dtype)
        return self.linear(x) * mask.view(len(x), -1, 1)


class MaskedMean(_Linear):
    """a mean over the frames of each row, `expand_as`, division by `clamp(min=1)`"""

    def forward(self, x, lengths):
        mask = (torch.arange(x.size(1))[None] < lengths[:, None])[..., None]
        pooled = (self.linear(x) * mask).sum(1) / lengths.clamp(min=1)[:, None]
        return x * pooled[:, None].expand_as(x)


class SliceWrites(_Linear):
    """writes to slices of a result: `y[:, 0] = 0`, `y[:, 1:] += x[:, :-1]`, `y[..., ::2] = ...`"""

    def forward(self, x):
        y = self.linear(x).clone()
        y[:, 0] = 0
        y[:, 1:] += x[:, :-1]
        y[..., ::2] = y[..., 1::2] * 2
        y[:, -1, :3] = 1.0
        return y


class ColumnWrites(_Linear):
    """`zeros_like` or `new_zeros` that is filled slice by slice"""

    def forward(self, x):
        y, z = torch.zeros_like(x), x.new_zeros(x.size(0), x.size(1), 2 * WIDTH)
        y[:, :, 0::2], y[:, :, 1::2] = torch.sin(x[:, :, 0::2]), self.linear(x)[:, :, 1::2]
        z[:, :, :WIDTH] = y
        z[:, :, WIDTH:] = self.linear(y)
        return z


class MaskWrites(_Linear):
    """masked writes: `y[mask] = 0`, `y[y < 0] = -1`, `y[mask] = vector`"""

    def forward(self, x, lengths):
        y = self.linear(x).clone()
        y[torch.arange(x.shape[1])[None] >= lengths[:, None]] = 0
        y[y < -0.5] = -1
        y[lengths > 12, 1:] = torch.arange(float(WIDTH))
        return y


class MaskIndex(_Linear):
    """reading by a mask: `y[mask].sum()`"""

    refused = "as many elements as the values decide"
    way_out = MaskedMean

    def forward(self, x, lengths):
        mask = torch.arange(x.shape[1])[None] < lengths[:, None]
        inside = self.linear(x)[mask]  # blamed
        return {"loss": inside.square().sum() / mask.sum().clamp(min=1), "loss_weight": mask.sum().float()}


class InPlaceOperators(_Linear):
    """in-place operators on results: `relu_`, `mul_`, `add_`, `+=`, `masked_fill_`, `clamp_`"""

    def forward(self, x, lengths):
        y = F.leaky_relu(self.linear(x).add_(x).mul_(2), 0.1, inplace=True) * 3
        y += 1
        y.masked_fill_((torch.arange(x.shape[1])[None] >= lengths[:, None])[..., None], 0.0)
        return y.transpose(1, 2).div_(2)


class ClampedParameter(_Linear):
    """a bound on a parameter, computed in `forward`"""

    def forward(self, x):
        return F.linear(x, self.linear.weight.clamp(-0.3, 0.3), self.linear.bias)


class WriteIntoParameter(_Linear):
    """writing into a parameter: `self.weight.clamp_(-1, 1)`"""

    refused = "writes into linear.weight"
    way_out = ClampedParameter

    def forward(self, x):
        with torch.no_grad():
            self.linear.weight.clamp_(-0.3, 0.3)  # blamed
        return self.linear(x)


class OverwrittenResult(_Linear):
    """overwriting what a gradient needs, which PyTorch refuses, too"""

    refused = "that the gradient needs is overwritten"
    way_out = InPlaceOperators

    def forward(self, x):
        y = torch.sigmoid(self.linear(x))  # blamed
        return y.mul_(2)


class TwoViews(_Linear):
    """two views of one tensor that are written to, in another order of its elements: `view` and `transpose`"""

    refused = "a tensor is written to in two views of it, whose elements are in another order"
    way_out = InPlaceOperators

    def forward(self, x):
        y = self.linear(x)
        y.view(y.shape[0], -1).mul_(2)
        y.transpose(1, 2).add_(1)  # blamed
        return y


class Where(_Linear):
    """`torch.where` with numbers, `torch.minimum`, `maximum`, `clamp` with tensors and with a float and an integer, `lerp`, `addcdiv`"""

    def forward(self, x):
        y = self.linear(x)
        y = torch.where(y > 0, y, 0.1) + torch.minimum(x, y) + torch.maximum(x, y).clamp(min=y - 1, max=y + 0.5)
        y = y.clamp(-1.5, 1) + torch.arange(WIDTH).clip(0.5, 6)
        return torch.lerp(x, y, 0.3) + torch.lerp(x, y, torch.sigmoid(y)).addcdiv(x, 2 + y.square(), value=0.1)


class Triangles(_Linear):
    """`torch.tril`, `triu` of products and masks, `torch.eye`, `diagonal`"""

    def forward(self, x):
        y = self.linear(x) @ x.transpose(1, 2)
        y = torch.tril(y) + torch.triu(y, diagonal=1) * 0.5 + torch.eye(x.shape[1])
        return y @ x + y.diagonal(dim1=1, dim2=2)[..., None]
