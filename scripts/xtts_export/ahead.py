"""The training graph, traced in a process of its own while the dry run looks for problems.

The trace takes for granted what the dry run has not found yet: that the module takes the sizes that are tried, and
changes no further buffer. A dry run that finds otherwise, or a problem, ends the process. If the process fails, the
graph is traced after the dry run, which has the error.
"""

from types import SimpleNamespace

from . import clean, forked, joint, progress
from .inputs import SEED, zeros
from .module import Export, Step

# A trace asks the dry run where an error is. The errors of this trace are not shown.
_NO_DRY_RUN = SimpleNamespace(changed={}, place=lambda _: None, writes=lambda: None)


class Ahead:
    """The process, if there is one. It ends with the context."""

    def __init__(self):
        self._forked: forked.Forked | None = None

    def __enter__(self) -> "Ahead":
        return self

    def __exit__(self, *_) -> None:
        self.stop()

    def begin(self, export: Export, step: Step, sizes: dict[str, int]) -> None:
        """Traces with these sizes and the state that the step has now."""
        self.stop()

        def work() -> tuple[bytes, clean.Gains, tuple[str, ...]]:
            step.outputs = None
            inputs = [*export.inputs, SEED, *step.state]
            example = zeros(inputs, sizes)
            model, gains = joint.made(step, inputs, example, step.returned, True, _NO_DRY_RUN, "f32", export.sizes())
            return model.SerializeToString(), gains, step.returned()

        # The losses of several players are traced one after the other, each with the state that all of them have.
        if forked.possible() and not export.players:
            self._forked = forked.Forked(work, export.module)

    def made(self, outputs: tuple[str, ...]) -> tuple[bytes, clean.Gains] | None:
        """The graph with these outputs, and what cleaning took away, or None."""
        if self._forked is None:
            return None
        progress.at(self._forked.line)
        found, self._forked = self._forked.result(), None
        return found[:2] if found and found[2] == outputs else None

    def stop(self) -> None:
        if self._forked is not None:
            self._forked.stop()
            self._forked = None
