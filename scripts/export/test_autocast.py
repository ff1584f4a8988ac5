"""Types that a module chooses itself: automatic ones are left out, and what ONNX Runtime cannot compute is refused."""

import numpy as np
import pytest
import torch
import torch.nn.functional as F
from torch import nn

from . import verify
from .inputs import batch
from .refusal import Refusal
from .suite.case import SIZES, WIDTH, Case, errors, write


class Linear(Case):
    def __init__(self):
        super().__init__()
        self.linear = nn.Linear(WIDTH, WIDTH)


class Automatic(Linear):
    def forward(self, x):
        with torch.autocast("cpu", dtype=torch.bfloat16):
            return self.linear(x) + 1


class Plain(Linear):
    def forward(self, x):
        return self.linear(x) + 1


class Halved(Linear):
    def forward(self, x):
        return F.linear(x.bfloat16(), self.linear.weight.bfloat16()).float() + self.linear.bias


def test_autocast_is_left_out(tmp_path):
    automatic, plain = Automatic(), Plain()
    plain.load_state_dict(automatic.state_dict())
    results = []
    for case in (automatic, plain):
        export, _ = write(case, tmp_path / "x.onnx")
        results.append(dict(verify.Graph(export, tmp_path / "x.onnx").run(batch(export.inputs, SIZES[1][0], np.random.default_rng(0)))))
    assert all(np.array_equal(results[0][name], x) for name, x in results[1].items())


def test_a_product_in_bf16_is_refused(tmp_path):
    with pytest.raises(Refusal, match="ONNX Runtime cannot load the graph: Could not find an implementation for Gemm") as caught:
        errors(Halved(), tmp_path / "x.onnx")
    assert "--precision" in caught.value.hint
