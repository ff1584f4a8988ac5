"""The check's reference is the module in eager PyTorch: what the exporter replaces is compared with PyTorch's own, in training and in evaluation."""

import numpy as np
import pytest
import torch
import torch.nn.functional as F
from torch import Tensor, nn
from torch.nn.attention import SDPBackend, sdpa_kernel

from . import bundle, eager, lowering, verify, writer
from .inputs import batch
from .module import Export, Step
from .refusal import Refusal
from .suite.case import WIDTH, Case, exported, write

SIZES = {"B": 3, "T": 24}


def inside(x: Tensor, lengths: Tensor) -> Tensor:
    return torch.arange(x.shape[1])[None, :] < lengths[:, None]


class Smoothed(Case):
    """Something over the frames, then a convolution over time, which takes what padded frames have into the others."""

    def __init__(self):
        super().__init__()
        self.linear, self.smooth = nn.Linear(WIDTH, WIDTH), nn.Conv1d(WIDTH, WIDTH, 5, padding=2)

    def forward(self, x, lengths):
        return self.smooth(self.between(self.linear(x), lengths).transpose(1, 2)).transpose(1, 2)


class MaskedQueries(Smoothed):
    def between(self, x, lengths):
        mask = inside(x, lengths).float()
        return F.scaled_dot_product_attention(x[:, None], x[:, None], x[:, None], attn_mask=(mask[:, None, :, None] * mask[:, None, None, :]) > 0).squeeze(1)


class InfinitelyMaskedQueries(Smoothed):
    def between(self, x, lengths):
        mask = inside(x, lengths)
        added = torch.zeros(mask.shape[0], 1, x.shape[1], x.shape[1]).masked_fill(~(mask[:, None, :, None] & mask[:, None, None, :]), float("-inf"))
        return F.scaled_dot_product_attention(x[:, None], x[:, None], x[:, None], attn_mask=added).squeeze(1)


class LowQueries(Smoothed):
    """Masked by the lowest number: the row has the mean of all, of which PyTorch's fast kernel for the CPU has wrong gradients."""
    low = torch.finfo(torch.float32).min

    def between(self, x, lengths):
        mask = inside(x, lengths)
        added = torch.where(mask[:, None, :, None] & mask[:, None, None, :], 0.0, self.low)
        return F.scaled_dot_product_attention(x[:, None], x[:, None], x[:, None], attn_mask=added).squeeze(1)


class VeryLowQueries(LowQueries):
    low = -1e9


class NothingToSee(Smoothed):
    """The first frames have no key: a causal mask that leaves out the frame itself."""

    def __init__(self):
        super().__init__()
        self.attention = nn.MultiheadAttention(WIDTH, 2, batch_first=True)

    def between(self, x, lengths):
        return self.attention(x, x, x, attn_mask=torch.ones(x.shape[1], x.shape[1], dtype=torch.bool).triu(), need_weights=False)[0]


MASKED = [MaskedQueries, InfinitelyMaskedQueries, LowQueries, VeryLowQueries, NothingToSee]


def by_pytorch(case: Case, tensors: dict[str, Tensor]) -> dict[str, Tensor]:
    """Loss and gradients, with nothing of the exporter's."""
    x = tensors["x"] * inside(tensors["x"], tensors["lengths"])[:, :, None]
    case.zero_grad()
    loss = case.loss(case(x, tensors["lengths"]) if isinstance(case, Smoothed) else case(x), tensors)["loss"]
    loss.backward()
    return {"loss": loss.detach(), **{"grad." + name: p.grad.clone() for name, p in case.named_parameters() if p.grad is not None}}


def apart(got: dict[str, np.ndarray], want: dict[str, Tensor]) -> float:
    whole = torch.cat([x.flatten() for name, x in want.items() if name != "loss"])
    errors = [float(torch.linalg.vector_norm(torch.as_tensor(got[name]) - x)) for name, x in want.items() if name != "loss"]
    return max(float(np.linalg.norm(errors) / torch.linalg.vector_norm(whole)), abs(float(got["loss"]) - float(want["loss"])) / abs(float(want["loss"])))


@pytest.mark.parametrize("kind", MASKED, ids=lambda kind: kind.__name__)
def test_queries_without_keys(kind, tmp_path):
    torch.manual_seed(0)
    case = kind()
    export, step = write(case, tmp_path / "x.onnx")
    assert verify.check(export, step, SIZES, tmp_path / "x.onnx")[0] < 1e-4
    tensors = batch(export.inputs, SIZES, np.random.default_rng(7))
    with sdpa_kernel(SDPBackend.MATH):
        want = by_pytorch(case, tensors)
    assert apart(verify.Graph(export, tmp_path / "x.onnx").run(tensors), want) < 1e-5


