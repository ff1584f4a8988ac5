"""A dry run of a module on fake tensors: forward and backward by PyTorch itself, without arithmetic and without memory.

Tracing (joint.py) loses the user's lines, and its errors are about the tracer. So every problem that a plain run shows is reported here,
with its line. The first line of each operator is recorded for problems that appear later.
"""

import contextlib
import logging
import re
import sys
import warnings
from collections.abc import Sequence
from dataclasses import dataclass
from unittest import mock

import numpy as np
import sympy
import torch
from torch import Tensor, _prims_common, nn
from torch._dynamo.source import ConstantSource
from torch._subclasses.fake_tensor import DataDependentOutputException, DynamicOutputShapeException, FakeTensor, FakeTensorMode
from torch.distributions import Distribution
from torch.fx.experimental.symbolic_shapes import DimDynamic, GuardOnDataDependentSymNode, ShapeEnv, StatelessSymbolicContext
from torch.overrides import TorchFunctionMode
from torch.utils._sympy.functions import FloorDiv, Mod, PythonMod
from torch.utils._python_dispatch import TorchDispatchMode

from . import captured, collection, forked, hooks, lowering, precision, progress, refusal, state, ways_out
from .inputs import Input
from .program import Program
from .refusal import Refusal

# What PyTorch raises where the value of a fake tensor, which has none, is needed.
VALUES = DataDependentOutputException, DynamicOutputShapeException, GuardOnDataDependentSymNode
ROUNDED_HINT = ("a stride rounds lengths: F.pad(y, (0, 4 - y.shape[2] % 4)) makes them a multiple of 4 first, always with something to cut afterwards: "
                "y[:, :, :x.shape[2]]")
REMAINDER_HINT = "leave the condition out: F.pad(y, (0, -y.shape[2] % 4)) adds nothing to a whole multiple of 4"


# Of a terminal, in messages of torch.onnx.
_COLORS = re.compile(r"\x1b\[[0-9;]*m")

# Numbers of rows that a graph must run with, in addition to the example's. One row is left to verify.py: PyTorch treats a size of 1 specially.
ROWS = (2, 3, 8, 64, 256)
# Draws of sizes that an equation must hold for to say nothing of them.
_DRAWS = 8
# PyTorch's functions of memory layout, and the most frames between a question about a size and the function that asks it.
_LAYOUT = re.compile("contiguous|strides|dense|physical_perm")
_ASKING = 10


class Narrow(Refusal):
    """The module takes another path with the buckets' sizes than with the example's."""


