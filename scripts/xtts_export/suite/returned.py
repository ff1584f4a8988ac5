"""What forward takes, keeps and returns"""

import random
import time
import uuid

import torch
from torch import nn

from .case import TABLE, WIDTH, Case


class _Loss(Case):
    def __init__(self):
        super().__init__()
        self.linear = nn.Linear(WIDTH, WIDTH)

    def errors(self, x, target, lengths):
        """f32[B]: the mean of each row's squared errors, 0 of an empty row; and how many rows have frames."""
        inside = torch.arange(x.shape[1]) < lengths[:, None]
        errors = ((self.linear(x) - target).square().mean(-1) * inside).sum(1) / lengths.clamp(min=1)
        return errors, (lengths > 0).sum().float()


class NamedLoss(_Loss):
    """a loss, what it is divided by, and a metric with a name: all are float32 scalars"""

    def forward(self, x, target, lengths):
        errors, rows = self.errors(x, target, lengths)
        return {"loss": errors.sum() / rows.clamp(min=1), "loss_weight": rows, "largest": errors.max()}


class OtherInput(_Loss):
    """`forward` with a parameter that no input has"""

    refused = "forward of OtherInput takes 'spectrum', which is no input"
    way_out = NamedLoss
    whole = True

    def forward(self, x, target, lengths, spectrum):
        return self.errors(x, target, lengths)


class LossAlone(_Loss):
    """a dictionary without `loss_weight`"""

    refused = "loss function returned {'loss'} without loss and loss_weight"
    way_out = NamedLoss
    whole = True

    def forward(self, x, target, lengths):
        return {"loss": self.errors(x, target, lengths)[0].mean()}


class NumberedMetric(_Loss):
    """a metric whose name is a number"""

    refused = "a metric has the name 3"
    way_out = NamedLoss
    whole = True

    def forward(self, x, target, lengths):
        errors, rows = self.errors(x, target, lengths)
        return {"loss": errors.sum() / rows.clamp(min=1), "loss_weight": rows, 3: errors.max()}


class LossOfRows(_Loss):
    """a loss that is one number a row"""

    refused = "loss is float32[B], not a float32 scalar"
    way_out = NamedLoss
    whole = True

    def forward(self, x, target, lengths):
        errors, rows = self.errors(x, target, lengths)
        return {"loss": errors, "loss_weight": rows}


class Undivided(_Loss):
    """a loss whose `loss_weight` counts frames, and that is divided by rows"""

    refused = "loss_weight does not count what the loss is a mean over"
    way_out = NamedLoss

    def forward(self, x, target, lengths):
        errors, rows = self.errors(x, target, lengths)
        return {"loss": errors.sum() / rows.clamp(min=1), "loss_weight": lengths.sum().float()}  # blamed


class NothingDivided(_Loss):
    """a loss of rows that are all empty that is not 0"""

    refused = "with every row empty, loss is 1 and loss_weight 0, where both must be 0"
    way_out = NamedLoss
    whole = True

    def forward(self, x, target, lengths):
        errors, rows = self.errors(x, target, lengths)
        return {"loss": (errors.sum() + (rows == 0)) / rows.clamp(min=1), "loss_weight": rows}


class MeanOfBatches(_Loss):
    """`accumulation="mean"`, and 1 as `loss_weight`"""

    options = {"accumulation": "mean"}

    def forward(self, x, target, lengths):
        errors, rows = self.errors(x, target, lengths)
        return {"loss": errors.sum() / rows.clamp(min=1), "loss_weight": rows.clamp(max=1)}


class CountedMean(_Loss):
    """`accumulation="mean"`, and a count as `loss_weight`"""

    options = {"accumulation": "mean"}
    refused = "loss_weight is 4, where accumulation is 'mean'"
    way_out = MeanOfBatches

    def forward(self, x, target, lengths):
        errors, rows = self.errors(x, target, lengths)
        return {"loss": errors.sum() / rows.clamp(min=1), "loss_weight": rows}  # blamed


class PartOfWindow(_Loss):
    """`accumulation="weighted"`: a term that is divided by its `window()` input"""

    options = {"accumulation": "weighted"}

    def forward(self, x, target, lengths, frames):
        errors, rows = self.errors(x, target, lengths)
        return {"loss": (errors * lengths).sum() / frames, "loss_weight": rows.clamp(max=1)}


class PartOfBatch(_Loss):
    """`accumulation="weighted"`: a term that is divided by what the batch has"""

    options = {"accumulation": "weighted"}
    refused = "a term of the loss is not divided by a window() input"
    way_out = PartOfWindow

    def forward(self, x, target, lengths, frames):
        errors, rows = self.errors(x, target, lengths)
        return {"loss": errors.sum() / rows.clamp(min=1) + 0 * frames, "loss_weight": rows.clamp(max=1)}  # blamed