def test_a_wrong_replacement_is_found(tmp_path, monkeypatch):
    """The mean of all keys in place of 0, in the graph and in the exporter's own functions."""
    def mean(drop):
        return lambda q, k, v, attn_mask=None, dropout_p=0.0, is_causal=False, scale=None, enable_gqa=False: lowering.attend(q, k, v, attn_mask, scale=scale)

    monkeypatch.setattr(lowering, "_attention", mean)
    torch.manual_seed(0)
    export, step = write(MaskedQueries(), tmp_path / "x.onnx")
    with pytest.raises(Refusal, match="of the graph differs from PyTorch's by"):
        verify.check(export, step, SIZES, tmp_path / "x.onnx")


class Branch(Case):
    """Another result in evaluation mode, without state."""

    def __init__(self):
        super().__init__()
        self.linear = nn.Linear(WIDTH, WIDTH)

    def forward(self, x):
        y = self.linear(x)
        return y * 0.5 if self.training else y


class Alpha(Branch):
    def __init__(self):
        super().__init__()
        self.drop = nn.AlphaDropout(0.3)

    def forward(self, x):
        return self.drop(self.linear(x))


class Leaky(Branch):
    def __init__(self):
        super().__init__()
        self.leaky = nn.RReLU()

    def forward(self, x):
        return self.leaky(self.linear(x))


class Functional(Branch):
    def forward(self, x):
        return F.dropout(self.linear(x), 0.4, self.training)


class InLoss(Branch):
    def forward(self, x):
        return self.linear(x)

    def loss(self, y, batch):
        found = super().loss(y, batch)
        return found if self.training else {**found, "loss": 3 * found["loss"]}


class Half(Branch):
    """The same in both modes."""

    def forward(self, x):
        return self.linear(x)


@pytest.mark.parametrize("kind", [Branch, Alpha, Leaky, Functional, InLoss, Half], ids=lambda kind: kind.__name__)
def test_eval_graph_is_of_evaluation_mode(kind, tmp_path):
    torch.manual_seed(0)
    case = kind()
    export = exported(case)
    export = Export(**{**vars(export), "eval_graph": True})
    writer.write(export, tmp_path / "bundle", accept=lambda _: None)
    tensors = batch(export.inputs, SIZES, np.random.default_rng(7))
    assert case.training
    case.eval()
    with torch.no_grad():
        want = case.loss(case(tensors["x"] * inside(tensors["x"], tensors["lengths"])[:, :, None]), tensors)["loss"].item()
    got = float(verify.Graph(export, tmp_path / "bundle" / bundle.EVAL).run(tensors)["loss"])
    assert got == pytest.approx(want, rel=1e-5)


class InPlace(Branch):
    """Its result is not assigned."""

    def __init__(self):
        super().__init__()
        self.drop = nn.Dropout(0.5, inplace=True)

    def forward(self, x):
        y = self.linear(x) * 1
        self.drop(y)
        return y


class Channels(Branch):
    def forward(self, x):
        return F.dropout1d(self.linear(x).transpose(1, 2), 0.5, self.training).transpose(1, 2)


class Attended(Branch):
    def __init__(self):
        super().__init__()
        self.layer = nn.TransformerEncoderLayer(WIDTH, 2, 16, dropout=0.2, batch_first=True)

    def forward(self, x):
        return self.layer(self.linear(x))


@pytest.mark.parametrize("kind", [InPlace, Functional, Channels, Attended], ids=lambda kind: kind.__name__)
def test_masks_of_dropout_are_those_of_the_graph(kind, tmp_path, capsys):
    torch.manual_seed(0)
    case = kind()
    export, step = write(case, tmp_path / "x.onnx")
    verify.check(export, step, SIZES, tmp_path / "x.onnx")
    assert "without its masks" not in capsys.readouterr().out
    tensors, graph = batch(export.inputs, SIZES, np.random.default_rng(7)), verify.Graph(export, tmp_path / "x.onnx")
    with eager.seeded(torch.tensor(9)):
        want = by_pytorch(case, tensors)
    assert apart(graph.run(tensors, 9), want) < 1e-5
    off = {name: x.copy() for name, x in graph.run(tensors).items()}
    assert apart(off, want) > 1e-2  # dropout does something


def test_alpha_dropout_draws_in_training(tmp_path):
    torch.manual_seed(0)
    export, step = write(Alpha(), tmp_path / "x.onnx")
    assert verify.check(export, step, SIZES, tmp_path / "x.onnx")[0] < 1e-4
