"""Elements that rounding alone decides, in PyTorch and in a graph: the phase of a negative number whose imaginary part
is 0 but for rounding, which is pi or -pi, and which of two numbers is the smallest if they differ in the last place.

What follows may differ by any amount, and both are right. So the check looks for such elements: those that PyTorch
itself decides otherwise when every result of an operator moves by a unit in the last place. Then it looks for the sides
on which PyTorch agrees with the graph. No limit grows: with some of these elements on the other side, everything must
agree as well as it must without any.
"""

import contextlib
import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass

import torch
from torch import Tensor
from torch.utils._python_dispatch import TorchDispatchMode

from . import refusal

aten = torch.ops.aten
_PHASES = {aten.angle.default, aten.atan2.default}
# Where the indices are among the results, and the place of the axis among the arguments.
_INDICES = {aten.argmax.default: 0, aten.argmin.default: 0, aten.max.dim: 1, aten.min.dim: 1, aten.topk.default: 1}
_RERUNS = 6
# A phase may be turned if its imaginary part is so many units of the largest magnitude, or less.
_UNITS = 16
# Each costs a run of PyTorch, or several.
_MOST = 48
_SWEEPS = 3

# An element of a result: the number of the call, and the place in it.
Element = tuple[int, int]


@dataclass
class _Call:
    operator: object
    results: tuple[Tensor, ...]
    taken_of: Tensor  # what an index chooses from
    axis: int | None
    place: str | None

    def otherwise(self, other: "_Call") -> Tensor:
        """The elements that the other call of the same operator decides otherwise, in one dimension."""
        if self.operator in _PHASES:
            turned = (self.results[0] - other.results[0]).abs() > math.pi
        else:
            mine, theirs = (call.results[_INDICES[self.operator]] for call in (self, other))
            # Of equal numbers, PyTorch takes the first one: rounding decides nothing.
            turned = (mine != theirs) & (self._number(mine) != self._number(theirs))
        return turned.flatten().nonzero().flatten()

    def turned(self) -> "tuple[_Call, Tensor] | None":
        """Of phases: the call with all on the other side of the cut, and the elements that are next to it."""
        if self.operator is not aten.angle.default or not self.taken_of.is_complex():
            return None
        z = self.taken_of
        least = _UNITS * torch.finfo(z.real.dtype).eps * z.abs().max() if z.numel() else 0.0
        # Where the imaginary part is 0 by itself, as in the highest frequency, nothing is decided.
        beside = (z.real < 0) & (z.imag != 0) & (z.imag.abs() <= least)
        other = _Call(self.operator, (-self.results[0],), z, None, self.place)
        return other, beside.flatten().nonzero().flatten()

    def _number(self, index: Tensor) -> Tensor:
        if self.axis is None:
            return self.taken_of.flatten()[index]
        kept = index.dim() == self.taken_of.dim()
        number = self.taken_of.gather(self.axis, index if kept else index.unsqueeze(self.axis))
        return number if kept else number.squeeze(self.axis)


class _Mode(TorchDispatchMode):
    """Notes the calls, and may change what they decide. With random numbers, every other result moves by a unit in the
    last place."""

    def __init__(self, change: Callable[[int, _Call], None] | None = None, random: torch.Generator | None = None,
                 placed: bool = False):
        super().__init__()
        self.calls: list[_Call] = []
        self.change, self.random, self.placed, self.units = change, random, placed, 1

    def __torch_dispatch__(self, operator, types, args=(), kwargs=None):
        results = operator(*args, **(kwargs or {}))
        every = results if isinstance(results, (tuple, list)) else (results,)
        if operator in _PHASES or operator in _INDICES:
            place = 2 if operator is aten.topk.default else 1
            last = -1 if operator is aten.topk.default else None
            axis = None if operator in _PHASES else args[place] if len(args) > place else last
            call = _Call(operator, tuple(every), args[0], axis, refusal.here() if self.placed else None)
            if self.change is not None:
                self.change(len(self.calls), call)
            self.calls.append(call)
        elif self.random is not None and not any(r.alias_info for r in operator._schema.returns):
            for x in every:
                self._move(x)
        return results

    def _move(self, x: object) -> None:
        if isinstance(x, Tensor) and x.is_complex():
            x = torch.view_as_real(x)
        # Of what was expanded, several elements are one.
        if isinstance(x, Tensor) and x.is_floating_point() and 0 not in x.stride():
            signs = torch.randint(0, 2, x.shape, generator=self.random) * 2 - 1
            x.mul_(1 + signs * self.units * torch.finfo(x.dtype).eps)


