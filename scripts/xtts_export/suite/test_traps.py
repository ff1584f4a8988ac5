"""Modules drawn at random are equal to PyTorch, or refused by the name of their trap.

DRAWN=1000 draws so many. The reference is the module itself in plain PyTorch, without a function of the exporter's, on the rows that are not empty.
"""

import os

import numpy as np
import pytest
import torch
from torch import nn

from .. import verify
from ..refusal import Refusal
from .case import write
from .traps import TRAPS, Drawn, Part

COUNT = int(os.environ.get("DRAWN", 40))
# Of the modules without a trap.
EXPORTED = 0.95
refused: list[str] = []
plain: list[int] = []


def trap_of(seed: int) -> type[Part] | None:
    """Every fourth module has none."""
    return TRAPS[seed * 3 // 4 % len(TRAPS)] if seed % 4 else None


def rows(seed: int, frames: int) -> tuple[torch.Tensor, torch.Tensor]:
    """Four rows, the second one empty, with zeros after their ends."""
    draw = np.random.default_rng(seed)
    x, lengths = torch.from_numpy(draw.standard_normal((4, frames, 8)).astype(np.float32)), torch.tensor([frames, 0, *draw.integers(1, frames, 2)], dtype=torch.int32)
    return x * (torch.arange(frames)[None, :, None] < lengths[:, None, None]), lengths


def difference(module: Drawn, graph: verify.Graph, x: torch.Tensor, lengths: torch.Tensor) -> float:
    """The largest, as a part of all gradients' norm, or of the loss."""
    got = {name: np.array(v) for name, v in graph.run({"x": x, "lengths": lengths}, seed=-1).items()}
    module.train()
    for part in module.modules():
        part.training = part.training and not isinstance(part, nn.Dropout)
    module.zero_grad()
    full = lengths > 0
    scalars = module.loss(module(x[full], lengths[full]), {"lengths": lengths[full]})
    scalars["loss"].backward()
    module.train()
    want = {"grad." + name: p.grad.numpy() for name, p in module.named_parameters()}
    norm = np.sqrt(sum(np.square(g).sum() for g in want.values()))
    apart = [np.linalg.norm(got[name] - g) / norm for name, g in want.items()]
    return float(max([*apart, *(abs(float(got[name]) - scalars[name].item()) / abs(scalars[name].item()) for name in ("loss", "loss_weight"))]))


@pytest.mark.parametrize("seed", range(COUNT))
def test_equal_or_refused(seed, tmp_path):
    trap = trap_of(seed)
    module = Drawn(seed, trap)
    plain.extend([seed] if trap is None else [])
    try:
        export, step = write(module, tmp_path / "x.onnx")
        verify.check(export, step, {"B": 3, "T": 12}, tmp_path / "x.onnx")
    except Refusal as error:
        if trap is None:
            refused.append(f"{seed}: {error}")
            return
        assert trap.refused and trap.refused in str(error), (trap.__name__, str(error))
        return
    assert trap is None or trap.refused is None or trap.either, f"{trap.__name__} was exported"
    graph = verify.Graph(export, tmp_path / "x.onnx")
    for frames in (9, 24, 37):
        assert difference(module, graph, *rows(seed, frames)) < 1e-3, (trap, [type(part).__name__ for part in module.parts])


def test_modules_without_a_trap_are_exported():
    assert len(refused) <= (1 - EXPORTED) * len(plain), refused


def test_a_wrong_graph_is_seen(tmp_path):
    """The proof of the reference: a module whose weights are others than the graph's."""
    module = Drawn(0)
    export, _ = write(module, tmp_path / "x.onnx")
    graph = verify.Graph(export, tmp_path / "x.onnx")
    graph.parameters = {name: x.copy() for name, x in graph.parameters.items()}
    name = next(iter(graph.parameters))
    graph.parameters[name] *= 1.05
    assert difference(module, graph, *rows(0, 24)) > 1e-3
