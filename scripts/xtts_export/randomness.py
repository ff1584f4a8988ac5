"""Random numbers that no graph has: those of Python, of NumPy and of PyTorch's own generators, and what the system makes of entropy and time.

Whether code has drawn is asked of the generators' states, before and after a run. What a run returns does not tell: a number that is below 0.95 is
below it nearly always, and a graph would keep the branch of the dry run for ever.
"""

import contextlib
import os
import random
import uuid
from collections.abc import Callable, Iterable, Iterator
from functools import partial
from unittest import mock

import numpy as np
import torch
from torch import nn
from torch.utils._python_dispatch import _disable_current_modes

from . import clocks, leftovers
from .reach import Reached, globals_of_users
from .refusal import Refusal

_HINT = "draw by torch.rand, randn or randint, whose numbers follow from the seed of the step: keep = (torch.rand(x.shape[0]) > 0.1).float()[:, None, None], x + keep * layer(x)"
_FIXED = "numbers that are always the same are made once, in __init__, and kept by register_buffer; others are torch.rand, randn and the like, without torch.manual_seed"
# No module has this one, so that a seed which forward sets is another state.
_SEED = 0x5EED0FE7


def refuse(module: nn.Module, functions: Iterable[Callable], run: Callable[[], object]) -> object:
    """What run() returns, which runs the module and functions. Raises Refusal if it has drawn, also where it has failed."""
    with _apart():
        generators = _Generators(module, functions)
        drawn: list[tuple[str, str]] = []
        before = generators.states()
        try:
            with _noting(drawn):
                result = run()
        except Exception as error:
            generators.compare(before, run, drawn, error)
            raise
        generators.compare(before, run, drawn)
        return result


class _Generators:
    """Those that code can reach."""

    def __init__(self, module: nn.Module, functions: Iterable[Callable]):
        self._own = {}
        places = [*Reached((module, *functions)).places, *globals_of_users(), *((f"{path}." if path else "", vars(part)) for path, part in module.named_modules())]
        for name, place in places:
            entries = place.items() if hasattr(place, "items") else ((None, x) for x in tuple(place))
            for key, x in list(entries):
                if state := _state_of(x):
                    self._own.setdefault(id(x), (name if key is None else f"{name}{key}" if not name or name.endswith(".") else name, state))

    def states(self) -> dict[str, object]:
        _, numbers, place, *_ = np.random.get_state()
        # A dry run would make a fake tensor of the state.
        with _disable_current_modes():
            return {"Python's random": random.getstate(), "NumPy's random": (numbers.tobytes(), place), "PyTorch's generator": torch.get_rng_state().numpy().tobytes(),
                    **{f"the generator {name}": state() for name, state in self._own.values()}}

    def compare(self, before: dict[str, object], run: Callable[[], object], drawn: list[tuple[str, str]], error: Exception | None = None) -> None:
        after = self.states()
        for name, state in before.items():
            if after[name] == state:
                continue
            with _apart():
                now = self.states()[name]
                line = leftovers.line_of(partial(self._moved, name, now), lambda: _quietly(run))
            raise Refusal(f"{name} is drawn from or set in a run of forward, and a graph would keep what came out", _FIXED if name.startswith("PyTorch") else _HINT, line) from error
        for what, line in drawn:
            raise Refusal(f"{what} gives another result in each call, and a graph would keep the first one", _HINT, line) from error

    def _moved(self, name: str, state: object) -> bool:
        return self.states()[name] != state


def _state_of(x: object) -> Callable[[], object] | None:
    match x:
        case np.random.Generator():
            return lambda: repr(x.bit_generator.state)
        case np.random.RandomState():
            return lambda: repr(x.get_state(legacy=False))
        case random.SystemRandom():
            return None
        case random.Random():
            return x.getstate
        case torch.Generator():
            return lambda: x.get_state().numpy().tobytes()
    return None


def _quietly(run: Callable[[], object]) -> None:
    with contextlib.suppress(Exception):
        run()


@contextlib.contextmanager
def _apart() -> Iterator[None]:
    """The generators at a state of their own. Theirs come back."""
    kept = random.getstate(), np.random.get_state(), torch.get_rng_state()
    random.seed(_SEED)
    np.random.seed(_SEED)
    torch.default_generator.manual_seed(_SEED)
    try:
        yield
    finally:
        random.setstate(kept[0])
        np.random.set_state(kept[1])
        torch.set_rng_state(kept[2])


@contextlib.contextmanager
def _noting(drawn: list[tuple[str, str]]) -> Iterator[None]:
    """Notes what has no state to compare: entropy of the system, and generators that start from it."""
    def noted(function: Callable, name: str, counts: Callable[..., bool] = lambda *_: True) -> Callable:
        def call(*args, **kwargs):
            if counts(*args, *kwargs.values()) and (line := clocks.caller(__file__)):
                drawn.append((name, line))
            return function(*args, **kwargs)
        return call

    unseeded = lambda *args: not args or args[0] is None
    with (mock.patch.object(os, "urandom", noted(os.urandom, "os.urandom")), mock.patch.object(random, "_urandom", noted(random._urandom, "the system's random")),
          mock.patch.object(random.Random, "seed", noted(random.Random.seed, "random.Random()", lambda self, *args: unseeded(*args))),
          mock.patch.object(np.random, "default_rng", noted(np.random.default_rng, "np.random.default_rng()", unseeded)),
          mock.patch.object(uuid, "uuid1", noted(uuid.uuid1, "uuid.uuid1"))):
        yield
