"""Dropout in a checkpointed block, and gradients that hooks change, with the seed of a step."""

from pathlib import Path

import numpy as np
import torch

from . import verify
from .inputs import batch
from .suite.case import write
from .suite.gradients import Checkpointed


def gradients(folder: Path, case: Checkpointed, seed: int) -> dict[str, np.ndarray]:
    """Those of the exported graph."""
    export, _ = write(case, folder / "x.onnx")
    tensors = batch(export.inputs, {"B": 3, "T": 24}, np.random.default_rng(0))
    return {name: x.copy() for name, x in verify.Graph(export, folder / "x.onnx").run(tensors, seed).items()}


def test_a_checkpointed_block_has_the_draws_of_the_block_itself(tmp_path):
    torch.manual_seed(0)
    case = Checkpointed()
    got, other = gradients(tmp_path, case, 5), gradients(tmp_path, case, 6)

    class Plain(Checkpointed):
        def forward(self, x):
            y = self.linear(x)
            for block in self.blocks:
                y = block(y)
            return y

    plain = Plain()
    plain.load_state_dict(case.state_dict())
    want = gradients(tmp_path, plain, 5)
    assert got.keys() == want.keys()
    for name, x in want.items():
        np.testing.assert_array_equal(got[name], x, err_msg=name)
    assert not np.array_equal(got["grad.linear.weight"], other["grad.linear.weight"])
    # PyTorch's own, with the same draws: a second run of a block would have further places.
    export, step = write(plain, tmp_path / "x.onnx")
    outputs = step.named(*batch(export.inputs, {"B": 3, "T": 24}, np.random.default_rng(0)).values(), torch.tensor(5))
    for (name, p), x in zip(plain.named_parameters(), torch.autograd.grad(outputs["loss"], list(plain.parameters())), strict=True):
        np.testing.assert_allclose(got["grad." + name], x.numpy(), rtol=1e-3, atol=1e-6, err_msg=name)
