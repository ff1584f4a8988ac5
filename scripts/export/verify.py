"""A written bundle against the module that it came from: gradients, and the promises about empty rows (docs/bundle.md)."""

from pathlib import Path

import numpy as np
import torch

from . import module, session
from .refusal import Refusal

# Of a gradient's norm; a gradient far smaller than all others together is rounding, and is measured against these. Right graphs stay
# below 1e-5 as a rule, but a gradient that is a small difference of large terms loses digits in PyTorch, too: 4e-4 was measured
# where PyTorch's own float32 was 1e-4 off its float64. Wrong ones are off by parts of one.
TOLERANCE = 1e-2
FLOOR = 1e-6


def check(export: "module.Export", step: "module.Step", bundle, folder: Path) -> tuple[float, str]:
    """The largest error among outputs and gradients, as a part of their norm, and whose it is. Raises Refusal when it is above TOLERANCE."""
    train = session.load(folder / "training_model.onnx")
    random = np.random.default_rng(1)
    sizes = {name: n + 4 for name, n in bundle.small().items()}
    worst = 0.0, "loss"
    for rows, empty in ((1, None), (3, 1)):
        tensors = module.batch(export.inputs, {**sizes, "B": rows}, random, empty)
        got = run(train, bundle, step, tensors)
        worst = max(worst, compare(step, tensors, got))
    _refuse_dependence_on_nothing(got, run(train, bundle, step, _soiled(export, tensors, empty)))
    empty = {name: x if name not in _lengths(export) else torch.zeros_like(x) for name, x in tensors.items()}
    _refuse_weight_of_nothing(run(train, bundle, step, empty), bundle)
    return worst


def _soiled(export: "module.Export", tensors: dict[str, torch.Tensor], row: int) -> dict[str, torch.Tensor]:
    """The batch with garbage in everything but the lengths of a row."""
    soiled = {name: x.clone() for name, x in tensors.items()}
    for name, x in soiled.items():
        if name not in _lengths(export):
            x[row] = float("nan") if x.is_floating_point() else 2**31 - 1
    return soiled


def _lengths(export: "module.Export") -> set[str]:
    return {i.lengths for i in export.inputs if i.lengths}


def run(train, bundle, step, tensors: dict[str, torch.Tensor]) -> dict[str, np.ndarray]:
    """The graph's outputs, with dropout off."""
    feed = {name: p.detach().numpy() for name, p in step.named_parameters()}
    return session.run(train, {**feed, **session.batch_feed(bundle, list(tensors.values()), seed=-1)})


def compare(step, tensors: dict[str, torch.Tensor], got: dict[str, np.ndarray]) -> tuple[float, str]:
    """check's, on one batch."""
    trained = {name: p for name, p in step.named_parameters() if p.requires_grad}
    outputs = step(*tensors.values(), torch.tensor(-1))
    gradients = torch.autograd.grad(outputs[0], trained.values())
    errors = {name: abs(float(got[name]) - want.item()) / max(abs(want.item()), 1e-6) for name, want in zip(step.outputs, outputs, strict=True)}
    norms = [float(torch.linalg.vector_norm(g)) for g in gradients]
    floor = FLOOR * float(np.linalg.norm(norms))
    for name, want, norm in zip(trained, gradients, norms, strict=True):
        error = float(np.linalg.norm(got["grad." + name] - want.numpy()))
        errors["grad." + name] = error / max(norm, floor, np.finfo(np.float32).tiny)
    name = max(errors, key=lambda n: np.nan_to_num(errors[n], nan=np.inf))
    if not errors[name] <= TOLERANCE:
        raise Refusal(f"{name} of the graph differs from PyTorch's by {errors[name]:.1e}", "an empty row must not divide by its length: use .clamp(min=1)"
                      if np.isnan(errors[name]) else "look for an operation whose result is not determined, as an index out of range")
    return errors[name], name


def _refuse_dependence_on_nothing(clean: dict[str, np.ndarray], soiled: dict[str, np.ndarray]) -> None:
    for name, x in clean.items():
        if x.tobytes() != soiled[name].tobytes():
            raise Refusal(f"{name} depends on what stands in an empty row", "clean inputs without lengths with torch.where(length > 0, x, 0), and clamp ids to their table")


def _refuse_weight_of_nothing(out: dict[str, np.ndarray], bundle) -> None:
    if out["loss"] != 0 or out["loss_weight"] != 0:
        raise Refusal(f"with every row empty, loss is {out['loss']:.6g} and loss_weight {out['loss_weight']:.6g}, where both must be 0",
                      "weight each row's part by a mask of its length, and divide by the masks' sum.clamp(min=1)")
    if bad := [name for name, x in out.items() if not np.isfinite(x).all()]:
        raise Refusal(f"with every row empty, {bad[0]} is not finite", "divide by count.clamp(min=1); torch.where must also guard the branch that it leaves out")
