"""A recurrence over a dynamic length: one step, traced once, that a graph runs for each element of its sequences (ONNX's Scan).

The gradient is a recurrence in the other direction: its step is the gradient of one step. What a matrix contributes to a gradient is summed
over all steps by one product after the recurrence, if the step uses the matrix by F.linear.
"""

import itertools
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from unittest import mock

import torch
from torch import Tensor
from torch._subclasses.fake_tensor import FakeTensor
from torch._subclasses.functional_tensor import FunctionalTensor

from . import noise, probes, refusal
from .outer import Reads
from .refusal import Refusal

functional = torch.nn.functional

Tensors = tuple[Tensor, ...]
# From what enters a step, what it reads of the sequences, and the constants, to what enters the next one, and its results.
Step = Callable[[Tensors, Tensors, Tensors], tuple[Sequence[Tensor], Sequence[Tensor]]]


def scan(step: Step, carry: Sequence[Tensor], sequences: Sequence[Tensor], constants: Sequence[Tensor] = (), reverse: bool = False) -> tuple[Tensors, Tensors]:
    """Runs step(carry, items, constants) -> (carry, results) for each element of the sequences' first axis, and returns the last carry and
    the results of all steps, joined along a new first axis.

    A carry keeps its shapes and types. Tensors that the step reads besides its arguments, as parameters of modules, are constants, too. Each
    step draws random numbers of its own. reverse begins with the last element; results stay at the places of their items.
    """
    run = _traced if traced(*carry, *sequences, *constants) else _loop
    with probes.refused("a step of a recurrence"):
        if (draws := noise.running()) is None:
            return run(step, carry, sequences, constants, reverse)
        drawing = _Drawing(step, draws)
        results = run(drawing, carry, (*sequences, torch.arange(sequences[0].shape[0])), (*constants, *drawing.seeds), reverse)
        drawing.end()
        return results


class _Drawing:
    """A step whose last item is its number, and whose last constants are seeds: all that is random in it follows from them."""

    def __init__(self, step: Step, draws: noise.Draws):
        self._step, self._whole = step, draws
        # Every run of the step begins with the same sites.
        self._draws = self._last = replace(draws)
        self.seeds = [x for x in (draws.noise, draws.masks) if x is not None]

    def __call__(self, carry: Tensors, items: Tensors, constants: Tensors) -> tuple[Sequence[Tensor], Sequence[Tensor]]:
        given = len(constants) - len(self.seeds)
        return self._run(self._draws.in_step(*constants[given:], t=items[-1]), carry, items[:-1], constants[:given])

    @property
    def drew(self) -> bool:
        """Whether the step that ran last drew numbers."""
        return (self._last.mask, self._last.site) != (self._draws.mask, self._draws.site)

    def without_seeds(self, carry: Tensors, items: Tensors, constants: Tensors) -> tuple[Sequence[Tensor], Sequence[Tensor]]:
        """The step, if it draws nothing."""
        return self._run(replace(self._draws), carry, items, constants)

    def _run(self, draws: noise.Draws, *arguments: Tensors) -> tuple[Sequence[Tensor], Sequence[Tensor]]:
        self._last = draws
        with draws.used():
            return self._step(*arguments)

    def end(self) -> None:
        """What follows draws other numbers."""
        self._whole.mask, self._whole.site = self._last.mask, self._last.site


def _traced(step: Step, carry: Sequence[Tensor], sequences: Sequence[Tensor], constants: Sequence[Tensor], reverse: bool) -> tuple[Tensors, Tensors]:
    """As an operator, whose constants are also the tensors that the step reads besides its arguments."""
    # Not the tensors themselves: the step may read these, too.
    first = [[x.detach() for x in group] for group in (carry, [x.select(0, 0) for x in sequences], constants)]
    reads = Reads([x for group in first for x in group])
    with torch.no_grad(), reads.active():
        step(*map(tuple, first))
    if isinstance(step, _Drawing) and not step.drew:
        sequences, constants, step = sequences[:-1], constants[:-len(step.seeds)], step.without_seeds
    tensors = (*carry, *sequences, *constants, *reads.tensors)
    results = _Recurrence.apply(step, len(carry), len(sequences), len(reads.tensors), reverse, *tensors)
    return results[:len(carry)], results[len(carry):]


