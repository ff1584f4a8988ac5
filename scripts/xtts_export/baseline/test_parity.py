"""ONNX Runtime against PyTorch's golden numbers, and the generator against its published vectors."""

import json

import numpy as np
import pytest
from safetensors.numpy import load_file

from .. import builtin, session
from . import parity
from .counter import Batch, floats, splitmix64

GOLDENS = builtin.REPOSITORY / "ortgraphs/testdata/parity"
OPTIMIZER = builtin.REPOSITORY / "ortgraphs/optim"
FOLDERS = {folder.name.removeprefix("myxtts-"): folder for folder in builtin.FOLDERS}


def trainer(name: str, spec: dict | None = None) -> session.Trainer:
    export = builtin.FOLDERS[FOLDERS[name]]()
    return session.Trainer(export, FOLDERS[name], OPTIMIZER, spec or export.optimizer)


def test_counter():
    # The first values of SplitMix64 seeded with 0 are its output function at multiples of the increment.
    at = np.array([0, 0x9E3779B97F4A7C15, 0x3C6EF372FE94F82A], np.uint64)
    assert [f"{v:016x}" for v in splitmix64(at)] == ["e220a8397b1dcdaf", "6e789e6aa1b965f4", "06c45d188009454f"]
    values = floats(5, 1000)
    assert values.dtype == np.float32 and -1 <= values.min() < -0.9 and 0.9 < values.max() < 1


@pytest.mark.parametrize("name", FOLDERS)
def test_training_is_pytorchs(name):
    golden = json.loads((GOLDENS / f"{name}.json").read_text())
    ours = trainer(name, golden["optimizer"])
    start = {key: x.copy() for key, x in ours.parameters.items()}
    worst = 0.0
    for want in golden["steps"]:
        batch = Batch(want["batch"], want["sizes"], want["empty_row"])
        loss, norm = ours.step(batch.tensors(golden["inputs"]))
        worst = max(worst, abs(loss / want["loss"] - 1))
        assert loss == pytest.approx(want["loss"], rel=1e-4)
        assert norm == pytest.approx(want["grad_norm"], rel=1e-2)
    final = load_file(GOLDENS / f"{name}.final.safetensors")
    ratios = {}
    for key, want in final.items():
        size = max(np.linalg.norm(want), np.linalg.norm(want - start[key]))
        ratios[key] = np.linalg.norm(ours.parameters[key] - want) / size
    print(f"{name}: worst loss {worst:.1e}, worst weights {max(ratios.values()):.1e} ({max(ratios, key=ratios.get)})")
    assert max(ratios.values()) <= 1e-3


@pytest.mark.parametrize("name", ["pico", "multispeaker"])
def test_accumulation(name):
    """exact: the gradient of all rows at once. mean: the mean of the micro-batches' gradients."""
    golden = json.loads((GOLDENS / f"{name}.accumulation.json").read_text())
    ours = trainer(name)
    accumulate = session.load(OPTIMIZER / "accumulate.onnx")
    sums = {"acc": np.full_like(ours.grad, np.nan), "loss_sum": np.array(np.nan, np.float32), "weight_sum": np.array(np.nan, np.float32)}
    for i, batch in enumerate(parity.micro_batches(builtin.FOLDERS[FOLDERS[name]]())):
        out = ours.backward(batch.tensors(golden["inputs"]))
        session.in_place(accumulate, {"grads": ours.grad, "loss": out["loss"], "loss_weight": out["loss_weight"], "first": np.array(i == 0)}, sums)
    assert sums["weight_sum"] == golden["loss_weight"]
    assert sums["loss_sum"] / sums["weight_sum"] == pytest.approx(golden["loss"], rel=1e-6)
    ours.grad[...] = sums["acc"] / sums["weight_sum"]
    gradients = load_file(GOLDENS / f"{name}.accumulation.safetensors")
    # Beside it, a gradient that nearly cancels is rounding.
    floor = 1e-6 * max(np.linalg.norm(g) for g in gradients.values())
    for key, want in gradients.items():
        assert np.linalg.norm(ours.gradients[key.removeprefix("grad.")] - want) <= 1e-5 * np.linalg.norm(want) + floor, key
