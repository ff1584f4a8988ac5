"""What eager PyTorch makes of a batch (eager.py), for a graph to be compared with, and which differences are rounding."""

from collections.abc import Callable, Collection, Iterable
from functools import partial

import numpy as np
import torch
from torch import Tensor

from . import nonfinite, progress, refusal, saturated, state, ties, watch
from .inputs import lengths, without
from .module import Export, Step
from .refusal import Refusal

# The largest error, as a part of a gradient's norm. A gradient far smaller than all others together is rounding; its error is a part of
# their norm. Correct graphs usually stay below 1e-5. A gradient that is a small difference of large terms loses digits, also in PyTorch:
# 4e-4 was measured where PyTorch's float32 differed from its float64 by 1e-4. Wrong graphs differ by 0.1 and more.
TOLERANCE = 1e-2
FLOOR = 1e-4
# What is off by more than TOLERANCE may be a sum of terms that cancel, as the gradient of a bias before a norm. So PyTorch runs again, every weight
# and number moved by a unit in the last place: an error up to so many times of what that changes is rounding. 3 times were measured.
ROUNDINGS = 16
# The same where PyTorch's results move, each operator's: that is all that another order of sums can do.
_OF_RESULTS = 4
_RERUNS = 3


class Reference:
    """What PyTorch makes of a batch, for a graph to be compared with."""

    tolerance = TOLERANCE

    def __init__(self, step: Step, tensors: dict[str, Tensor], empty: int | None = None, seed: int = -1):
        """empty is an empty row of the tensors. A seed below 0 means without dropout."""
        # An empty row moves the noise of the rows behind it. So where a module draws noise, PyTorch gets the row, too.
        moves = empty is not None and step.draws_noise
        self.tensors = tensors if empty is None or moves else without(step.inputs, tensors, empty)
        self.step, self.seed, self.empty = step, torch.tensor(seed), empty is not None
        self._run = step.named if moves else step.plain
        self._dropped = dropped_row(step, tensors, None if moves else empty)
        self._given = tensors

    def outputs(self, *state: Tensor, tensors: dict[str, Tensor] | None = None) -> dict[str, Tensor]:
        """What the module returns by PyTorch. Raises Refusal with the user's line."""
        try:
            return self._run(*(tensors or self.tensors).values(), self.seed, *state)
        except Refusal:
            raise
        except Exception as error:
            hint = "below of an Input is the size of the table that it indexes" if isinstance(error, IndexError) else watch.way_out(error)
            raise Refusal(f"on a random batch, {watch.summary(error)}", hint, refusal.within(error)) from error

    def compare(self, got: dict[str, np.ndarray], chosen: Callable[[], list[np.ndarray]]) -> tuple[float, str]:
        """The largest error of a graph's outputs, and the tensor's name. Raises Refusal when it is above the tolerance.

        chosen asks the graph what it decided.
        """
        worst = self.worst(got, chosen)
        if np.isnan(worst[0]):
            raise nonfinite.explain(f"in a batch {'with an empty row' if self.empty else 'without empty rows'}, {worst[1]} is NaN",
                                    lambda: self.step.named(*self._given.values(), self.seed)["loss"], trained(self.step))
        try:
            refuse_difference(worst)
        except Refusal as error:
            raise saturated.explained(error, lambda: self.step.named(*self._given.values(), self.seed)) from error
        return worst

    def worst(self, got: dict[str, np.ndarray], chosen: Callable[[], list[np.ndarray]]) -> tuple[float, str]:
        """The largest error of a graph's outputs that is not rounding, and the tensor's name."""
        look = partial(self._limits, ())
        return largest(ties.alike(partial(self._errors, got), look, chosen, self._dropped, self.tolerance))

    def _errors(self, got: dict[str, np.ndarray], decided: ties.Decided) -> dict[str, float]:
        """The errors of all outputs relative to their scales, without what is rounding. Looking for that notes what PyTorch decides."""
        errors, scales = {}, {}

        def note(name: str, want: Tensor) -> None:
            scales[name] = float(torch.linalg.vector_norm(want))
            errors[name] = float(torch.linalg.vector_norm(torch.from_numpy(got[name]) - want))

        outputs = self._with_gradients(note)
        scales = self._scales(scales, outputs["loss"])
        for name, want in outputs.items():
            if not name.startswith(state.PREFIX):
                errors[name], scales[name] = abs(float(got[name]) - want), max(abs(want), 1e-6)
        if wrong := {name: error for name, error in errors.items() if error > self.tolerance * scales[name]}:
            by_rounding = self._limits(wrong, decided)
            errors |= {name: 0.0 for name, error in wrong.items() if error <= by_rounding[name]}
        errors = {name: error / scales[name] for name, error in errors.items()}
        return errors | {state.PREFIX + name: error for name, error in distances(state_of(got), state_of(outputs)).items()}

    def _scales(self, norms: dict[str, float], loss: float) -> dict[str, float]:
        """What an error of each gradient is a part of, from the norms of PyTorch's."""
        floor = FLOOR * float(np.linalg.norm(list(norms.values())))
        return {name: max(norm, floor, np.finfo(np.float32).tiny) for name, norm in norms.items()}

    def _limits(self, names: Collection[str], decided: ties.Decided) -> dict[str, float]:
        """Up to which error what PyTorch gives under these names is rounding. What PyTorch decides is noted."""
        return limits(partial(self._named, names), self.step.parameters(), self.tensors, decided)

    def _with_gradients(self, note: Callable[[str, Tensor], None], tensors: dict[str, Tensor] | None = None) -> dict[str, float | np.ndarray]:
        """The outputs. The gradients are noted by name, one by one, and freed."""
        taken = []

        def take(name: str, p: Tensor) -> None:
            want, p.grad = p.grad, None
            progress.operator(f"PyTorch's gradient of {name}", len(taken) + 1, len(hooks))
            taken.append(name)
            note("grad." + name, want)

        hooks = [p.register_post_accumulate_grad_hook(partial(take, name)) for name, p in self.step.named_parameters() if p.requires_grad]
        try:
            outputs = self.outputs(tensors=tensors)
            outputs["loss"].backward()
        finally:
            for hook in hooks:
                hook.remove()
        return {name: x.numpy() if name.startswith(state.PREFIX) else x.item() for name, x in outputs.items()}

    def norms(self) -> tuple[dict[str, float], float]:
        """The norms of PyTorch's gradients, and the loss. Raises Refusal with the user's line."""
        norms = {}
        outputs = self._with_gradients(lambda name, x: norms.__setitem__(name, float(torch.linalg.vector_norm(x))))
        return norms, outputs["loss"]

    def _named(self, names: Collection[str], tensors: dict[str, Tensor]) -> dict[str, Tensor]:
        """What PyTorch gives under these names."""
        found: dict[str, Tensor] = {}
        outputs = self._with_gradients(lambda name, x: found.__setitem__(name, x) if name in names else None, tensors)
        return found | {name: torch.tensor(x) for name, x in outputs.items() if name in names}