class Sizes:
    """Fake tensors with symbolic sizes, and what the code that ran on them assumed of the sizes."""

    def __init__(self, inputs: list[Input], example: list[Tensor], buckets: Sequence[dict[str, int]] = ()):
        forked.prepare()
        environment = _Environment()
        environment.guards = self._guards = _Guards()
        self.mode = FakeTensorMode(shape_env=environment, allow_non_fake_inputs=True)
        self.tensors, self._names, self.example = [], {}, {}
        self._numbers: dict[tuple, int] = {}
        for spec, x in zip(inputs, example, strict=True):
            sizes = [DimDynamic.DYNAMIC if isinstance(d, str) else DimDynamic.STATIC for d in spec.shape]
            context = StatelessSymbolicContext(dynamic_sizes=sizes)
            fake = self.mode.from_tensor(x, symbolic_context=context, source=ConstantSource(spec.name))
            self.tensors.append(fake)
            self._names |= {size.node.expr: d for size, d in zip(fake.shape, spec.shape, strict=True) if isinstance(d, str)}
            self.example |= {d: n for n, d in zip(x.shape, spec.shape, strict=True) if isinstance(d, str)}
        self._buckets = [{**bucket, "B": rows} for bucket in buckets for rows in ROWS]
        random = np.random.default_rng(0)
        self._draws = [{name: int(random.integers(2, 1000)) for name in self.example} for _ in range(_DRAWS)]

    def symbols(self) -> dict[str, str]:
        """The inputs' names of the symbols that PyTorch calls s0, s1."""
        return {str(symbol): name for symbol, name in self._names.items()}

    def in_names(self, text: str) -> str:
        """A message of PyTorch's with the inputs' names of the symbols."""
        return re.sub(r"\bs\d+\b", lambda match: self.symbols().get(match[0], match[0]), text)

    def holds(self, sizes: dict[str, int]) -> bool:
        """Whether the code would run the same way with these sizes."""
        return all(self._true(guard.expr, sizes) for guard in self._guards)

    def refuse_assumptions(self) -> None:
        """Raises Refusal where the code has made a number of a size, or a choice that some bucket would make in another way."""
        self.refuse_numbers()
        for guard, place in zip(self._guards, self._guards.places, strict=True):
            self._refuse_choice(guard.expr, place)

    def refuse_numbers(self) -> None:
        """Raises Refusal where the code has made a number of a size."""
        for guard, place, cause in zip(self._guards, self._guards.places, self._guards.causes, strict=True):
            self._refuse_number(guard.expr, place, cause)

    def _refuse_number(self, guard: sympy.Basic, place: str | None, cause: str | None) -> None:
        """An equation with a number says that the trace has baked in the example's size, unless it always holds."""
        if not guard.is_Equality or not any(side.is_number for side in guard.args):
            return
        # Two lengths may be bound to each other, if all buckets are.
        cases = self._buckets if self._buckets and len(self._symbols(guard)) > 1 else [*self._buckets, *self._draws]
        if not all(self._true(guard, sizes) for sizes in cases):
            left, right = (str(self._named(side)) for side in guard.args)
            # What a small size becomes (one frame of 8 samples) need not be what a bucket's becomes. A size itself is a number in both.
            kind = Refusal if any(side.is_Symbol for side in guard.args) else Narrow
            raise kind(
                f"dimension {', '.join(self._symbols(guard))} was baked in{_by(cause)}, as the graph would hold for {left} = {right} only",
                REMAINDER_HINT if _asks_remainder(guard) else _of_sizes(cause), place)

    def _refuse_choice(self, guard: sympy.Basic, place: str | None) -> None:
        for sizes in self._buckets:
            if not self._true(guard, sizes):
                symbols = self._symbols(guard)
                hint = "sizes may choose what is the same in all buckets: use torch.where with a mask of positions, or a bundle for each choice"
                raise Narrow(
                    f"dimension {', '.join(symbols)} chose what was traced, which holds for {self._named(guard)} only, "
                    f"not for {', '.join(f'{name} = {sizes[name]}' for name in symbols)}",
                    REMAINDER_HINT if _asks_remainder(guard) else ROUNDED_HINT if guard.has(FloorDiv, Mod, PythonMod) else hint, place)

    def _named(self, guard: sympy.Basic) -> sympy.Basic:
        """In the inputs' symbols. As strings, S and N would be objects of SymPy."""
        return guard.subs({symbol: sympy.Symbol(name) for symbol, name in self._names.items()})

    def _symbols(self, guard: sympy.Basic) -> list[str]:
        return sorted({self._names.get(s, str(s)) for s in guard.free_symbols})

    def number(self, size: int | torch.SymInt, sizes: dict[str, int]) -> int:
        """What a size of the run is with other sizes."""
        if not isinstance(size, torch.SymInt):
            return size
        key = size.node.expr, *sizes.items()
        if key not in self._numbers:
            self._numbers[key] = int(size.node.expr.xreplace({symbol: sympy.Integer(sizes[name]) for symbol, name in self._names.items()}))
        return self._numbers[key]

    def _true(self, guard: sympy.Basic, sizes: dict[str, int]) -> bool:
        """Whether an assumption about sizes holds. Assumptions about anything else count as true, and those about sizes that no batch has."""
        try:
            value = guard.xreplace({symbol: sympy.Integer(sizes[name]) for symbol, name in self._names.items()})
        except AssertionError:  # the remainder of a negative number, as of frames in a row that is shorter than a window
            return True
        return value != sympy.false


def _asks_remainder(guard: sympy.Basic) -> bool:
    """Whether it compares a remainder, as of `n % 2`, with something."""
    return any(isinstance(side, (Mod, PythonMod)) for side in guard.args)


def _by(cause: str | None) -> str:
    return "" if cause is None or cause.startswith("__") else f" by {cause}"


def _of_sizes(cause: str | None) -> str:
    """The hint for a size that became a number: PyTorch's function did it, or Python's."""
    if cause is None or cause in ("arange", "full", "linspace"):
        return "range(), float(), int() and math need numbers: use torch.arange(x.shape[1]), sizes as they are, also in sums and quotients, and xtts_export.scan for a loop over time"
    return "take sizes from x.shape, in views and expansions, too; lengths may not choose sizes or branches"


