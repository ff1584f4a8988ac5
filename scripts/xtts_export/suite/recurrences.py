"""Recurrences over time"""

import torch
import torch.nn.functional as F
from torch import nn
from torch.nn.utils.rnn import pack_padded_sequence, pad_packed_sequence

from ..alignment import monotonic_path
from ..recurrence import scan
from .case import WIDTH, Case


class _Recurrent(Case):
    # PyTorch refuses to pack an empty row.
    nan_when_empty = False

    def __init__(self):
        super().__init__()
        self.linear = nn.Linear(WIDTH, WIDTH)


class Gru(_Recurrent):
    """`nn.GRU` of two layers, bidirectional, with a first state"""

    def __init__(self):
        super().__init__()
        self.rnn = nn.GRU(WIDTH, 5, num_layers=2, batch_first=True, bidirectional=True, dropout=0.0)
        self.start = nn.Parameter(torch.randn(4, 1, 5))

    def forward(self, x):
        y, last = self.rnn(self.linear(x), self.start.expand(-1, x.shape[0], -1).contiguous())
        return y + last.mean(0)[:, None].repeat(1, 1, 2)


class Lstm(_Recurrent):
    """`nn.LSTM` with and without biases, with a projection"""

    def __init__(self):
        super().__init__()
        self.rnn, self.projected = nn.LSTM(WIDTH, 7), nn.LSTM(7, 6, bias=False, proj_size=4)

    def forward(self, x):
        y, (last, cell) = self.rnn(self.linear(x).transpose(0, 1))
        z, _ = self.projected(y + last + cell)
        return z.transpose(0, 1)


class Rnn(_Recurrent):
    """`nn.RNN`, with `tanh` and with `relu`"""

    def __init__(self):
        super().__init__()
        self.rnn, self.relu = nn.RNN(WIDTH, WIDTH, batch_first=True), nn.RNN(WIDTH, WIDTH, nonlinearity="relu", bias=False, batch_first=True)

    def forward(self, x):
        y, _ = self.rnn(self.linear(x))
        return self.relu(y)[0]


class PackedRows(_Recurrent):
    """`pack_padded_sequence`, a bidirectional `nn.LSTM`, `pad_packed_sequence` with `total_length`, as Tacotron 2 has them"""

    def __init__(self):
        super().__init__()
        self.rnn = nn.LSTM(WIDTH, 4, batch_first=True, bidirectional=True)

    def forward(self, x, lengths):
        # A row of no frames cannot be packed by PyTorch.
        packed = pack_padded_sequence(self.linear(x), lengths.clamp(min=1), batch_first=True, enforce_sorted=False)
        y, (last, _) = self.rnn(packed)
        y, _ = pad_packed_sequence(y, batch_first=True, total_length=x.shape[1])
        return y + last[0].repeat(1, 2)[:, None]


class Cells(_Recurrent):
    """`nn.GRUCell`, `nn.LSTMCell`, `nn.RNNCell` in a loop over a fixed number of steps"""

    def __init__(self):
        super().__init__()
        self.gru, self.lstm, self.rnn = nn.GRUCell(WIDTH, WIDTH), nn.LSTMCell(WIDTH, WIDTH), nn.RNNCell(WIDTH, WIDTH, bias=False)

    def forward(self, x):
        y, h, state, z, steps = self.linear(x), None, None, None, []
        for t in range(3):
            h = self.gru(y[:, t], h)
            state = self.lstm(h, state)
            z = self.rnn(state[0], z)
            steps.append(z + state[1])
        return torch.stack(steps, dim=1)


class OwnRecurrence(_Recurrent):
    """A recurrence of one's own by `xtts_export.scan`: a linear unit with a gate, from the end to the beginning"""

    def __init__(self):
        super().__init__()
        self.gate = nn.Linear(WIDTH, WIDTH)
        self.decay = nn.Parameter(torch.zeros(WIDTH))

    def forward(self, x):
        def step(carry, items, constants):
            [state], [now], [weight, bias, decay] = carry, items, constants
            gate = torch.sigmoid(F.linear(state, weight, bias) + now)
            state = torch.exp(-F.softplus(decay)) * state + gate * now
            return (state,), (state * gate,)

        y = self.linear(x).transpose(0, 1)
        (last,), (z,) = scan(step, (torch.zeros_like(y[0]),), (y,), (self.gate.weight, self.gate.bias, self.decay), reverse=True)
        return z.transpose(0, 1) + last[:, None]