def traced(*tensors: Tensor) -> bool:
    """Whether operations on the tensors are recorded, and not computed."""
    return any(isinstance(x, (FakeTensor, FunctionalTensor)) for x in tensors)


def _loop(step: Step, carry: Sequence[Tensor], sequences: Sequence[Tensor], constants: Sequence[Tensor], reverse: bool) -> tuple[Tensors, Tensors]:
    """By PyTorch, step by step."""
    places, steps = range(sequences[0].shape[0]), []
    for t in reversed(places) if reverse else places:
        carry, results = step(tuple(carry), tuple(x[t] for x in sequences), tuple(constants))
        steps.append(results)
    return tuple(carry), tuple(torch.stack(results[::-1] if reverse else results) for results in zip(*steps, strict=True))


@dataclass(frozen=True)
class Body:
    """A step as the operator runs it: from tensors to tensors, the carry first in both."""

    run: Callable[..., Tensors]
    # What run returns of such tensors, without a gradient's arithmetic: tensors of the same shapes and types.
    like: Callable[..., Tensors]


bodies: dict[int, Body] = {}
_numbers = itertools.count()

_library = torch.library.Library("xtts_export", "DEF")
_library.define("scan(Tensor[] tensors, int carries, int sequences, bool reverse, int body) -> Tensor[]")
OPERATOR = torch.ops.xtts_export.scan.default


@torch.library.register_fake("xtts_export::scan", lib=_library)
def _(tensors: list[Tensor], carries: int, sequences: int, reverse: bool, body: int) -> list[Tensor]:
    items = [x.select(0, 0) for x in tensors[carries:carries + sequences]]
    made = bodies[body].like(*tensors[:carries], *items, *tensors[carries + sequences:])
    length = tensors[carries].shape[0]
    return [x.new_empty(x.shape) if i < carries else x.new_empty([length, *x.shape]) for i, x in enumerate(made)]


def _run(body: Body, carry: Sequence[Tensor], sequences: Sequence[Tensor], constants: Sequence[Tensor], reverse: bool) -> list[Tensor]:
    number = next(_numbers)
    bodies[number] = body
    return torch.ops.xtts_export.scan([*carry, *sequences, *constants], len(carry), len(sequences), reverse, number)


class _Recurrence(torch.autograd.Function):
    @staticmethod
    def forward(ctx, step: Step, carries: int, sequences: int, read: int, reverse: bool, *tensors: Tensor):
        parts = _Parts(step, carries, sequences, read)
        results = _run(Body(parts.forward, parts.like), *parts.split(tensors), reverse)
        kept = results[carries:2 * carries + len(parts.products)]
        results = [*results[:carries], *results[carries + len(kept):]]
        ctx.parts, ctx.reverse, ctx.floats = parts, reverse, [x.is_floating_point() for x in results]
        ctx.save_for_backward(*kept, *tensors[carries:])
        ctx.mark_non_differentiable(*(x for x in results if not x.is_floating_point()))
        return tuple(results)

    @staticmethod
    def backward(ctx, *gradients: Tensor):
        if torch.is_grad_enabled():
            raise Refusal("a recurrence has no gradient of its gradient in a graph",
                          "take create_graph=True of layers without a recurrence: convolutions, linear layers, norms and activations have a second derivative", refusal.here())
        parts = ctx.parts
        middle = parts.carries + len(parts.products)
        tensors, products = ctx.saved_tensors[:parts.carries] + ctx.saved_tensors[middle:], ctx.saved_tensors[parts.carries:middle]
        slope = _Slope(parts, tensors, ctx.needs_input_grad[5:])
        given = [g for g, wanted in zip(gradients, ctx.floats, strict=True) if wanted]
        before, items, constants = parts.split(tensors)
        after = sum(ctx.floats[:parts.carries])
        carry = [*given[:after], *(torch.zeros_like(constants[i]) for i in slope.summed)]
        results = _run(Body(slope.run, slope.like), carry, [*before, *items, *products, *given[after:]], constants, not ctx.reverse)
        return None, None, None, None, None, *slope.gradients(results, tensors)


