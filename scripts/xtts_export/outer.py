"""What a step of a recurrence reads besides its arguments: parameters of modules, and tensors of the function around it.

A step is run several times, and each run may see other objects for the same tensor, as tracing replaces a module's parameters. What they have
in common is the order in which they are first read.
"""

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from unittest import mock

import torch
from torch import Tensor
from torch._guards import detect_fake_mode
from torch.overrides import TorchFunctionMode
from torch.utils import _pytree as pytree

from . import refusal
from .refusal import Refusal

_linear = torch.nn.functional.linear


class Reads(TorchFunctionMode):
    """Finds the tensors that functions read within it and that come from elsewhere, and puts others in their places, in the same order.

    A matrix or bias of F.linear and the same tensor elsewhere are two.
    """

    _all: "list[Reads]" = []

    def __init__(self, known: Sequence[Tensor], instead: Sequence[Tensor] | None = None):
        """known come from within. Without instead, the tensors that are read are collected, in `tensors`."""
        super().__init__()
        self._known = {id(x): x for x in known}
        self._instead = instead
        self._places: dict[tuple[int, bool], int] = {}
        self.tensors: list[Tensor] = []

    @contextmanager
    def active(self) -> Iterator[None]:
        """Within it, those around it see nothing."""
        self._all.append(self)
        try:
            with self, mock.patch.object(torch.autograd.Function, "apply", classmethod(_apply)):
                yield
        finally:
            self._all.pop()

    def __torch_function__(self, function, types, args=(), kwargs=None):
        return self.call(function, args, kwargs or {}) if self._all[-1] is self else function(*args, **(kwargs or {}))

    def call(self, function: Callable, args: tuple, kwargs: dict):
        """What function returns of these arguments, with the tensors from elsewhere replaced."""
        if sizes := [x for x in pytree.tree_leaves((args, kwargs)) if isinstance(x, torch.SymInt)]:
            self._refuse_outer(sizes)
        if function is _linear:
            x, weight, bias = (*args, *[None] * 3)[:3]
            given = {"input": x, "weight": weight, "bias": bias} | kwargs
            args, kwargs = (self.of(given["input"]), self.of_product(given["weight"]), self.of_product(given["bias"])), {}
        elif function not in _SIZES:
            args, kwargs = _mapped(self.of, args), _mapped(self.of, kwargs)
        result = function(*args, **kwargs)
        for x in pytree.tree_leaves(result):
            if isinstance(x, Tensor):
                self._known[id(x)] = x
        return result

    def _refuse_outer(self, sizes: list[torch.SymInt]) -> None:
        """Refuses sizes of tensors from elsewhere. A step is traced alone, so those of its own tensors are of another environment."""
        mode = detect_fake_mode(list(self._known.values()))
        if mode is not None and any(x.node.shape_env is not mode.shape_env for x in sizes):
            raise Refusal("a step of a scan takes a size from outside", "sizes within are those of the step's arguments: items[0].shape; as a number, "
                          "read a tensor that is made before the scan: count = torch.ones(x.shape[1]).sum()", refusal.here())

    def of_product(self, x: Tensor | None) -> Tensor | None:
        """What is in the place of a matrix or bias of F.linear."""
        return self.of(x, True)

    def of(self, x: object, product: bool = False) -> object:
        """What is in the place of an argument."""
        if not isinstance(x, Tensor) or id(x) in self._known:
            return x
        place = self._places.setdefault((id(x), product), len(self._places))
        if place == len(self.tensors):
            self.tensors.append(x)
        if self._instead is None:
            return x
        if place >= len(self._instead) or self._instead[place].dim() != x.dim() or self._instead[place].dtype != x.dtype:
            raise Refusal("a step of a scan reads other tensors when it is run again", "read the same ones in every run, or pass them in constants", refusal.here())
        return self._instead[place]


_APPLY = torch.autograd.Function.__dict__["apply"]


def _apply(kind: type[torch.autograd.Function], *args):
    """torch.autograd.Function.apply, which no mode sees."""
    return Reads._all[-1].call(_APPLY.__get__(None, kind), args, {})


# Of a tensor they read no value.
_SIZES = {Tensor.size, Tensor.dim, Tensor.numel, Tensor.stride, Tensor.is_floating_point, Tensor.is_complex,
          *(getattr(Tensor, name).__get__ for name in ("shape", "dtype", "device", "ndim", "requires_grad", "is_cuda", "layout", "grad_fn", "is_leaf"))}


def _mapped(put: Callable, x: object) -> object:
    """x with put of each leaf, also within slices."""
    leaf = lambda y: slice(*(put(z) for z in (y.start, y.stop, y.step))) if isinstance(y, slice) else put(y)
    return pytree.tree_map(leaf, x)