class _Environment(ShapeEnv):
    """Notes no assumption by which PyTorch chooses how a result lies in memory: values do not depend on it, and no graph has it."""

    def evaluate_expr(self, *args, **kwargs):
        with self.suppress_guards() if _lays_out() else contextlib.nullcontext():
            return super().evaluate_expr(*args, **kwargs)


def _lays_out() -> bool:
    """Whether it is PyTorch's code about strides that asks."""
    frame = sys._getframe(2)
    for _ in range(_ASKING):
        if frame is None:
            return False
        if frame.f_code.co_filename == _prims_common.__file__ and _LAYOUT.search(frame.f_code.co_name):
            return True
        frame = frame.f_back
    return False


class _Guards(list):
    """ShapeEnv's list of assumptions that notes the user's line of each."""

    def __init__(self):
        super().__init__()
        self.places, self.causes = [], []

    def append(self, guard) -> None:
        super().append(guard)
        self.places.append(refusal.here())
        self.causes.append(_Calls.running[-1] if _Calls.running else None)


class _Calls(TorchFunctionMode):
    """Knows which of PyTorch's functions runs."""

    running = []

    def __init__(self, program: Program):
        super().__init__()
        self._program = program

    def __torch_function__(self, function, types, args=(), kwargs=None):
        self._program.call(function)
        _Calls.running.append(getattr(function, "__name__", str(function)))
        try:
            return function(*args, **(kwargs or {}))
        finally:
            _Calls.running.pop()


class _Operators(TorchDispatchMode):
    """Notes where each operator is first used and refuses writes into what the module was given."""

    def __init__(self, given: dict[str, Tensor], buffers: dict[str, Tensor], mode: FakeTensorMode, program: Program):
        super().__init__()
        self._program = program
        # Views of a real tensor are views of its stand-in, which the mode forgets when no one has it.
        self._stand_ins = [{name: x if isinstance(x, FakeTensor) else mode.from_tensor(x, static_shapes=True) for name, x in own.items()} for own in (given, buffers)]
        self.given, self.buffers = ({captured.storage(x): name for own in both for name, x in own.items()}
                                    for both in zip((given, buffers), self._stand_ins, strict=True))
        self.changed: dict[str, str | None] = {}
        self.places = {}
        # The type of the last value that became a number in Python.
        self.number = None

    def __torch_dispatch__(self, operator, types, args=(), kwargs=None):
        progress.operator(operator)
        if operator not in self.places:
            self.places[operator] = refusal.here()
            if torch.Tag.nondeterministic_seeded in operator.tags:
                raise Refusal(f"{operator} draws random numbers from a state that no checkpoint has", ways_out.of_random(operator), refusal.here())
        if _dynamic(operator, args):
            raise Refusal(f"{operator} returns as many elements as the values decide", ways_out.of(operator), refusal.here())
        if ways_out.known(operator):
            raise Refusal(f"operator {operator} has no form in plain ONNX", ways_out.of(operator), refusal.here())
        captured.refuse(args, kwargs or {}, self.given)
        if operator is torch.ops.aten._local_scalar_dense.default:
            self.number = args[0].dtype
        given = dict(enumerate(args)) | (kwargs or {})
        for i, argument in enumerate(operator._schema.arguments):
            value = given.get(i, given.get(argument.name))
            if argument.alias_info is not None and argument.alias_info.is_write and isinstance(value, Tensor):
                if buffer := self.buffers.get(captured.storage(value)):
                    self.changed.setdefault(buffer, refusal.here())
                    continue
                name = self.given.get(captured.storage(value)) or (None if isinstance(value, FakeTensor) else f"a tensor of the module, {list(value.shape)}")
                if name:
                    raise Refusal(f"{operator} writes into {name}, which outlives the step",
                                  "make a new tensor: torch.where(mask, a, b), torch.cat or x + y, not x[...] = y; what lasts is a buffer of the module, by register_buffer", refusal.here())
        result = operator(*args, **(kwargs or {}))
        if isinstance(result, Tensor) and result.is_complex():
            raise Refusal(f"{operator} makes complex numbers, which plain ONNX lacks", ways_out.COMPLEX, refusal.here())
        if (narrow := precision.arithmetic(operator, result)) is not None:
            raise Refusal(f"{operator} computes in {str(narrow).removeprefix('torch.')}, and a graph would not round its results as PyTorch does", ways_out.NARROW, refusal.here())
        self._program.ran(operator, args, kwargs or {}, result)
        return result


