"""Elements that rounding alone decides, in PyTorch and in a graph: the phase of a negative number whose imaginary part
is 0 but for rounding, which is pi or -pi, and which of two numbers is the smallest if they differ in the last place.

What follows may differ by any amount, and both are right. So the check asks the graph what it decided, by a copy that
returns it, and PyTorch takes that where rounding may decide it. No limit grows: everything must then agree as well as
it must without. Where more than rounding decides, PyTorch decides for itself.

The gradient of a phase is as large as its number is small, so phases are also taken where they differ in rounding only.
"""

import contextlib
import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np
import onnx
import torch
from onnx import numpy_helper
from torch import Tensor
from torch.utils._python_dispatch import TorchDispatchMode

from . import progress, refusal, session

aten = torch.ops.aten
# Of a logarithm, the imaginary part is one.
_PHASES = {aten.angle.default, aten.atan2.default, aten.log.default}
# Where the indices are among the results, and the place of the axis among the arguments.
_INDICES = {aten.argmax.default: 0, aten.argmin.default: 0, aten.max.dim: 1, aten.min.dim: 1, aten.topk.default: 1}
# In a graph, and where the indices are among the results.
_CHOOSING = {"ArgMax": 0, "ArgMin": 0, "TopK": 1}
# Rounding decides if less does than so many units in the last place, or than so many times what the number moved by
# when those before it did.
_UNITS = 16


@dataclass
class Call:
    operator: object
    results: tuple[Tensor, ...]
    # What the elements are decided by: imaginary parts, or what an index chooses from.
    by: Tensor
    real: Tensor | None
    axis: int | None
    place: str | None
    noise: Tensor | float = 0.0  # of by
    real_noise: Tensor | float = 0.0

    @property
    def decided(self) -> Tensor:
        return self.results[_INDICES.get(self.operator, 0)]

    def same(self, other: "Call") -> bool:
        return self.operator is other.operator and self.by.shape == other.by.shape

    def note(self, again: "Call") -> None:
        """What moved when the call ran again."""
        self.noise = torch.as_tensor(self.noise).maximum((again.by - self.by).abs())
        if self.real is not None:
            self.real_noise = torch.as_tensor(self.real_noise).maximum((again.real - self.real).abs())

    def tied(self, theirs: Tensor) -> Tensor:
        """Where rounding alone may have decided so."""
        noise = torch.as_tensor(self.noise).expand(self.by.shape)
        if self.operator in _INDICES:
            one, other = (self._at(self.by, index) for index in (self.decided, theirs))
            far, size = (one - other).abs(), one.abs()
            # Of equal numbers, PyTorch takes the first one, but topk takes any.
            may = far > (-1 if self.operator is aten.topk.default else 0)
            noise = self._at(noise, self.decided) + self._at(noise, theirs)
        else:
            size = torch.hypot(self.by, self.real)
            # As far as the numbers are that have these phases.
            far = 2 * size * ((self.decided - theirs) / 2).sin().abs()
            # Rounding decides nothing about what is 0 by itself: padding, the imaginary part of the highest frequency.
            may = ~self.turned(theirs) | (self.by != 0) | (noise > 0)
            noise = torch.hypot(noise, torch.as_tensor(self.real_noise))
            may &= (size > 0) | (noise > 0)
        return may & (far <= _UNITS * (noise + torch.finfo(self.by.dtype).eps * size))

    def apart(self, theirs: Tensor) -> Tensor:
        """How far the numbers are that decide so, as parts of the largest one."""
        if self.operator in _INDICES:
            one, other = (self._at(self.by, index) for index in (self.decided, theirs))
            largest = self.by.abs().max() if self.axis is None else self.by.abs().amax(self.axis, keepdim=one.dim() == self.by.dim())
            return (one - other).abs() / largest
        size = torch.hypot(self.by, self.real)
        return 2 * size * ((self.decided - theirs) / 2).sin().abs() / size.max()

    def turned(self, theirs: Tensor) -> Tensor:
        """Of phases: where they are on the other side of the cut."""
        return (self.decided - theirs).abs() > math.pi

    def decide(self, theirs: Tensor, where: Tensor | bool = True) -> None:
        """Changes the results."""
        self.decided.copy_(torch.where(torch.as_tensor(where), theirs, self.decided))
        if len(self.results) > 1:
            self.results[0].copy_(self._at(self.by, self.decided))

    def of(self, arrays: list[np.ndarray], dropped: tuple[int, int] | None) -> Tensor | None:
        """Which of a graph's arrays is this result: of the same size, the one that differs least."""
        mine = self.decided
        fit = [x for x in (_fitted(torch.as_tensor(array), mine.shape, dropped) for array in arrays)
               if x is not None and x.is_floating_point() == mine.is_floating_point()]
        far = lambda x: float((mine != x).sum() if self.operator not in _PHASES else ((mine - x) / 2).sin().abs().sum())
        return min(fit, key=far, default=None)

    def _at(self, x: Tensor, index: Tensor) -> Tensor:
        if self.axis is None:
            return x.flatten()[index]
        kept = index.dim() == x.dim()
        number = x.gather(self.axis, index if kept else index.unsqueeze(self.axis))
        return number if kept else number.squeeze(self.axis)