def dropped_row(described: Export | Step, tensors: dict[str, Tensor], row: int | None) -> tuple[int, int] | None:
    """The row and the number of rows, if there is such a row."""
    return None if row is None else (row, len(tensors[min(lengths(described.inputs))]))


def trained(step: Step) -> list[Tensor]:
    return [p for p in step.parameters() if p.requires_grad]


def near(x: Tensor, random: torch.Generator, together: bool = False) -> Tensor:
    """A tensor whose numbers differ in the last place, each up or down, or all of them together."""
    if not x.is_floating_point():
        return x
    signs = torch.randint(0, 2, () if together else x.shape, generator=random) * 2 - 1
    return x * (1 + signs * torch.finfo(x.dtype).eps)


def limits(run: Callable[[dict[str, Tensor]], dict[str, Tensor]], weights: Iterable[Tensor],
           tensors: dict[str, Tensor], decided: ties.Decided, together: bool = False) -> dict[str, float]:
    """Up to which error each of run's results is rounding. What PyTorch decides is noted."""
    by_numbers = moved(run, weights, tensors, decided=decided, together=together)
    try:
        by_results = moved(run, (), tensors, results=True, decided=decided, together=together)
    except Exception:
        # A probability of 1 that moves is none, which binary_cross_entropy and bernoulli refuse.
        by_results = dict.fromkeys(by_numbers, 0.0)
    return {name: max(ROUNDINGS * far, _OF_RESULTS * by_results[name]) for name, far in by_numbers.items()}


def moved(run: Callable[[dict[str, Tensor]], dict[str, Tensor]], weights: Iterable[Tensor], tensors: dict[str, Tensor],
          results: bool = False, decided: ties.Decided | None = None,
          together: bool = False) -> dict[str, float]:
    """How far run's results are from those of the same batch when its numbers, and the weights, differ in the last place,
    or the result of every operator: the median of several. Those of a tensor move together or each by itself."""
    random = torch.Generator().manual_seed(0)

    def again(given: dict[str, Tensor]) -> dict[str, Tensor]:
        # Other random numbers are no rounding.
        with torch.random.fork_rng():
            torch.manual_seed(0)
            return run(given)

    # An element that rounding turns over is no rounding either: ties.py decides about it.
    decided = ties.Decided() if decided is None else decided
    with decided.noted():
        want = again(tensors)
    apart, kept = {name: [] for name in want}, [(p, p.detach().clone()) for p in weights]
    try:
        for n in range(_RERUNS):
            progress.at("PyTorch, rounded otherwise", n + 1, _RERUNS)
            with torch.no_grad():
                for p, former in kept:
                    p.copy_(near(former, random, together))
            with decided.held(random if results else None, together):
                found = again(tensors if results else {name: near(x, random, together) for name, x in tensors.items()})
            for name, of in apart.items():
                of.append(float(torch.linalg.vector_norm(found[name] - want[name])))
    finally:
        with torch.no_grad():
            for p, former in kept:
                p.copy_(former)
    return {name: float(np.median(of)) for name, of in apart.items()}


def state_of(outputs: dict) -> dict:
    """The state that a batch left, by the names of the buffers. Arrays are copied."""
    left = {name.removeprefix(state.PREFIX): x for name, x in outputs.items() if name.startswith(state.PREFIX)}
    return {name: x.copy() if isinstance(x, np.ndarray) else x for name, x in left.items()}


def distances(got: dict[str, np.ndarray], want: dict[str, np.ndarray | Tensor]) -> dict[str, float]:
    """The errors of state, relative to the norm of what it should be. A tensor far smaller than all others together is rounding."""
    norms = {name: float(np.linalg.norm(x)) for name, x in want.items()}
    floor = max(FLOOR * float(np.linalg.norm(list(norms.values()))), 1e-6)
    return {name: float(np.linalg.norm(got[name] - np.asarray(x))) / max(norms[name], floor) for name, x in want.items()}


def largest(errors: dict[str, float]) -> tuple[float, str]:
    name = max(errors, key=lambda n: np.nan_to_num(errors[n], nan=np.inf))
    return errors[name], name


def refuse_difference(worst: tuple[float, str]) -> None:
    if not worst[0] <= TOLERANCE:
        raise Refusal(f"{worst[1]} of the graph differs from PyTorch's by {worst[0]:.1e}",
                      "look for an operation whose result is not determined: an index out of range, the order of equal elements, "
                      "or abs, sign and angle of what is 0 but for rounding, as in silence")
