"""Types that a module chooses itself: automatic ones are left out, and arithmetic that a graph would round otherwise is refused."""

import numpy as np
import pytest
import torch
import torch.nn.functional as F
from torch import nn

from . import verify
from .inputs import batch
from .refusal import Refusal
from .suite.case import SIZES, WIDTH, Case, write


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


class Products(Linear):
    def forward(self, x):
        return F.linear(x.bfloat16(), self.linear.weight.bfloat16()).float() + self.linear.bias  # narrow


class Sums(Linear):
    def forward(self, x):
        y = self.linear(x).half()
        return (y + y.exp()).float()  # narrow


class Gradients(Linear):
    """Two gradients of one tensor are added up in its type."""

    def forward(self, x):
        y = self.linear(x).half()
        return y.float() * y.sin().float()  # narrow


def test_autocast_is_left_out(tmp_path):
    automatic, plain = Automatic(), Plain()
    plain.load_state_dict(automatic.state_dict())
    results = []
    for case in (automatic, plain):
        export, _ = write(case, tmp_path / "x.onnx")
        results.append(dict(verify.Graph(export, tmp_path / "x.onnx").run(batch(export.inputs, SIZES[1][0], np.random.default_rng(0)))))
    assert all(np.array_equal(results[0][name], x) for name, x in results[1].items())


@pytest.mark.parametrize(("case", "kind"), [(Products, "bfloat16"), (Sums, "float16"), (Gradients, "float16")])
def test_arithmetic_in_other_types_is_refused(case, kind, tmp_path):
    with pytest.raises(Refusal, match=f"computes in {kind}") as caught:
        write(case(), tmp_path / "x.onnx")
    assert "# narrow" in str(caught.value)
    assert "--precision" in caught.value.hint