def _fitted(x: Tensor, shape: torch.Size, dropped: tuple[int, int] | None) -> Tensor | None:
    """The same elements in this shape; dropped is a row that only the graph has, and the number of its rows."""
    plain = lambda shape: [n for n in shape if n != 1]
    if plain(x.shape) != plain(shape) and dropped is not None and x.dim() and x.shape[0] % dropped[1] == 0:
        row, rows = dropped
        x = x.unflatten(0, (rows, -1))
        x = torch.cat([x[:row], x[row + 1:]]).flatten(0, 1)
    return x.reshape(shape) if plain(x.shape) == plain(shape) else None


def _every(results: object) -> tuple | list:
    return results if isinstance(results, (tuple, list)) else (results,)


def _noted(operator: object, results: object, args: tuple) -> Call | None:
    """What rounding may decide of a call, if anything."""
    if operator in _INDICES:
        place, last = (2, -1) if operator is aten.topk.default else (1, None)
        every = _every(results)
        by = args[0] if args[0].is_floating_point() else None
        axis, real = args[place] if len(args) > place else last, None
    elif operator in (aten.angle.default, aten.log.default) and args[0].is_complex():
        every = (results.imag if results.is_complex() else results,)
        by, real, axis = args[0].imag, args[0].real, None
    elif operator is aten.atan2.default:
        every, axis, (by, real) = (results,), None, torch.broadcast_tensors(*args)
    else:
        return None
    if by is None:
        return None
    real = None if real is None else real.detach()
    return Call(operator, tuple(x.detach() for x in every), by.detach(), real, axis, refusal.here())


class _Mode(TorchDispatchMode):
    """Passes the calls to a function, which may change what they decide. With random numbers, every other result moves
    by a unit in the last place: each element by itself, or all of them together, so that equal ones stay equal."""

    def __init__(self, call: Callable[[Call], None], random: torch.Generator | None = None, together: bool = False):
        super().__init__()
        self.call, self.random, self.together = call, random, together

    def __torch_dispatch__(self, operator, types, args=(), kwargs=None):
        results = operator(*args, **(kwargs or {}))
        if (call := _noted(operator, results, args)) is not None:
            self.call(call)
        elif self.random is not None and not any(r.alias_info for r in operator._schema.returns):
            for x in _every(results):
                self._move(x)
        return results

    def _move(self, x: object) -> None:
        if isinstance(x, Tensor) and x.is_complex():
            x = torch.view_as_real(x)
        # Of what was expanded, several elements are one.
        if isinstance(x, Tensor) and x.is_floating_point() and 0 not in x.stride():
            signs = torch.randint(0, 2, () if self.together else x.shape, generator=self.random) * 2 - 1
            x.mul_(1 + signs * torch.finfo(x.dtype).eps)


@dataclass
class Decided:
    """What a run of PyTorch decides, in the order of its calls, and by how much that moves when roundings do."""

    calls: list[Call] = field(default_factory=list)
    ran: bool = False

    @contextlib.contextmanager
    def noted(self) -> Iterator[None]:
        """Notes a run, if none was noted."""
        with contextlib.nullcontext() if self.ran else _Mode(self.calls.append):
            yield
        self.ran = True

    @contextlib.contextmanager
    def held(self, random: torch.Generator | None = None, together: bool = False) -> Iterator[None]:
        """Within it, a run decides as the one that was noted, and notes by how much its numbers are others. With random
        numbers, every result of an operator moves as _Mode says."""
        former = iter(self.calls)

        def hold(call: Call) -> None:
            if (first := next(former, None)) is not None and first.same(call):
                first.note(call)
                call.decide(first.decided)

        with _Mode(hold, random, together):
            yield

    def as_in(self, arrays: list[np.ndarray], dropped: tuple[int, int] | None) -> "Sides | None":
        """What rounding decides otherwise in a graph, which decided the arrays. None if there is nothing."""
        taken = {}
        for i, call in enumerate(self.calls):
            if (theirs := call.of(arrays, dropped)) is not None:
                if (where := (theirs != call.decided) & call.tied(theirs)).any():
                    taken[i] = theirs, where
        return Sides(self.calls, taken) if taken else None


