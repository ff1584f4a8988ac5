"""What a run of forward leaves outside of its results: tables of positions, filter banks and attention weights that modules and functions keep.

While a graph is traced they are stand-ins, which are of no use to the next run. So every run begins with what the first one found.
"""

import contextlib
import functools
import sys
from collections.abc import Iterator
from unittest import mock

from torch import Tensor, nn

from . import refusal
from .refusal import Refusal

# nn.Module's own books, whose tensors are parameters and buffers; and Python's of a module.
_BOOKS = {"_parameters", "_buffers", "_modules", "__builtins__"}


@contextlib.contextmanager
def removed(module: nn.Module) -> Iterator[None]:
    """Within it, tensors may be kept in attributes of the module's parts, in global variables, in dicts and lists there, and by lru_cache.

    Afterwards these are as they were. Raises Refusal for an attribute that was read and then got another tensor of its shape: that one is to
    outlive the step, which only a buffer does.
    """
    parts, variables = dict(module.named_modules()), _globals()
    places = [*(part.__dict__ for part in parts.values()), *variables]
    places += [x for place in places for key, x in place.items() if type(x) in (dict, list) and key not in _BOOKS]
    before = [(place, place.copy()) for place in places]
    buffers = [(part._buffers, part._buffers.copy()) for part in parts.values()]
    try:
        with _attributes(parts):
            yield
    finally:
        for place, old in before:
            _restore(place, old)
        for own, known in buffers:
            # Those that had a tensor may be state.
            had = {name: own[name] for name, x in known.items() if x is not None}
            own.clear()
            own.update(known | had)
        for function in {id(x): x for place in variables for x in place.values() if isinstance(x, functools._lru_cache_wrapper)}.values():
            function.cache_clear()


def _globals() -> list[dict]:
    """The global variables of modules that may be a model's."""
    return [vars(m) for m in list(sys.modules.values()) if (path := getattr(m, "__file__", None)) and refusal.is_users(path)]


@contextlib.contextmanager
def _attributes(parts: dict[str, nn.Module]) -> Iterator[None]:
    """Knows which tensors in attributes of modules are read, and which lines give the attributes others."""
    kept = {(id(part), key): x for part in parts.values() for key, x in part.__dict__.items() if isinstance(x, Tensor)}
    read, lines, attribute, assign = set(), {}, nn.Module.__getattr__, nn.Module.__setattr__

    def reading(self: nn.Module, name: str):
        if (place := (id(self), name)) not in kept:
            return attribute(self, name)
        read.add(place)
        return kept[place]

    def assigning(self: nn.Module, name: str, value: object) -> None:
        if (id(self), name) in read and name not in self.__dict__:
            lines[id(self), name] = refusal.here()
        assign(self, name, value)

    if not kept:
        yield
        return
    # Python asks __getattr__ for what an object does not have.
    for part in parts.values():
        for key in [key for key in part.__dict__ if (id(part), key) in kept]:
            del part.__dict__[key]
    with mock.patch.object(nn.Module, "__getattr__", reading), mock.patch.object(nn.Module, "__setattr__", assigning):
        yield
    for name, part in parts.items():
        for key, x in part.__dict__.items():
            place = id(part), key
            if place in lines and isinstance(x, Tensor) and tuple(x.shape) == tuple(kept[place].shape):
                raise Refusal(f"forward gives {name + '.' if name else ''}{key} another tensor, which outlives the step",
                              f"make it a buffer, by register_buffer({key!r}, ...): buffers that forward changes are state", lines[place])


def _restore(place: dict | list, old: dict | list) -> None:
    if isinstance(place, list):
        if len(place) != len(old) or any(x is not y and _has_tensor(x) for x, y in zip(place, old, strict=True)):
            place[:] = old
        return
    for key, x in list(place.items()):
        if key not in _BOOKS and x is not old.get(key) and _has_tensor(x):
            if key in old:
                place[key] = old[key]
            else:
                del place[key]
    for key, x in old.items():
        if isinstance(x, Tensor):
            place.setdefault(key, x)


def _has_tensor(x: object) -> bool:
    if isinstance(x, dict):
        x = tuple(x.values())
    return isinstance(x, Tensor) or (isinstance(x, (tuple, list)) and any(isinstance(y, Tensor) for y in x))
