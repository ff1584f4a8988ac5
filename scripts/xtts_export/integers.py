"""`int(x.shape[1])` in a user's code, which stays the size that it is: Python's own `int` makes the example's number of it.

And sizes as keys of dicts and arguments of functions of `lru_cache`.
"""

import ast
import contextlib
import functools
import sys
from collections.abc import Iterator
from pathlib import Path
from unittest import mock

import torch

from . import refusal


class _Kind(type):
    def __call__(cls, *args, **options):
        [x] = args if len(args) == 1 else [None]
        return torch.sym_int(x) if isinstance(x, (torch.SymInt, torch.SymFloat)) else int(*args, **options)

    def __instancecheck__(cls, x: object) -> bool:
        return isinstance(x, int)

    def __subclasscheck__(cls, kind: type) -> bool:
        return issubclass(kind, int)


class _Int(int, metaclass=_Kind):
    """What code that calls `int`, or asks for instances of it, gets in its place."""


@contextlib.contextmanager
def sizes() -> Iterator[None]:
    """Within it, the user's modules have this `int` among their global variables. Not those of installed packages, such as NumPy."""
    modules = [(path, vars(m)) for m in list(sys.modules.values()) if (path := getattr(m, "__file__", None)) and refusal.is_users(path) and "-packages" not in path]
    changed = [variables for path, variables in modules if "int" not in variables and _is_called(path)]
    for variables in changed:
        variables["int"] = _Int
    try:
        with mock.patch.object(torch.SymInt, "__hash__", _hash):
            yield
    finally:
        for variables in changed:
            variables.pop("int", None)


def _hash(size: torch.SymInt) -> int:
    """Of equal expressions the same. An environment that a table's key belongs to lives as long as the key, so that no other one has its id."""
    node = size.node
    return hash(node.nested_int()) if node.is_nested_int() else hash((id(node.shape_env), node.expr))


@functools.cache
def _is_called(path: str) -> bool:
    """Whether a file calls `int`, and uses it in no other way that asks for the type itself, as `dtype=int` does."""
    try:
        nodes = [*ast.walk(ast.parse(Path(path).read_text(encoding="utf-8")))]
    except (OSError, ValueError, SyntaxError):
        return False
    calls = [node for node in nodes if isinstance(node, ast.Call) and isinstance(node.func, ast.Name)]
    harmless = [node.func for node in calls] + [node.args[1] for node in calls if node.func.id in ("isinstance", "issubclass") and len(node.args) > 1]
    harmless += [getattr(node, name) for node in nodes for name in ("annotation", "returns") if isinstance(getattr(node, name, None), ast.expr)]
    known = {id(part) for node in harmless for part in ast.walk(node)}
    return any(node.func.id == "int" for node in calls) and all(id(node) in known for node in nodes if isinstance(node, ast.Name) and node.id == "int")