@contextlib.contextmanager
def noted() -> Iterator[list]:
    """Notes what is decided, for held."""
    with _Mode() as mode:
        yield mode.calls


@contextlib.contextmanager
def held(calls: list, random: torch.Generator | None = None) -> Iterator[None]:
    """Within it, what rounding turns is decided as in the calls. With random numbers, every result of an operator moves
    by a unit in the last place."""
    def change(i: int, call: _Call) -> None:
        same = i < len(calls) and calls[i].operator is call.operator
        if same and calls[i].results[0].shape == call.results[0].shape:
            _put(call, calls[i], calls[i].otherwise(call))

    with _Mode(change, random):
        yield


def _put(call: _Call, source: _Call, elements: Tensor) -> None:
    for to, of in zip(call.results, source.results, strict=True):
        places = torch.unravel_index(elements, to.shape)
        to[places] = of[places]


@dataclass
class Sides:
    """Elements that are decided otherwise than PyTorch did first."""

    taken: dict[Element, _Call]
    found: int
    moves: dict[str, float]  # of PyTorch's results when its roundings do, as parts of their scales
    place: str | None

    @contextlib.contextmanager
    def used(self) -> Iterator[None]:
        with _taking(self.taken):
            yield

    def __str__(self) -> str:
        name = max(self.moves, key=self.moves.get)
        phases = next(iter(self.taken.values())).operator in _PHASES
        kind = "phases are pi or -pi" if phases else "of the largest or smallest numbers are chosen"
        where = f", {self.place}" if self.place else ""
        return (f"{self.found} {kind} by rounding{where}: PyTorch's own {name} moves by {self.moves[name]:.1e} when "
                f"results move by a unit in the last place; with {len(self.taken)} of them on the other side, PyTorch "
                "and the graph agree")


def _taking(taken: dict[Element, _Call]) -> _Mode:
    def change(i: int, call: _Call) -> None:
        for (number, element), source in taken.items():
            if number == i:
                _put(call, source, torch.tensor([element]))

    return _Mode(change)


def explain(run: Callable[[], dict[str, Tensor]], got: dict[str, Tensor], scales: dict[str, float],
            tolerance: float) -> Sides | None:
    """The sides with which PyTorch, which run computes, gives what the graph did: all within the tolerance, as parts of
    the scales. None if there are none."""
    def apart(one: dict[str, Tensor], other: dict[str, Tensor]) -> dict[str, float]:
        return {name: float(torch.linalg.vector_norm(x - other[name])) / scales[name] for name, x in one.items()}

    def errors(taken: dict[Element, _Call]) -> dict[str, float]:
        with _taking(taken):
            return apart(run(), got)

    with _Mode(placed=True) as first:
        plain = run()
    candidates: dict[Element, _Call] = {}
    for i, call in enumerate(first.calls):
        if found := call.turned():
            candidates |= {(i, element): found[0] for element in found[1].tolist()}
    moves = dict.fromkeys(plain, 0.0)
    random = torch.Generator().manual_seed(0)
    for n in range(_RERUNS if first.calls else 0):
        with _Mode(random=random) as mode:
            # A sum of many terms has several of these errors.
            mode.units = 1 + n % 3 * 2
            try:
                found = run()
            except Exception:
                # A number that moves may leave what a function takes, as a probability of 1 does.
                return None
        if [call.operator for call in mode.calls] != [call.operator for call in first.calls]:
            return None
        if mode.units == 1:
            moves = {name: max(moves[name], x) for name, x in apart(found, plain).items()}
        for i, (call, other) in enumerate(zip(first.calls, mode.calls, strict=True)):
            candidates |= {(i, element): other for element in call.otherwise(other).tolist()}
    if not candidates or len(candidates) > _MOST:
        return None
    taken, best = {}, apart(plain, got)
    for element in [*candidates] * _SWEEPS:
        other = dict(taken)
        if other.pop(element, None) is None:
            other[element] = candidates[element]
        now = errors(other)
        if math.hypot(*now.values()) < math.hypot(*best.values()):
            taken, best = other, now
        if max(best.values()) <= tolerance:
            break
    if not taken or not max(best.values()) <= tolerance:
        return None
    return Sides(taken, len(candidates), moves, first.calls[min(taken)[0]].place)
