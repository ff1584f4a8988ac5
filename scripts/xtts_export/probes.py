"""Tensors of forward that a run shows: `xtts_export.probe` names them, and the probe graph of a bundle returns them (docs/export.md).

Only a run of the exporter collects them. Elsewhere a probe returns its tensor, and that is all.
"""

import contextlib
import re
from collections.abc import Iterator
from dataclasses import dataclass, field

import torch
from torch import Tensor

from . import refusal
from .refusal import Refusal

# What precedes a probe's name in the name of its output.
PREFIX = "probe."
_NAME, _LONGEST, _MOST = re.compile(r"[a-z0-9][a-z0-9_-]*(\.[a-z0-9_-]+)*"), 64, 256


def probe(name: str, tensor: Tensor) -> Tensor:
    """Returns the tensor. While a module is exported, it becomes an output of the probe graph under this name: `--probe NAME` of a run shows it.

    The name is unique in the module: a loop has f"attention.{i}".
    """
    if _Collecting.now is not None:
        _Collecting.now.add(name, tensor)
    return tensor


class _Collecting:
    """What collects in this process."""

    now: "Probes | None" = None


@dataclass
class Probes:
    """The probes of one run of a module, and the user's line of each."""

    # Whether the tensors are kept, and not only their names.
    whole: bool
    places: dict[str, str | None] = field(default_factory=dict)
    tensors: dict[str, Tensor] = field(default_factory=dict)
    _within: str | None = None

    @contextlib.contextmanager
    def collected(self) -> Iterator[None]:
        former, _Collecting.now = _Collecting.now, self
        try:
            yield
        finally:
            _Collecting.now = former

    def add(self, name: str, tensor: Tensor) -> None:
        place = refusal.here()
        if not isinstance(name, str) or not _NAME.fullmatch(name) or len(name) > _LONGEST:
            raise Refusal(f"a probe has the name {name!r:.100}",
                          f"a name has lower-case letters, digits, _ and -, with a dot between its parts, and at most {_LONGEST} characters: encoder.attention", place)
        if name in self.places:
            raise Refusal(f"probe {name} was named before, in {self.places[name]}",
                          'each has a name of its own: in a loop f"attention.{i}", and a module that is called twice gets the name from outside', place)
        if len(self.places) == _MOST:
            raise Refusal(f"probe {name} is one more than {_MOST}", "name those that you look at", place)
        if not isinstance(tensor, Tensor):
            raise Refusal(f"probe {name} gets {refusal.kind(tensor)}, where it takes a tensor", 'name each tensor by itself: probe("keys", k)', place)
        if tensor.is_complex() or tensor.is_sparse:
            raise Refusal(f"probe {name} gets a tensor of {str(tensor.dtype).removeprefix('torch.')}", "probe its real and imaginary part, or its abs()", place)
        if self._within:
            raise Refusal(f"probe {name} is in {self._within}", "a graph has no values from within it: return the tensor from there, and probe what comes out", place)
        if _wrapped(tensor):
            raise Refusal(f"probe {name} is in a function of torch.vmap or torch.func", "a graph has no values from within it: return the tensor from there, and probe what comes out", place)
        self.places[name] = place
        if self.whole:
            # A copy, as the module may write into the tensor afterwards.
            self.tensors[PREFIX + name] = tensor.detach().clone().float()


@contextlib.contextmanager
def refused(within: str) -> Iterator[None]:
    """Refuses probes: within says where they are."""
    if (probes := _Collecting.now) is None:
        yield
        return
    former, probes._within = probes._within, within
    try:
        yield
    finally:
        probes._within = former


def _wrapped(tensor: Tensor) -> bool:
    """Whether it is a tensor of functorch, which stands for other ones."""
    functorch = torch._C._functorch
    return functorch.is_batchedtensor(tensor) or functorch.is_gradtrackingtensor(tensor)
