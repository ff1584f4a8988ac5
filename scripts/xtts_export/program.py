"""What a dry run computed, as a digest: equal programs have equal graphs.

The digest covers every operator of PyTorch that ran, forward and backward, with its arguments: tensors by where they came from, sizes as
expressions, numbers, and the contents of the tensors that the module or its code holds. So it covers what decides about a graph, wherever
it is written: the module's source, what that imports, attributes, files that it read. Values of parameters decide nothing, as graphs take
parameters as inputs.
"""

import hashlib
import math
from collections.abc import Callable, Iterable

import torch
from torch import Tensor
from torch._subclasses.fake_tensor import FakeTensor
from torch.utils._python_dispatch import _disable_current_modes

from . import lines

# Operators of PyTorch. What others do is written in code that the digest does not cover.
_NAMESPACES = ("aten", "prim", "prims")
_PLAIN = (int, float, bool, str, complex, torch.dtype, torch.device, torch.layout, torch.memory_format, type(None))


class Program:
    """Grows while operators run."""

    def __init__(self, given: dict[str, Tensor], in_names: Callable[[str], str]):
        """given are the inputs and parameters by name. in_names writes an expression of sizes in the names of the inputs' symbols."""
        self.unknown: str | None = None
        # The user's lines of the operators of the forward pass. They decide nothing, so the digest has none.
        self.lines = lines.Lines()
        self._hash, self._in_names = hashlib.sha256(), in_names
        self._labels: dict[int, str] = {}
        self._sizes: dict[object, str] = {}
        # A tensor that is gone may leave its id to another one.
        self._kept: list[Tensor] = []
        for name, x in given.items():
            self._label(x, f"given {name}")
        self._given = len(self._kept)

    def call(self, function: Callable) -> None:
        """A function of PyTorch that the code called: two of them may consist of the same operators here, and of others while a graph is traced."""
        if (name := getattr(function, "__name__", "")) != "__get__":
            self._hash.update(f"call {name}\n".encode())

    def ran(self, operator: torch._ops.OpOverload, args: tuple, kwargs: dict, result: object) -> None:
        if torch._C._current_autograd_node() is None:
            self.lines.add(lines.running())
        if operator.namespace not in _NAMESPACES:
            self.unknown = self.unknown or f"it has {operator}"
        self._hash.update(f"{operator} {self._text(args)} {self._text(kwargs)}\n".encode())
        for x in _tensors(result):
            if id(x) not in self._labels:
                self._label(x, f"made {len(self._labels)}")

    def returned(self, *results: object) -> None:
        self._hash.update(f"returned {self._text(results)}\n".encode())

    def digest(self) -> str | None:
        """None if there is something that it would not cover, which unknown names."""
        return None if self.unknown else self._hash.hexdigest()

    def bytes(self, number: Callable[[int | torch.SymInt], int]) -> int:
        """Of all that the operators made, forward and backward, views not counted: no run has more at once. number is that of a size."""
        made: dict[int, Tensor] = {}
        for x in self._kept[self._given:]:
            made.setdefault(x.untyped_storage()._cdata, x)
        return sum(x.itemsize * math.prod(map(number, x.shape)) for x in made.values())

    def _label(self, x: Tensor, label: str) -> None:
        self._labels[id(x)] = label
        self._kept.append(x)

    def _text(self, x: object) -> str:
        if isinstance(x, Tensor):
            return self._tensor(x)
        if isinstance(x, (list, tuple)):
            return f"[{', '.join(map(self._text, x))}]"
        if isinstance(x, dict):
            return f"{{{', '.join(f'{key}: {self._text(value)}' for key, value in x.items())}}}"
        if isinstance(x, (torch.SymInt, torch.SymFloat, torch.SymBool)):
            expression = x.node.expr
            if expression not in self._sizes:
                self._sizes[expression] = self._in_names(str(expression))
            return f"size {self._sizes[expression]}"
        if not isinstance(x, _PLAIN):
            self.unknown = self.unknown or f"an operator has an argument of type {type(x).__name__}"
        return repr(x)

    def _tensor(self, x: Tensor) -> str:
        if id(x) in self._labels:
            return self._labels[id(x)]
        if isinstance(x, FakeTensor):
            self.unknown = self.unknown or "a tensor comes from an operator that was not seen"
            return "unknown"
        # It may be written to, so it is read each time.
        return f"constant {content(x)}"


def content(x: Tensor) -> str:
    """The hash of a tensor's type, shape and bytes."""
    with _disable_current_modes(), torch.no_grad():
        flat = x.detach().cpu().contiguous().reshape(-1).view(torch.uint8) if x.numel() else torch.empty(0, dtype=torch.uint8)
        digest = hashlib.sha256(flat.numpy())
    digest.update(f"{x.dtype} {list(x.shape)} {x.stride()}".encode())
    return digest.hexdigest()


def _tensors(result: object) -> Iterable[Tensor]:
    if isinstance(result, Tensor):
        yield result
    elif isinstance(result, (list, tuple)):
        for x in result:
            yield from _tensors(x)
