"""PyTorch's own forms of control: torch.cond, and associative scans as recurrences."""

import contextlib
from collections.abc import Callable, Iterator

import torch
from torch import Tensor, _higher_order_ops
from torch.utils import _pytree as pytree

from . import probes, recurrence, swapped


@contextlib.contextmanager
def functions() -> Iterator[None]:
    """PyTorch's compile what they are given, which a trace cannot follow."""
    with swapped.code(torch.cond, _cond), swapped.code(_higher_order_ops.associative_scan, _associative_scan):
        yield


def _cond(pred: Tensor | bool | torch.SymBool, true_fn: Callable, false_fn: Callable, operands: tuple | list = ()):
    """A graph computes both and chooses, element by element, as the branches give tensors of one shape."""
    if not (isinstance(pred, Tensor) and recurrence.traced(pred)):
        return true_fn(*operands) if pred else false_fn(*operands)
    with probes.refused("a branch of torch.cond"):
        left, right = true_fn(*operands), false_fn(*operands)
    return pytree.tree_map(lambda a, b: torch.where(pred.reshape(()).bool(), a, b), left, right)


def _associative_scan(combine_fn: Callable, xs, dim: int, reverse: bool = False, combine_mode: str = "pointwise"):
    """From element to element: what is associative may be grouped in any way."""
    leaves, spec = pytree.tree_flatten(xs)
    first, rest = -1 if reverse else 0, slice(None, -1) if reverse else slice(1, None)
    leaves = [x.movedim(dim, 0) for x in leaves]
    combined = lambda a, b: tuple(pytree.tree_leaves(combine_fn(pytree.tree_unflatten(list(a), spec), pytree.tree_unflatten(list(b), spec))))

    def step(carry, items, constants):
        after = combined(carry, items)
        return after, after

    _, results = recurrence.scan(step, [x[first] for x in leaves], [x[rest] for x in leaves], reverse=reverse)
    whole = [torch.cat([y, x[-1:]] if reverse else [x[:1], y]).movedim(0, dim) for x, y in zip(leaves, results, strict=True)]
    return pytree.tree_unflatten(whole, spec)