def _dynamic(operator, args: tuple) -> bool:
    """Whether the result's shape depends on values. Of indices, only masks do that."""
    if operator is torch.ops.aten.index.Tensor:
        return any(isinstance(index, Tensor) and index.dtype in (torch.bool, torch.uint8) for index in args[1])
    return torch.Tag.dynamic_output_shape in operator.tags


@dataclass(frozen=True)
class DryRun:
    """What the module returned, as fake tensors, and the user's line where each operator was first needed."""

    result: object
    places: dict[object, str | None]
    # The buffers that forward changes, but for the state that it was given, and the lines that write them, where they are known.
    changed: dict[str, str | None]
    program: Program
    # What it ran on: inputs and sizes, and whether with gradients.
    _ran: tuple
    _sizes: Sizes

    @property
    def sizes(self) -> dict[str, int]:
        """The sizes of the example."""
        return self._sizes.example

    def holds(self, sizes: dict[str, int]) -> bool:
        """Whether the module would run the same way with these sizes."""
        return self._sizes.holds(sizes)

    def bytes(self, sizes: dict[str, int]) -> int:
        """What all operators of a run with these sizes make: an upper bound of the memory for activations."""
        return self.program.bytes(lambda size: self._sizes.number(size, sizes))

    def shape(self, x: Tensor) -> list[int | str]:
        """The shape of one of its tensors: numbers, and expressions in the names of the inputs' symbols."""
        return [self._sizes.in_names(str(d)) if isinstance(d, torch.SymInt) else d for d in x.shape]

    def of(self, inputs: list[Input], example: list[Tensor], backward: bool) -> bool:
        """Whether it is a dry run on these inputs and sizes."""
        return self._ran == _conditions(inputs, example, backward)

    def writes(self) -> str | None:
        """The last line that writes into a tensor."""
        return next((place for operator, place in reversed(self.places.items()) if _writes(operator)), None)

    def place(self, operator) -> str | None:
        """The user's line of the operator, or of the operator whose gradient it computes: X for X_backward."""
        if operator in self.places:
            return self.places[operator]
        forward = ways_out.base(operator)
        same = [place for op, place in self.places.items() if ways_out.base(op) == forward]
        return next(iter(same), None) or next((place for op, place in self.places.items() if ways_out.base(op).startswith(forward)), None)


def _writes(operator) -> bool:
    return any(argument.alias_info is not None and argument.alias_info.is_write for argument in operator._schema.arguments)


@collection.off()
def dry_run(module: nn.Module, inputs: list[Input], example: list[Tensor], loss=lambda result: result[0], backward: bool = True,
             buckets: Sequence[dict[str, int]] = ()) -> DryRun:
    """Runs module(*example) with symbolic sizes. loss picks the loss from the result.

    Raises Refusal, and Narrow where another example may pass.
    """
    progress.at("on tensors without memory")
    sizes = Sizes(inputs, example, buckets)
    # What it keeps of each operator for the next one with the same sizes costs more than it saves: a third of a dry run.
    sizes.mode.cache_enabled = False
    parameters, kept = dict(module.named_parameters()), state.Kept(module)
    large = {name: p for name, p in parameters.items() if hasattr(p, "was_buffer")}
    given = {i.name: x for i, x in zip(inputs, sizes.tensors, strict=True)} | parameters
    program = Program(given, sizes.in_names)
    watch = _Operators(given, kept.buffers | large, sizes.mode, program)
    try:
        # Anomaly mode keeps traces for here(), and warns that it is slow.
        with (quiet() as remarks, torch.autograd.detect_anomaly(check_nan=False), torch.set_grad_enabled(backward), sizes.mode, watch, lowering.functions(),
              hooks.at_last(parameters.values()), _Calls(program)):
            result = module(*sizes.tensors)
            gradients = ()
            if backward:
                gradients = torch.autograd.grad(loss(result), _trained(parameters), allow_unused=True)
                _refuse_unused(parameters, gradients)
            program.returned(result, gradients)
    except Refusal as error:
        error.args = (sizes.in_names(str(error)),)
        raise
    except VALUES as error:
        raise _value_chooses(watch.number, refusal.within(error)) from error
    except Exception as error:
        if "modified by an inplace operation" in str(error):
            # PyTorch's message about it makes a number of each size.
            raise Refusal("a tensor that the gradient needs is overwritten, which PyTorch refuses, too", "write a new tensor: y = y * 2, not y *= 2",
                          _forward_line(remarks)) from error
        # A size that became a number is what makes code fail. A choice before the failure is not: PyTorch compares sizes to find it.
        sizes.refuse_numbers()
        hint = f"the batch of a loss has {', '.join(i.name for i in inputs)}" if isinstance(error, KeyError) else way_out(error)
        raise Narrow(sizes.in_names(summary(error)), hint, refusal.within(error) or _forward_line(remarks)) from error
    finally:
        assigned = kept.restore()
    sizes.refuse_assumptions()
    return DryRun(result, watch.places, dict.fromkeys(assigned) | watch.changed, program, _conditions(inputs, example, backward), sizes)


