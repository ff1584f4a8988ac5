"""A step of a run in your own PyTorch module: what `xtts-host replay` has written (docs/step.md), for a debugger.

    from xtts_export.replay import replay
    again = replay("first-step-000057", "my_model.py:build")
"""

import json
import math
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path

import torch
from safetensors.torch import load_file
from torch import Tensor

from . import command, nonfinite, state
from .inputs import occupied, without
from .module import Export, Step
from .refusal import Refusal


@dataclass
class Replayed:
    """A step as PyTorch makes it, beside the run's."""

    loss: float
    metrics: dict[str, float]
    gradients: dict[str, Tensor]
    # Of the run.
    step: dict
    run_gradients: dict[str, Tensor]
    # PyTorch's loss relative to the run's, and the largest distance of a gradient as a part of the norm of all of them, with its name.
    loss_error: float = math.nan
    gradient_error: float = math.nan
    worst: str = ""
    notes: list[str] = field(default_factory=list)

    def __str__(self) -> str:
        run = self.step["loss"]
        lines = [f"step {self.step['step']}: loss {self.loss:.6g} in PyTorch, {'not finite' if run is None else f'{run:.6g}'} in the run"]
        if math.isfinite(self.gradient_error):
            lines.append(f"gradients differ by {self.gradient_error:.1e} of their norm, most of it in {self.worst}")
        return "\n".join(lines + self.notes)


def replay(folder: str | Path, module: Export | str) -> Replayed:
    """Makes the step of a folder again, forward and backward, with its weights, batch and random numbers, and compares loss and gradients.

    module is the Export of the bundle, or MODULE:FUNCTION as `xtts-export module` takes it. A breakpoint() in its forward, its loss or a hook
    stops there. Of a loss or gradients that are not finite, a note names the operation and the line of the module.
    """
    folder = Path(folder)
    step = json.loads((folder / "step.json").read_text())
    export = command.build(module) if isinstance(module, str) else module
    export.module.train()
    found = Replayed(math.nan, {}, {}, step, load_file(folder / step["gradients"]))
    before, after = load_file(folder / step["weights"]), load_file(folder / step["weights_after"])
    for turn, player in enumerate(export.turns()):
        trainer = Step(export, player)
        # A player's turn comes after the updates of those before it.
        earlier = export.turns()[:turn]
        weights = {name: after[name] if earlier and export.owner(name) in earlier else x for name, x in before.items()}
        _load(export, weights)
        with trainer.alone():
            _turn(found, folder, trainer, weights)
    _compare(found)
    return found


def _load(export: Export, weights: dict[str, Tensor]) -> None:
    """Buffers that training does not change, and further names of tied weights, are not in the file."""
    unknown = export.module.load_state_dict(weights, strict=False).unexpected_keys
    if unknown:
        raise Refusal(f"the module has no {unknown[0]}, which the run has trained", "name the function that built the bundle of the run")


def _turn(found: Replayed, folder: Path, trainer: Step, weights: dict[str, Tensor]) -> None:
    """The gradients of a player over the batches of the step: their mean, as the host adds them up."""
    [export] = trainer._export
    learned = {name: p for name, p in trainer.named_parameters() if p.requires_grad}
    sums, total, loss, metrics = {name: torch.zeros_like(p) for name, p in learned.items()}, 0.0, 0.0, {}
    held = [name for name in weights if name not in dict(trainer.named_parameters())]
    # What of the state a batch leaves is what the next one begins with.
    trainer.keep(dict.fromkeys(held))
    left = {spec.name: weights[spec.name] for spec in trainer.state}
    for number, described in enumerate(found.step["batches"]):
        tensors = _rows(found, export, load_file(folder / described["file"]))
        seed = torch.tensor(described["seed"])
        run = _run(trainer, tensors, seed, left)
        for p in learned.values():
            p.grad = None
        results = run()
        results["loss"].backward()
        weight = float(results["loss_weight"])
        for name, p in learned.items():
            if p.grad is not None:
                sums[name] += weight * p.grad
        total, loss = total + weight, loss + weight * float(results["loss"].detach())
        for name, x in results.items():
            if name.startswith("metric."):
                metrics[name] = metrics.get(name, 0.0) + weight * float(x)
        _explain(found, f"batch {number}", learned, results, run)
        left |= {name: results[state.PREFIX + name].detach() for name in left if state.PREFIX + name in results}
    by = 1.0 if export.accumulation == "weighted" else total
    found.loss = loss / by
    found.metrics |= {name.removeprefix("metric."): x / by for name, x in metrics.items()}
    found.gradients |= {name: x / by for name, x in sums.items()}


def _run(trainer: Step, tensors: list[Tensor], seed: Tensor, left: dict[str, Tensor]) -> Callable[[], dict[str, Tensor]]:
    return lambda: trainer.plain(*tensors, seed, *left.values())


def _rows(found: Replayed, export: Export, given: dict[str, Tensor]) -> list[Tensor]:
    """The batch in the order of the inputs, without empty rows, which do not count."""
    if missing := [i.name for i in export.inputs if i.name not in given]:
        raise Refusal(f"the batch of the run has no {missing[0]}", "name the function that built the bundle of the run")
    batch = {i.name: given[i.name] for i in export.inputs}
    rows = occupied(export.inputs, batch)
    if rows is None:
        return list(batch.values())
    empty = [place for place, full in enumerate(rows.reshape(-1).tolist()) if not full]
    if empty and empty[0] < len(rows) - len(empty):
        found.notes.append(f"row {empty[0]} is empty: random numbers of the rows behind it are others in PyTorch")
    for place in reversed(empty):
        batch = without(export.inputs, batch, place)
    return list(batch.values())


def _explain(found: Replayed, where: str, learned: dict[str, Tensor], results: dict[str, Tensor], run: Callable[[], dict[str, Tensor]]) -> None:
    """Notes which operation gives NaN, if one does."""
    bad = [name for name, p in learned.items() if p.grad is not None and not bool(p.grad.isfinite().all())]
    if bool(results["loss"].isfinite()) and not bad:
        return
    what = "the loss" if not bad or not bool(results["loss"].isfinite()) else f"the gradient of {bad[0]}"
    said = str(nonfinite.explain(f"in {where}, {what} is not finite", lambda: run()["loss"], list(learned.values())))
    # An export looks at empty rows only, which have none of the numbers of a clip.
    found.notes.append(said.replace("numbers of empty rows grow", "numbers grow"))


def _compare(found: Replayed) -> None:
    loss, gradients = found.step["loss"], {name: x.float() for name, x in found.run_gradients.items()}
    if loss is not None:
        found.loss_error = abs(found.loss - loss) / max(abs(loss), 1e-12)
    norm = math.sqrt(sum(float(x.double().square().sum()) for x in gradients.values()))
    apart = {name: float((found.gradients[name] - x).double().norm()) for name, x in gradients.items() if name in found.gradients}
    if apart and math.isfinite(norm) and norm > 0:
        found.worst = max(apart, key=apart.get)
        found.gradient_error = math.sqrt(sum(x * x for x in apart.values())) / norm