class CountedSteps(_Recurrent):
    """a step of `xtts_export.scan` that divides by the length, as a tensor that is made before the scan"""

    def forward(self, x):
        y = self.linear(x).transpose(0, 1)
        count = torch.ones(x.shape[1]).sum()

        def step(carry, items, _):
            state = torch.tanh(carry[0] + items[0]) / count * torch.ones(items[0].shape[0], 1)
            return (state,), (state,)

        return scan(step, (torch.zeros_like(y[0]),), (y,))[1][0].transpose(0, 1)


class SizedSteps(_Recurrent):
    """a step of `xtts_export.scan` that takes a size from outside"""

    refused = "a step of a scan takes a size from outside"
    way_out = CountedSteps

    def forward(self, x):
        y, n = self.linear(x).transpose(0, 1), x.shape[1]

        def step(carry, items, _):
            state = torch.tanh(carry[0] + items[0]) / n  # blamed
            return (state,), (state,)

        return scan(step, (torch.zeros_like(y[0]),), (y,))[1][0].transpose(0, 1)


class DecoderSteps(_Recurrent):
    """the decoder of Tacotron 2 with `xtts_export.scan`: the step calls `nn.LSTMCell`, attention to text and its past by layers of the module, `F.dropout`, and reads tensors of `forward`"""

    def __init__(self):
        super().__init__()
        self.cell, self.query = nn.LSTMCell(2 * WIDTH, WIDTH), nn.Linear(WIDTH, WIDTH, bias=False)
        self.place, self.score, self.out = nn.Conv1d(2, WIDTH, 3, padding=1), nn.Linear(WIDTH, 1, bias=False), nn.Linear(2 * WIDTH, WIDTH)
        self.table, self.after = nn.Embedding(11, WIDTH), nn.Conv1d(WIDTH, WIDTH, 3, padding=1)

    def forward(self, x, ids, id_lengths):
        memory, padding = self.table(ids), torch.arange(ids.shape[1])[None, :] >= id_lengths[:, None]

        def step(carry, items, _):
            state, cell, context, weights, sums = carry
            state, cell = self.cell(torch.cat([items[0], context], -1), (state, cell))
            state = F.dropout(state, 0.0, self.training)
            past = self.place(torch.stack([weights, sums], 1)).transpose(1, 2)
            scores = self.score(torch.tanh(self.query(state)[:, None] + past + memory)).squeeze(-1).masked_fill(padding, -1e9)
            weights = scores.softmax(-1)
            context = torch.bmm(weights[:, None], memory).squeeze(1)
            return (state, cell, context, weights, sums + weights), (self.out(torch.cat([state, context], -1)), weights)

        frames = self.linear(F.pad(x, (0, 0, 1, -1))).transpose(0, 1)
        nothing, unread = torch.zeros_like(x[:, 0]), torch.zeros_like(padding, dtype=torch.float32)
        _, (y, weights) = scan(step, (nothing, nothing, nothing, unread, unread), (frames,))
        y = y.transpose(0, 1)
        y = y + self.after(y.transpose(1, 2)).transpose(1, 2)
        return y + weights.square().sum((0, 2))[:, None, None]


class Ctc(_Recurrent):
    """`F.ctc_loss`, rows that cannot be spelled with `zero_infinity`"""

    # PyTorch's own of an empty row is -0.
    def forward(self, x, lengths, ids, id_lengths):
        spoken = F.log_softmax(self.linear(x).repeat(1, 1, 2)[..., :11], dim=-1).transpose(0, 1)
        rows, few = (lengths > 0).float(), torch.minimum(id_lengths, lengths // 3)
        each = F.ctc_loss(spoken, ids % 10 + 1, lengths, few, reduction="none", zero_infinity=True) / few.clamp(min=1)
        each = each + F.ctc_loss(spoken, ids % 4, lengths, id_lengths, blank=10, reduction="none", zero_infinity=True)
        return {"loss": (each * rows).sum() / rows.sum().clamp(min=1), "loss_weight": rows.sum()}


class MonotonicAlignment(_Recurrent):
    """Monotonic alignment search, `xtts_export.alignment.monotonic_path`: the mean of the symbols' vectors by frames"""

    def __init__(self):
        super().__init__()
        self.table = nn.Embedding(11, WIDTH)

    def forward(self, x, lengths, ids, id_lengths):
        symbols, frames = self.table(ids), self.linear(x)
        path = monotonic_path(symbols @ frames.transpose(1, 2), torch.minimum(id_lengths, lengths), lengths)
        return path.transpose(1, 2) @ symbols - frames
