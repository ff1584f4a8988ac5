"""The check finds what differs from PyTorch with equal elements and with large numbers only, and passes what PyTorch leaves open."""

import pytest
import torch
import torch.nn.functional as F
from torch import Tensor, nn

from . import extremes, lowering, verify, windows
from .refusal import Refusal
from .suite.case import SIZES, WIDTH, Case, write


class Linear(Case):
    def __init__(self):
        super().__init__()
        self.linear, self.scale = nn.Linear(WIDTH, WIDTH), nn.Parameter(torch.ones(WIDTH))


class Pool(Linear):
    """In the row of equal elements, two channels at a time are equal."""

    def forward(self, x):
        return F.max_pool1d(x * self.scale, 2, 2).repeat_interleave(2, -1) + self.linear(x)


class Masked(Linear):
    def forward(self, x, lengths):
        # All scores are far below 0.
        q, k = -(x * self.scale).abs()[:, None], x.abs()[:, None]
        inside = torch.arange(x.shape[1]) < lengths[:, None]
        return F.scaled_dot_product_attention(q, k, (x * self.scale)[:, None], attn_mask=inside[:, None, None, :])[:, 0] * inside[:, :, None] + self.linear(x)


class Best(Linear):
    def forward(self, x):
        return (x * self.scale).topk(3, dim=-1).values.sum(-1, keepdim=True) + self.linear(x)


@pytest.fixture(autouse=True)
def same_weights():
    torch.manual_seed(0)


def _check(case: Case, path):
    export, step = write(case, path)
    graph = verify.Graph(export, path)
    extremes.check(export, step, SIZES[1][0], graph.run, graph.chosen)


def _shared(a: Tensor, b: Tensor) -> Tensor:
    """Equal elements share the gradient."""
    return torch.maximum(a, b)


@pytest.mark.parametrize(("case", "owner", "name", "wrong", "found"), [
    (Pool, windows, "_greater", _shared, "in a batch of equal elements"),
    (Masked, lowering, "_LEFT_OUT", -1e4, "in a batch of large numbers"),
])
def test_what_normal_numbers_do_not_show(case, owner, name, wrong, found, tmp_path, monkeypatch):
    with monkeypatch.context() as planted:
        planted.setattr(owner, name, wrong)
        with pytest.raises(Refusal, match=f"{found}.* of the graph differs from PyTorch's") as caught:
            _check(case(), tmp_path / "wrong.onnx")
    assert caught.value.hint
    _check(case(), tmp_path / "right.onnx")


def test_any_of_equal_elements_is_right(tmp_path):
    _check(Best(), tmp_path / "x.onnx")