@dataclass
class Sides:
    """Elements that are decided otherwise than PyTorch did first: how, and where, by the number of the call."""

    calls: list[Call]
    taken: dict[int, tuple[Tensor, Tensor]]

    @contextlib.contextmanager
    def used(self) -> Iterator[None]:
        """Within it, each run decides so."""
        ran = 0

        def take(call: Call) -> None:
            nonlocal ran
            i, ran = ran % len(self.calls), ran + 1
            if i in self.taken and self.calls[i].same(call):
                call.decide(*self.taken[i])

        with _Mode(take):
            yield

    def explained(self, errors: dict[str, float]) -> str:
        """errors are those with what PyTorch decided first."""
        name, number = max(errors, key=errors.get), min(self.taken)
        first, (theirs, where) = self.calls[number], self.taken[number]
        count = int((where & first.turned(theirs) if first.operator in _PHASES else where).sum())
        kind = "phase{} of pi or -pi" if first.operator in _PHASES else "choice{} of the largest or smallest number"
        what = f"{count} {kind.format('' if count == 1 else 's')}" if count else "phases of what is nearly silent"
        place = f", {first.place}" if first.place else ""
        return (f"rounding decides {what}{place}: this changes {name} by {errors[name]:.1e}, and decided as in the "
                "graph, PyTorch agrees with it")


def alike(measured: Callable[[Decided], dict[str, float]], look: Callable[[Decided], object],
          chosen: Callable[[], list[np.ndarray]], dropped: tuple[int, int] | None,
          tolerance: float) -> dict[str, float]:
    """The errors that are measured. If one is too large, those with PyTorch deciding as the graph where rounding does.

    What is measured notes what PyTorch decides, or else look does. chosen asks the graph. dropped is a row that only
    the graph has, and the number of its rows.
    """
    errors = measured(decided := Decided())
    # Not if one is NaN.
    if not np.max(list(errors.values())) > tolerance:
        return errors
    if not decided.ran:
        look(decided)
    if not decided.calls or (sides := decided.as_in(chosen(), dropped)) is None:
        return errors
    with sides.used():
        left = measured(Decided())
    if np.max(list(left.values())) <= tolerance:
        progress.remark(f"  {sides.explained(errors)}")
    return left


def passed(take: Callable[[Call], None]) -> contextlib.AbstractContextManager:
    """Within it, each call that rounding may decide is passed to take, which may change what it decides."""
    return _Mode(take)


def chosen(path: Path, feed: dict[str, np.ndarray]) -> list[np.ndarray]:
    """What the graph of a file decides when it runs with the feed, as Decided.as_in takes it."""
    model = onnx.load(path)
    names = _decide(model.graph)
    returned = {o.name for o in model.graph.output}
    model.graph.output.extend(info for name, info in names.items() if name not in returned)
    if not names:
        return []
    found = session.run(session.load(model.SerializeToString(), threads=torch.get_num_threads()), feed)
    return [found[name] for name in names]


class Asked:
    """The part of a graph that decides, and nothing else: to be asked many times."""

    def __init__(self, path: Path):
        model = onnx.load(path)
        names = _decide(model.graph)
        made = {name: node for node in model.graph.node for name in node.output}
        needed, left = set(), list(names)
        while left:
            node = made.get(left.pop())
            if node is not None and id(node) not in needed:
                needed.add(id(node))
                left += [*node.input, *(name for name in _captured(node))]
        nodes = [node for node in model.graph.node if id(node) in needed]
        del model.graph.output[:]
        model.graph.output.extend(names.values())
        del model.graph.node[:]
        model.graph.node.extend(nodes)
        self._session = session.load(model.SerializeToString(), threads=torch.get_num_threads()) if names else None

    def __call__(self, feed: dict[str, np.ndarray]) -> list[np.ndarray]:
        return list(session.run(self._session, feed).values()) if self._session else []


def _captured(node: onnx.NodeProto) -> Iterator[str]:
    """What the bodies of a loop or of a branch may take from around it."""
    for attribute in node.attribute:
        for inner in attribute.g.node:
            yield from inner.input
            yield from _captured(inner)


def _decide(graph: onnx.GraphProto) -> dict[str, onnx.ValueInfoProto]:
    """The results that rounding may decide."""
    numbers = {t.name for t in graph.initializer if t.data_type == onnx.TensorProto.FLOAT and not t.dims
               and numpy_helper.to_array(t) == np.float32(math.pi)}
    made = {name: node for node in graph.node for name in node.output}
    names = {}
    for node in graph.node:
        if node.op_type in _CHOOSING:
            names[node.output[_CHOOSING[node.op_type]]] = onnx.TensorProto.INT64
        elif _is_phase(node, made, numbers):
            names[node.output[0]] = onnx.TensorProto.FLOAT
    return {name: onnx.helper.make_tensor_value_info(name, kind, None) for name, kind in names.items()}


def _is_phase(node: onnx.NodeProto, made: dict[str, onnx.NodeProto], numbers: set[str]) -> bool:
    """Whether it is the end of replaced.py's atan2: -a or a, where a is pi - b or b."""
    def chosen_of(name: str, kind: str) -> onnx.NodeProto | None:
        """The node of this kind that makes the second of a Where's inputs of the third."""
        where = made.get(name)
        first = made.get(where.input[1]) if where is not None and where.op_type == "Where" else None
        return first if first is not None and first.op_type == kind and where.input[2] in first.input else None

    sign = chosen_of(node.output[0], "Neg") if node.op_type == "Where" else None
    turned = chosen_of(sign.input[0], "Sub") if sign is not None else None
    return turned is not None and turned.input[0] in numbers