def _conditions(inputs: list[Input], example: list[Tensor], backward: bool) -> tuple:
    return [(i.name, i.shape) for i in inputs], [x.shape for x in example], backward


@contextlib.contextmanager
def quiet():
    """Without PyTorch's remarks on its own work (packages that it would like to have, errors that are about to be raised) and short cuts.

    The context is the list of remarks.
    """
    for name, level in (("torch._subclasses.fake_tensor", logging.CRITICAL), ("torch.onnx", logging.ERROR)):
        logging.getLogger(name).setLevel(level)
    fast = torch.backends.mha.get_fastpath_enabled()
    # One operator for a whole layer, which ONNX lacks.
    torch.backends.mha.set_fastpath_enabled(False)
    try:
        # Distributions look at the values of their parameters.
        with mock.patch.object(Distribution, "_validate_args", False), warnings.catch_warnings(record=True) as remarks:
            warnings.simplefilter("always")
            yield remarks
    finally:
        torch.backends.mha.set_fastpath_enabled(fast)


def way_out(error: Exception) -> str:
    """The hint for an error of the user's code."""
    text = str(error)
    if "numpy() is not supported" in text:
        return "stay in PyTorch: NumPy's functions are in no graph"
    if "must match" in text and "//" in text:
        return ROUNDED_HINT
    if isinstance(error, RuntimeError | IndexError):
        return "this line must run in PyTorch on any batch and length: try it with two batches of other sizes"
    return "this line must run in PyTorch before it can be exported: correct it first"


def _forward_line(remarks: list) -> str | None:
    """The user's line whose gradient failed: anomaly mode has remarked where it ran."""
    for remark in remarks:
        head, _, frames = str(remark.message).partition("Traceback of forward call that caused the error:\n")
        if frames:
            return refusal.from_text(frames)
    return None


def _value_chooses(kind: torch.dtype | None, place: str | None) -> Refusal:
    """kind is the type of the value."""
    if kind == torch.bool:
        return Refusal("the value of a tensor chooses a branch", "compute both and choose by torch.where(condition, a, b); leave checks of values out", place)
    if kind is not None and not kind.is_floating_point:
        return Refusal("the value of a tensor chooses a size", "keep the whole length, x.shape[1], and mask by lengths: torch.arange(x.shape[1]) < lengths[:, None]; n frames from a place are "
                       "y.gather(1, (start[:, None] + torch.arange(n))[..., None].expand(-1, -1, y.shape[2]))", place)
    return Refusal("the value of a tensor becomes a number", "keep it a tensor: .item(), float() and a branch end the graph; torch.where chooses by values", place)


def _trained(parameters: dict[str, nn.Parameter]) -> list[nn.Parameter]:
    return [p for p in parameters.values() if p.requires_grad]


def summary(error: Exception) -> str:
    """One line."""
    # A user has tensors; that they are stand-ins is the exporter's affair. PyTorch lists signatures in further lines.
    text = _COLORS.sub("", str(error)).strip().replace("FakeTensor", "Tensor").partition("\n")[0].removesuffix(", but expected one of:")
    if text.count(")") > text.count("("):
        text = text.removesuffix(")")
    return f"{type(error).__name__}: {text}" if text else type(error).__name__


def _refuse_unused(parameters: dict[str, nn.Parameter], gradients: tuple) -> None:
    names = [name for name, p in parameters.items() if p.requires_grad]
    if unused := [name for name, g in zip(names, gradients, strict=True) if g is None]:
        raise Refusal(f"the loss does not depend on parameter {unused[0]}" + (f" and {len(unused) - 1} more" if unused[1:] else ""),
                      "use it, remove it, or set its requires_grad to False, which freezes it")
