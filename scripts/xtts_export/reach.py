"""Where the code of a module may keep something between calls: what its classes, functions and helpers hold, found by following them.

Attributes of parts, variables of closures, default arguments, attributes of classes and functions, partial functions, containers in any of
these, and functions of functools.lru_cache. Only what is a user's is followed: PyTorch and Python keep their own books.
"""

import functools
import sys
import types
from collections import deque
from collections.abc import Iterable, Iterator, MutableMapping

from torch import nn

from . import refusal

# nn.Module's own books, whose tensors are parameters and buffers; and Python's of a module.
BOOKS = {"_parameters", "_buffers", "_modules", "__builtins__"}
CONTAINERS = dict, list, set, deque
# Of a longer container the elements are not followed: they are data.
_LONGEST = 1024
_METHODS = staticmethod, classmethod


class Cells(MutableMapping):
    """The variables of enclosing functions that a function has."""

    def __init__(self, function: types.FunctionType):
        self._cells = dict(zip(function.__code__.co_freevars, function.__closure__ or (), strict=True))

    def __getitem__(self, name: str) -> object:
        try:
            return self._cells[name].cell_contents
        except ValueError as error:
            # It has no value yet.
            raise KeyError(name) from error

    def __setitem__(self, name: str, value: object) -> None:
        self._cells[name].cell_contents = value

    def __delitem__(self, name: str) -> None:
        del self._cells[name].cell_contents

    def __iter__(self) -> Iterator[str]:
        return (name for name in self._cells if name in self)

    def __len__(self) -> int:
        return sum(1 for _ in self)


class Attributes(MutableMapping):
    """Those of a class, without Python's own."""

    def __init__(self, of: type):
        self._of = of

    def __getitem__(self, name: str) -> object:
        return vars(self._of)[name]

    def __setitem__(self, name: str, value: object) -> None:
        setattr(self._of, name, value)

    def __delitem__(self, name: str) -> None:
        delattr(self._of, name)

    def __iter__(self) -> Iterator[str]:
        return (name for name in tuple(vars(self._of)) if not name.startswith("__"))

    def __len__(self) -> int:
        return sum(1 for _ in self)


class Reached:
    """What is found from some objects. The label of an object is what a message calls it."""

    def __init__(self, roots: Iterable[object]):
        # Of names and what is kept under them; those whose name ends in a point have attributes.
        self.places: list[tuple[str, object]] = []
        self.caches: list[functools._lru_cache_wrapper] = []
        self._seen: dict[int, object] = {}
        self._next = deque((_label(x), x) for x in roots)
        while self._next:
            self._follow(*self._next.popleft())

    def parts(self) -> list[nn.Module]:
        """The modules that were found."""
        return [x for x in self._seen.values() if isinstance(x, nn.Module)]

    def _follow(self, label: str, x: object) -> None:
        if id(x) in self._seen or not isinstance(x, _FOLLOWED) and not is_helper(x):
            return
        self._seen[id(x)] = x
        if isinstance(x, types.FunctionType):
            if refusal.is_users(x.__code__.co_filename):
                self._function(label, x)
        elif isinstance(x, types.MethodType):
            self._all("", (x.__self__, x.__func__))
        elif isinstance(x, functools.partial):
            self._keep(f"{label}.", x.keywords)
            self._all("", (x.func, *x.args))
        elif isinstance(x, functools._lru_cache_wrapper):
            self.caches.append(x)
            self._follow(label, x.__wrapped__)
        elif isinstance(x, type):
            if _is_users(x):
                self._keep(f"{x.__qualname__}.", Attributes(x))
                self._all("", x.__mro__[1:])
        elif isinstance(x, (*_METHODS, property, functools.cached_property)):
            self._all(label, [getattr(x, name, None) for name in ("__func__", "fget", "func")])
        elif isinstance(x, tuple):
            self._all(label, x)
        elif isinstance(x, CONTAINERS):
            self._container(label, x)
        else:
            self._next.append(("", type(x)))
            self._keep(f"{label}." if label else "", vars(x), attributes=not isinstance(x, nn.Module) or bool(label))

    def _function(self, label: str, x: types.FunctionType) -> None:
        if x.__closure__:
            self._keep(f"{x.__name__}.", Cells(x))
        if x.__dict__:
            self._keep(f"{x.__name__}.", x.__dict__)
        names = x.__code__.co_varnames[:x.__code__.co_argcount]
        for name, value in (*zip(reversed(names), reversed(x.__defaults__ or ()), strict=False), *(x.__kwdefaults__ or {}).items()):
            self._next.append((f"{x.__name__}.{name}", value))
        used = [code for code in _codes(x.__code__)]
        for name in dict.fromkeys(name for code in used for name in code.co_names):
            value = x.__globals__.get(name)
            if isinstance(value, types.ModuleType):
                if refusal.is_users(getattr(value, "__file__", None) or "<"):
                    self._all("", [vars(value).get(inner) for code in used for inner in code.co_names], _CODE)
            elif isinstance(value, _CODE) or is_helper(value):
                self._next.append((name, value))

    def _container(self, label: str, x: dict | list | set | deque) -> None:
        if is_container(x):
            self.places.append((label, x))
            if len(x) <= _LONGEST:
                self._all(label, tuple(x.values() if isinstance(x, dict) else x))

    def _keep(self, label: str, place: MutableMapping, attributes: bool = True) -> None:
        if attributes:
            self.places.append((label, place))
        for name in list(place):
            if name not in BOOKS and (value := place.get(name)) is not None:
                self._next.append((f"{label}{name}", value))
        self._all("", (place.get("_modules") or {}).values() if isinstance(place.get("_modules"), dict) else ())

    def _all(self, label: str, values: Iterable[object], kinds: tuple | type = object) -> None:
        self._next.extend((label, x) for x in values if isinstance(x, kinds))


_CODE = types.FunctionType, type, functools.partial, functools._lru_cache_wrapper
_FOLLOWED = (*_CODE, types.MethodType, tuple, nn.Module, *_METHODS, property, functools.cached_property, *CONTAINERS)


def globals_of_users() -> list[tuple[str, dict]]:
    """The global variables of modules that may be a model's."""
    return [(name, vars(m)) for name, m in list(sys.modules.items()) if (path := getattr(m, "__file__", None)) and refusal.is_users(path)]


def is_container(x: object) -> bool:
    """Whether it holds what it has. A dict that makes its entries when they are asked for, or finds them by other keys, as tables of transformers do,
    cannot be copied."""
    return isinstance(x, CONTAINERS) and not (isinstance(x, dict) and (type(x).__getitem__ is not dict.__getitem__ or type(x).get is not dict.get))


def is_helper(x: object) -> bool:
    """Whether it is an object of a class of the user's that has attributes."""
    return not isinstance(x, (nn.Module, type, types.ModuleType, *CONTAINERS)) and isinstance(getattr(x, "__dict__", None), dict) and _is_users(type(x))


def _is_users(kind: type) -> bool:
    file = getattr(sys.modules.get(kind.__module__), "__file__", None)
    return file is not None and refusal.is_users(file)


def _codes(code: types.CodeType) -> Iterator[types.CodeType]:
    """Of a function and the functions within it."""
    yield code
    for inner in code.co_consts:
        if isinstance(inner, types.CodeType):
            yield from _codes(inner)


def _label(x: object) -> str:
    return "" if isinstance(x, nn.Module) else getattr(x, "__name__", "")