@dataclass
class _Parts:
    """A step, what its tensors are, and how it uses its constants."""

    step: Step
    carries: int
    sequences: int
    # How many of the constants, the last ones, the step does not get: it reads them from elsewhere.
    read: int
    products: "list[_Product]" = field(default_factory=list)

    def split(self, tensors: Sequence[Tensor]) -> tuple[Tensors, Tensors, Tensors]:
        carries, end = self.carries, self.carries + self.sequences
        return tuple(tensors[:carries]), tuple(tensors[carries:end]), tuple(tensors[end:])

    def forward(self, *tensors: Tensor) -> Tensors:
        """The next carry, then what the gradient needs: the one that the step began with and the products; then the results."""
        after, results = self.run(*self.split(tensors))
        return *after, *(x.clone() for x in tensors[:self.carries]), *(p.y.clone() for p in self.products), *results

    def like(self, *tensors: Tensor) -> Tensors:
        # The step may read what it also gets.
        return self.forward(*(x.detach() for x in tensors))

    def run(self, carry: Tensors, items: Tensors, constants: Tensors, known: Sequence[Tensor] = ()) -> tuple[Sequence[Tensor], Sequence[Tensor]]:
        """The step. Constants that F.linear gets have no gradient: products has what their gradient is made of. known are their y, if they have been computed."""
        linear = functional.linear
        self.products = []
        place = lambda x: next((i for i, c in enumerate(constants) if c is x), None)
        given = len(constants) - self.read
        reads = Reads([*carry, *items, *constants, *known], constants[given:])

        def noted(x: Tensor, weight: Tensor, bias: Tensor | None = None) -> Tensor:
            x, weight, bias = reads.of(x), reads.of_product(weight), reads.of_product(bias)
            if place(weight) is None:
                return linear(x, weight, bias)
            y = _Known.apply(x, weight.detach(), known[len(self.products)]) if known else linear(x, weight, bias)
            y = y if y.requires_grad or not torch.is_grad_enabled() else y.detach().requires_grad_()
            self.products.append(_Product(place(weight), place(bias), x, y))
            return y

        with mock.patch.object(functional, "linear", noted), reads.active():
            return self.step(carry, items, constants[:given])


@dataclass(frozen=True)
class _Product:
    """y of F.linear(x, constants[weight], constants[bias])."""

    weight: int
    bias: int | None
    x: Tensor
    y: Tensor


class _Known(torch.autograd.Function):
    """A product whose result is known, with its gradient by x."""

    @staticmethod
    def forward(ctx, x: Tensor, weight: Tensor, y: Tensor) -> Tensor:
        ctx.save_for_backward(weight)
        return y.clone()

    @staticmethod
    def backward(ctx, slope: Tensor):
        [weight] = ctx.saved_tensors
        return slope @ weight, None, None


