"""Functions of PyTorch that code imports by name. A patch of their module would not reach it, so the functions stay, and their code changes."""

import contextlib
from collections.abc import Callable, Iterator
from types import FunctionType

# It runs in the globals of the function whose code it becomes, where only the function's own name is known to lead anywhere.
_CALL = (lambda *args, **options: itself.instead(*args, **options)).__code__  # noqa: F821


@contextlib.contextmanager
def code(function: FunctionType, instead: Callable) -> Iterator[None]:
    """Within it, function does what the other one does. The function must have its name in its own module."""
    kept, former = function.__code__, getattr(function, "instead", None)
    function.instead, function.__code__ = instead, _CALL.replace(co_names=(function.__name__, "instead"))
    try:
        yield
    finally:
        function.__code__, function.instead = kept, former


def copied(function: FunctionType) -> FunctionType:
    """What the function does now, whatever becomes of it."""
    return FunctionType(function.__code__, function.__globals__, function.__name__, function.__defaults__, function.__closure__)