class Frozen(_Loss):
    """a parameter that the loss does not depend on, with `requires_grad=False`"""

    def __init__(self):
        super().__init__()
        self.unused = nn.Parameter(torch.zeros(WIDTH), requires_grad=False)

    def forward(self, x, target, lengths):
        errors, rows = self.errors(x, target, lengths)
        return {"loss": errors.sum() / rows.clamp(min=1), "loss_weight": rows}


class Unused(Frozen):
    """a parameter that the loss does not depend on"""

    refused = "the loss does not depend on parameter unused"
    way_out = Frozen
    whole = True

    def __init__(self):
        super().__init__()
        self.unused.requires_grad_(True)


class MadeAnew(_Loss):
    """a list that `forward` makes anew"""

    def forward(self, x):
        layers = [self.linear, torch.tanh]
        return layers.pop()(layers.pop()(x))


class UsedUp(_Loss):
    """a list that `forward` uses up"""

    refused = "forward fails when it is called again"
    way_out = MadeAnew

    def __init__(self):
        super().__init__()
        self.layers = [self.linear, torch.tanh]

    def forward(self, x):
        return self.layers.pop()(self.layers.pop()(x))  # blamed


class Noisy(_Loss):
    """`torch.rand`"""

    draws = True

    def forward(self, x):
        return self.linear(x) * (1 + torch.rand(x.shape[0], 1, 1))


class OfTheTime(_Loss):
    """a factor that follows from the time"""

    refused = "forward returns something else for the same batch when it runs again"
    way_out = Noisy

    def forward(self, x):
        return self.linear(x) * (1 + time.time() % 1)  # blamed


class OfPython(_Loss):
    """a factor by `random.random()`"""

    refused = "Python's random is drawn from or set in a run of forward"
    way_out = Noisy

    def forward(self, x):
        return self.linear(x) * (1 + random.random())  # blamed


class OfTheSystem(_Loss):
    """a factor by `uuid.uuid4()`"""

    refused = "gives another result in each call, and a graph would keep the first one"
    way_out = Noisy

    def forward(self, x):
        return self.linear(x) * (1 + uuid.uuid4().int % 7)  # blamed


class MeanKept(_Loss):
    """a buffer that gets the mean of the batch's frames"""

    def __init__(self):
        super().__init__()
        self.register_buffer("last", torch.zeros(WIDTH))

    def forward(self, x, lengths):
        inside = (torch.arange(x.shape[1]) < lengths[:, None]).float()[..., None]
        y = self.linear(x) + self.last
        self.last = (0.5 * self.last + 0.5 * (x * inside).sum((0, 1)) / inside.sum().clamp(min=1)).detach()
        return y


class RowsKept(MeanKept):
    """a buffer that gets as many rows as the batch has"""

    refused = "of buffer last, whose shape is"
    way_out = MeanKept
    whole = True

    def forward(self, x, lengths):
        y = self.linear(x) + self.last
        self.last = x[:, 0].detach()
        return y


class _Table(Case):
    def __init__(self):
        super().__init__()
        self.table = nn.Embedding(TABLE + 1, WIDTH)


class ShiftedIds(_Table):
    """an `nn.Embedding` with a row for the largest id"""

    def forward(self, ids):
        return self.table(ids + 1)


class IdsPastTheTable(_Table):
    """an `nn.Embedding` without a row for the largest id"""

    refused = "on a random batch, IndexError"
    way_out = ShiftedIds

    def forward(self, ids):
        return self.table(ids + 2)  # blamed


class WhereMasked(_Loss):
    """a mask by `torch.where`"""

    def forward(self, x):
        return torch.where(torch.arange(WIDTH) % 2 == 0, self.linear(x), 0.0)


class MaskAmongIndices(_Loss):
    """a mask beside other indices in brackets"""

    refused = "a mask among other indices has no form"
    way_out = WhereMasked

    def forward(self, x):
        y = self.linear(x).clone()
        y[:, torch.zeros(1, dtype=torch.long), torch.arange(WIDTH) % 2 == 0] = 0  # blamed
        return y


class VoicesAlone(_Loss):
    """one vector a row, and no lengths"""

    refused = "no input has lengths, so that the empty rows of a batch would count"
    way_out = NamedLoss
    whole = True

    def loss(self, y, batch):
        return {"loss": y.square().mean(), "loss_weight": torch.ones(y.shape[0]).sum()}

    def forward(self, voice):
        return self.linear(voice)
