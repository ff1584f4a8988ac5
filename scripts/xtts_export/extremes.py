"""Compares a graph with eager PyTorch on batches that normal numbers do not make: equal elements, zeros, and large
numbers, where functions saturate.

Such a batch is left out where PyTorch's own loss or gradients are not finite, or where the user's code stops.
"""

from collections.abc import Callable, Collection
from functools import partial

import numpy as np
from torch import Tensor
from torch.utils._python_dispatch import TorchDispatchMode

from . import ties
from .inputs import batch
from .module import Export, Step
from .reference import Reference, limits
from .refusal import Refusal

# The largest error, as a part of a gradient's norm. A norm of equal elements amplifies rounding. A wrong form differs
# by 0.1 and more.
TOLERANCE = 5e-2
# The least that a gradient counts for: so much of all gradients' norm, here and in a batch of normal numbers.
_FLOOR = 1e-2
# The error of a gradient, times 1 and its parameter's norm, is a change of the loss. Less than so much of the loss is
# rounding.
_OF_LOSS = 4 * float(np.finfo(np.float32).eps)
_LARGE = 1e4
_ROWS = 2
# Of equal elements PyTorch takes any.
_ANY_OF_EQUAL = {"topk", "kthvalue", "median", "nanmedian", "mode"}
_EQUAL_HINT = ("look for an operation that chooses among equal elements, as topk, or divides by a difference: "
               "clamp(min=1e-5) what it divides by")
_LARGE_HINT = "look for an operation that overflows or cancels, as exp, a power or a difference of squares: clamp what it gets"

Run = Callable[[dict[str, Tensor]], dict[str, np.ndarray]]


def check(export: Export, step: Step, sizes: dict[str, int], run: Run, chosen: Callable[[], list[np.ndarray]]) -> None:
    """Raises Refusal where the graph that run runs is not PyTorch's. Of equal elements, the first batch that PyTorch
    takes counts. chosen asks the graph what it decided."""
    numbers = {i.name for i in export.inputs if i.dtype == "f32" and not i.scalar}
    if not numbers:
        return
    normal = batch(export.inputs, {**sizes, "B": _ROWS}, np.random.default_rng(4))
    if (usual := _norms(step, normal)) is None:
        return

    def compare(what: str, change: Callable[[Tensor], Tensor], equal: bool, hint: str) -> bool:
        """Whether PyTorch takes the batch."""
        tensors = {name: change(x) if name in numbers else x for name, x in normal.items()}
        try:
            got = run(tensors)
        except Refusal:
            if _norms(step, tensors) is None:
                return False
            raise
        try:
            error, name = _Reference(step, tensors, usual, equal).worst(got, chosen)
        except _Left:
            return False
        if not error <= TOLERANCE:
            differs = f"differs from PyTorch's by {error:.1e}" if np.isfinite(error) else "is not finite, and PyTorch's is"
            raise Refusal(f"in a batch of {what}, {name} of the graph {differs}", hint)
        return True

    if not compare("equal elements and zeros", _equal_and_zero, True, _EQUAL_HINT):
        compare("equal elements", _equal, True, _EQUAL_HINT)
    compare("large numbers", lambda x: x * _LARGE, False, _LARGE_HINT)


def _norms(step: Step, tensors: dict[str, Tensor]) -> dict[str, float] | None:
    """Of PyTorch's gradients. None where one is not finite, or the user's code stops."""
    try:
        norms, loss = Reference(step, tensors).norms()
    except Refusal:
        return None
    return norms if _finite(norms, loss) else None


def _finite(norms: dict[str, float], loss: float) -> bool:
    return bool(np.isfinite([loss, *norms.values()]).all())


class _Left(Exception):
    """PyTorch does not take the batch."""


class _Reference(Reference):
    """Raises _Left where PyTorch's first run stops, or is not finite."""

    tolerance = TOLERANCE
    # Whether PyTorch has taken the batch.
    _taken = False

    def __init__(self, step: Step, tensors: dict[str, Tensor], usual: dict[str, float], equal: bool):
        """usual has the norms of gradients in a batch of normal numbers. Equal elements stay so."""
        super().__init__(step, tensors)
        self._usual, self._equal = usual, equal

    def _with_gradients(self, *args, **options) -> dict[str, float | np.ndarray]:
        if self._taken:
            return super()._with_gradients(*args, **options)
        try:
            with _Seen() as seen:
                outputs = super()._with_gradients(*args, **options)
        except Refusal as error:
            raise _Left from error
        self._equal &= not seen.arbitrary
        return outputs

    def _scales(self, norms: dict[str, float], loss: float) -> dict[str, float]:
        if not self._taken and not _finite(norms, loss):
            raise _Left
        self._taken = True
        floor = _FLOOR * max(float(np.linalg.norm(list(of.values()))) for of in (norms, self._usual))
        sizes = {"grad." + name: float(p.detach().norm()) for name, p in self.step.named_parameters()}
        rounding = abs(loss) * _OF_LOSS / TOLERANCE
        return {name: max(norm, floor, rounding / (1 + sizes[name]), np.finfo(np.float32).tiny) for name, norm in norms.items()}

    def _limits(self, names: Collection[str], decided: ties.Decided) -> dict[str, float]:
        return limits(partial(self._named, names), self.step.parameters(), self.tensors, decided, together=self._equal)


def _equal(x: Tensor) -> Tensor:
    """Each row has its first number everywhere."""
    return x.flatten(1)[:, :1].reshape([-1] + [1] * (x.dim() - 1)).expand(x.shape).clone() if x.dim() > 1 else x


def _equal_and_zero(x: Tensor) -> Tensor:
    x = _equal(x).clone()
    x[1:] = 0
    return x


class _Seen(TorchDispatchMode):
    """Whether an operator ran that takes any of equal elements."""

    arbitrary = False

    def __torch_dispatch__(self, operator, types, args=(), kwargs=None):
        self.arbitrary |= operator._schema.name.partition("::")[2] in _ANY_OF_EQUAL
        return operator(*args, **(kwargs or {}))