class _Slope:
    """The gradient of a step, which is a step of a recurrence in the other direction.

    Its carry is the gradient of the carry's floats, then sums of gradients of constants. It reads what a step began with, its items, its
    products, and the gradients of its results' floats. It returns the gradients of items, and x with the gradient of y for each product.
    """

    def __init__(self, parts: _Parts, tensors: Sequence[Tensor], needed: Sequence[bool]):
        """tensors are a recurrence's; needed says which of their gradients are."""
        self._parts = parts
        carry, items, constants = parts.split([x.is_floating_point() and (need or i < parts.carries) for i, (x, need) in enumerate(zip(tensors, needed, strict=True))])
        self._products = [(p.weight, p.bias) for p in parts.products]
        late = {i for product in self._products for i in product}
        self._carry, self._items = _true(carry), _true(items)
        self.summed = [i for i in _true(constants) if i not in late]
        self._late = [i for i in _true(constants) if i in late]
        self._constants = len(constants)

    def like(self, *tensors: Tensor) -> Tensors:
        sums, (before, items, _, _, constants) = self._split(tensors)
        with torch.no_grad():
            self._parts.run(*([x.detach() for x in group] for group in (before, items, constants)))
        products = [x for p in self._parts.products for x in (p.x, p.y)]
        return *(before[i] for i in self._carry), *sums, *(items[i] for i in self._items), *products

    def run(self, *tensors: Tensor) -> Tensors:
        sums, (before, items, known, slopes, constants) = self._split(tensors)
        with torch.enable_grad():
            leaves = [[x.detach().requires_grad_(x.is_floating_point()) for x in group] for group in (before, items, constants)]
            after, results = self._parts.run(*leaves, known)
            before, items, constants = leaves
            products = self._parts.products
            made = [x for x in (*after, *results) if x.is_floating_point()]
            given = [*tensors[:len(self._carry)], *slopes]
            pairs = [(y, g) for y, g in zip(made, given, strict=True) if y.requires_grad]
            wanted = [*(before[i] for i in self._carry), *(constants[i] for i in self.summed), *(items[i] for i in self._items), *(p.y for p in products)]
            others = [constants[i] for i in self._late]
            found = torch.autograd.grad([y for y, _ in pairs], [*wanted, *others], [g for _, g in pairs], allow_unused=True)
        if any(g is not None for g in found[len(wanted):]):
            raise Refusal("a constant of a scan is the matrix or bias of F.linear, and used in another way, too", "pass it twice in constants, once for each use")
        found = [torch.zeros_like(x) if g is None else g for g, x in zip(found, wanted, strict=False)]
        first, last = len(self._carry), len(found) - len(products)
        sums = [s + g for s, g in zip(sums, found[first:], strict=False)]
        return *found[:first], *sums, *found[first + len(sums):last], *(x for p, g in zip(products, found[last:], strict=True) for x in (p.x, g))

    def gradients(self, results: Sequence[Tensor], tensors: Sequence[Tensor]) -> list[Tensor | None]:
        """Of a recurrence's carry, sequences and constants, from the results of the recurrence of gradients."""
        parts, results = self._parts, iter(results)
        found = dict(zip(self._carry, results, strict=False))
        found |= {parts.carries + parts.sequences + i: next(results) for i in self.summed}
        found |= {parts.carries + i: next(results) for i in self._items}
        for (weight, bias), x, slope in zip(self._products, results, results, strict=True):
            x, slope = (y.reshape(-1, y.shape[-1]) for y in (x, slope))
            for i, total in (weight, slope.t() @ x), (bias, slope.sum(0)):
                if i in self._late:
                    i += parts.carries + parts.sequences
                    found[i] = found[i] + total if i in found else total
        return [found.get(i) for i in range(len(tensors))]

    def _split(self, tensors: Sequence[Tensor]) -> tuple[Sequence[Tensor], tuple[Tensors, ...]]:
        """The sums, and what the step began with, its items, its products, the gradients of its results, and the constants."""
        parts, first = self._parts, len(self._carry)
        sums, rest = tensors[first:first + len(self.summed)], tensors[first + len(self.summed):]
        before, items, others = parts.split(rest)
        # The constants are last; what is left between are gradients.
        products, end = others[:len(self._products)], len(others) - self._constants
        return sums, (before, items, products, others[len(products):end], others[end:])


def _true(flags: Sequence[bool]) -> list[int]:
    return [i for i, flag in enumerate(flags) if flag]
