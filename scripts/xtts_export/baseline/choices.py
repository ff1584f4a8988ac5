"""What rounding decides in a run: which of two numbers is the largest, where they are as near as rounding, or on which side of its cut a phase is.

One such choice, as that of a quantizer's code, changes a loss by far more than rounding, and both choices are right. So PyTorch trains once more, and
takes the choices that the program's graph makes with the program's own weights, from the checkpoint before each step, wherever the numbers that decide
are nearer than NEAR. If the losses then agree, nothing else made them differ.
"""

import traceback
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from torch import Tensor

from .. import refusal, ties
from ..module import Export
from . import loop, rerun

# Of the largest of the numbers that are chosen from. It is the limit of losses that are said to agree.
NEAR = 1e-5


@dataclass
class Choice:
    """Those of one call that were another one's."""

    step: int
    count: int
    of: int
    apart: float  # the largest distance of two numbers, as a part of the largest of those that were chosen from
    place: str


class Loop(loop.Loop):
    """Trains as loop.Loop does, with the choices of the graphs. To others it adds those that PyTorch would have made otherwise."""

    def __init__(self, export: Export, document: dict, bundle: Path, run: Path, others: list[Choice]):
        super().__init__(export, document)
        self.bundle, self.run, self.steps, self.others = bundle, run, 0, others
        graphs = [g for g in document["graphs"] if (g["kind"], g["precision"]) == ("train", "f32")]
        self.asked = {g.get("player", ""): ties.Asked(bundle / g["file"]) for g in graphs}

    def step(self, line: dict, batch: dict[str, Tensor], seed: Tensor) -> dict[str, dict[str, float]]:
        self.steps += 1
        self.weights = self._saved(self.steps - 1)
        return super().step(line, batch, seed)

    def _results(self, player: str, batch: dict[str, Tensor], seed: Tensor) -> dict[str, Tensor]:
        arrays = self.asked[player]({**self.weights, **{name: x.numpy() for name, x in batch.items()}, "seed": seed.numpy()})
        with ties.passed(lambda call: self._take(call, arrays)):
            return super()._results(player, batch, seed)

    def _update(self, player: str, rate: float, loss: Tensor) -> float:
        # The next players' graphs have the weights that this one has now.
        now = self._saved(self.steps)
        self.weights |= {name: now[name] for name in self.own[player]}
        return super()._update(player, rate, loss)

    def _saved(self, step: int) -> dict[str, np.ndarray]:
        """The program's weights and state after a step."""
        folder = self.run / f"checkpoints/step-{step:06}" if step else self.bundle
        return {name: x.numpy() for name, x in rerun.read(folder / "params.safetensors")[0].items()}

    def _take(self, call: ties.Call, arrays: list[np.ndarray]) -> None:
        theirs = call.of(arrays, None)
        if theirs is None:
            return
        apart = call.apart(theirs)
        if (where := (theirs != call.decided) & (apart <= NEAR)).any():
            self.others.append(Choice(self.steps, int(where.sum()), where.numel(), float(apart[where].max()), _place()))
            call.decide(theirs, where)


def _place() -> str:
    """The user's line that is running. refusal.here takes this folder's files for a user's."""
    frame = next((f for f in reversed(traceback.extract_stack()) if refusal.is_users(f.filename) and Path(f.filename).parent != Path(__file__).parent), None)
    return (frame and refusal.at(frame.filename, frame.lineno or 0, frame.name)) or ""
