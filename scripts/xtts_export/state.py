"""The state of a module: buffers that forward changes, which the training graph takes and returns (docs/bundle.md)."""

import contextlib
from collections.abc import Callable, Iterable, Iterator

import torch
from torch import Tensor, nn

from .inputs import Input
from .refusal import Refusal

# What precedes a buffer's name in the name of its new value.
PREFIX = "state."


def specs(module: nn.Module, names: Iterable[str]) -> tuple[Input, ...]:
    """The buffers as inputs of a graph."""
    return tuple(Input(name, "f32", tuple(module.get_buffer(name).shape)) for name in names)


def values(module: nn.Module, specs: Iterable[Input]) -> dict[str, Tensor]:
    """What the buffers hold, in f32."""
    return {spec.name: module.get_buffer(spec.name).detach().to(torch.float32, copy=True) for spec in specs}


@contextlib.contextmanager
def held(module: nn.Module, given: dict[str, Tensor]) -> Iterator[Callable[[], dict[str, Tensor]]]:
    """The module with these values in its buffers. What the context is returns what the buffers hold, in f32. The module's own come back."""
    places = {name: [(owner, key) for owner in module.modules() for key, x in owner._buffers.items() if x is module.get_buffer(name)] for name in given}
    kept = {name: module.get_buffer(name) for name in given}

    def put(tensors: dict[str, Tensor]) -> None:
        for name, x in tensors.items():
            for owner, key in places[name]:
                owner._buffers[key] = x

    def left() -> dict[str, Tensor]:
        return {name: _as_given(name, owner._buffers[key], given[name]) for name, ((owner, key), *_) in places.items()}

    # A copy: forward writes into it, and the values that were given are an input.
    put({name: x.to(kept[name].dtype).clone() for name, x in given.items()})
    try:
        yield left
    finally:
        put(kept)


def _as_given(name: str, x: Tensor | None, given: Tensor) -> Tensor:
    if x is None or x.dim() != given.dim() or any(not isinstance(n, int) or n != m for n, m in zip(x.shape, given.shape, strict=True)):
        raise Refusal(f"forward makes {'nothing' if x is None else list(x.shape)} of buffer {name}, whose shape is {list(given.shape)}",
                      "state keeps its shape: a table that grows with the batch is no buffer")
    return x.detach().to(torch.float32)


class Kept:
    """The buffers of a module before a dry run, which computes with real tensors where it has no others."""

    def __init__(self, module: nn.Module):
        self.module = module
        self.buffers = dict(module.named_buffers())
        self.values = {name: x.clone() for name, x in self.buffers.items()}

    def restore(self) -> set[str]:
        """Gives the module its buffers back with their values. Returns those that were other tensors."""
        # Not by get_submodule: a part may have the name of a method.
        assigned, parts = set(), dict(self.module.named_modules())
        for name, x in self.buffers.items():
            path, _, key = name.rpartition(".")
            owner = parts[path]
            if owner._buffers.get(key) is not x:
                owner._buffers[key] = x
                assigned.add(name)
            with torch.no_grad():
                x.copy_(self.values[name])
        return assigned


@contextlib.contextmanager
def evaluating(module: nn.Module) -> Iterator[None]:
    """The module and its parts in evaluation mode."""
    modes = {part: part.training for part in module.modules()}
    module.eval()
    try:
        yield
    finally:
        for part, mode in modes.items():
            part.training = mode


@contextlib.contextmanager
def mode_reads() -> Iterator[list[nn.Module]]:
    """The modules whose mode, training or evaluation, something asks for within the context."""
    asked: list[nn.Module] = []

    def mode(module: nn.Module) -> bool:
        asked.append(module)
        # A module of TorchScript has its attributes elsewhere.
        return module.__dict__["training"] if "training" in module.__dict__ else type(module).__getattr__(module, "training")

    nn.Module.training = property(mode, lambda module, on: module.__dict__.__setitem__("training", on))
    try:
        yield asked
    finally:
        del nn.Module.training
