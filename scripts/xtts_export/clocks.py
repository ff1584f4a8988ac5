"""What asks for the time while forward runs: a graph would keep the answer, and code that only measures itself may ask."""

import contextlib
import random
import secrets
import sys
import time
import uuid
from collections.abc import Callable, Iterator
from unittest import mock

from . import refusal

# Further than any code waits, and no multiple of what it may divide by.
_LATER = 123456.789
_CLOCKS = "time", "monotonic", "perf_counter", "process_time"
# Of the standard library, what asks for its caller.
_BETWEEN = random.__file__, uuid.__file__, secrets.__file__, __file__


@contextlib.contextmanager
def later() -> Iterator[list[str]]:
    """Within it, a user's code finds another time. The context is the list of the lines that ask."""
    asked = []

    def moved(function: Callable, by: float) -> Callable:
        def call():
            if line := caller():
                asked.append(line)
                return function() + by
            return function()
        return call

    with contextlib.ExitStack() as stack:
        for name in _CLOCKS:
            for variant, by in ((name, _LATER), (f"{name}_ns", int(_LATER * 1e9))):
                stack.enter_context(mock.patch.object(time, variant, moved(getattr(time, variant), by)))
        yield asked


def caller(*between: str) -> str | None:
    """The line that has called, if it is a user's: libraries draw names of files and the like. between are further files that may stand between."""
    frame = sys._getframe(2)
    while frame and frame.f_code.co_filename in (*_BETWEEN, *between):
        frame = frame.f_back
    return refusal.at(frame.f_code.co_filename, frame.f_lineno, frame.f_code.co_name) if frame and refusal.is_users(frame.f_code.co_filename) else None
