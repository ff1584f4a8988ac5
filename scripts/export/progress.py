"""What the exporter prints while it works."""

import time
from collections.abc import Iterator
from contextlib import contextmanager


@contextmanager
def phase(name: str) -> Iterator[None]:
    """Prints the phase and, after it, how many seconds it took."""
    print(f"{name} ... ", end="", flush=True)
    start = time.monotonic()
    done = False
    try:
        yield
        done = True
    finally:
        print(f"{time.monotonic() - start:.1f} s" if done else "failed", flush=True)
