"""The eval graph of a bundle: a part of the training graph, or a graph that is traced for itself.

It is traced for itself if it has state or several players, or if the training graph has random numbers or another mode.
As far as this is known after the dry run, a process of its own traces it while the training graph is made and checked.
"""

from pathlib import Path

import onnx

from . import forked, joint, progress, state, watch
from .cache import Cache
from .clean import Gains
from .inputs import SEED, zeros
from .module import Export, Step
from .watch import DryRun

EVAL = "eval_model.onnx"


def evaluation(export: Export, steps: dict[str, Step]) -> Step:
    """The loss of the last player, and the metrics of all."""
    step = Step(export)
    step.keep({name: line for s in steps.values() for name, line in s.written.items()})
    step.outputs = tuple(dict.fromkeys(["loss", "loss_weight", *(name for s in steps.values() for name in s.outputs)]))
    return step


class EvalGraph:
    """The process, if there is one, ends with the context."""

    def __init__(self, export: Export, steps: dict[str, Step], dry: dict[str, DryRun], folder: Path, cache: Cache):
        """dry has the dry runs of steps."""
        self._export, self._steps, self._dry, self._path, self._cache = export, steps, dry, folder / EVAL, cache
        self._held = next(iter(steps.values())).state
        self._apart = bool(export.players or self._held)
        draws = any(step.drawn or step.draws_noise for step in steps.values())
        begins = export.eval_graph and (self._apart or draws) and forked.possible()
        self._forked = forked.Forked(self._work, export.module) if begins else None

    def __enter__(self) -> "EvalGraph":
        return self

    def __exit__(self, *_) -> None:
        self.stop()

    def write(self, training: onnx.ModelProto) -> Gains | None:
        """Writes the graph, and returns what cleaning took away. None if it is a part of training, the training graph in f32."""
        if self._apart or joint.uses(training, SEED.name) or self._depends_on_mode():
            return self._taken() or self._traced(self._cache)
        self.stop()
        [step] = self._steps.values()
        joint.part(training, step.outputs, SEED.name, self._path)
        return None

    def stop(self) -> None:
        if self._forked:
            self._forked.stop()

    def _work(self) -> tuple[Gains, Cache]:
        own = Cache(self._cache.folder, self._cache.limit)
        return self._traced(own), own

    def _traced(self, cache: Cache) -> Gains:
        export, options = self._export, {}
        if self._apart:
            step = evaluation(export, self._steps)
        else:
            [(player, step)] = self._steps.items()
            options = {"dry": self._dry[player]}
        inputs = [*export.inputs, *self._held]
        with step.evaluating():
            return joint.export(step, inputs, zeros(inputs, self._sizes), step.outputs, self._path, buckets=export.sizes(), cache=cache,
                                backward=False, **options)[1]

    def _taken(self) -> Gains | None:
        """What the process has made. None if there is none, or if it failed: this one then has the error."""
        if self._forked is None:
            return None
        progress.at(self._forked.line)
        if (made := self._forked.result()) is None:
            return None
        gains, own = made
        for notes in ("found", "made", "remarks"):
            mine = getattr(self._cache, notes)
            mine.extend(x for x in getattr(own, notes) if x not in mine)
        return gains

    @property
    def _sizes(self) -> dict[str, int]:
        return next(iter(self._dry.values())).sizes

    def _depends_on_mode(self) -> bool:
        """Whether the step computes something else in evaluation mode."""
        [step] = self._steps.values()
        inputs, buckets = [*self._export.inputs, SEED], self._export.sizes()

        def program() -> str | None:
            return watch.dry_run(step, inputs, zeros(inputs, self._sizes), backward=False, buckets=buckets).program.digest()

        with state.mode_reads() as asked:
            training = program()
        if not asked:
            return False
        with step.evaluating():
            return training is None or training != program()
