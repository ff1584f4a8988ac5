"""What a run of forward leaves outside of its results: tables of positions, filter banks and attention weights that modules and functions keep.

While a graph is traced they are stand-ins, which are of no use to the next run. So every run begins with what the first one found. A module whose
next run reads what the last one left, as a moving average, is no graph: refuse_carried runs it twice.
"""

import contextlib
import contextvars
import functools
import sys
from collections.abc import Callable, Iterable, Iterator, MutableMapping, Sequence
from dataclasses import dataclass

import torch
from torch import Tensor, nn

from . import clocks, progress, refusal, watch
from .reach import BOOKS, Attributes, Reached, globals_of_users, is_container
from .refusal import Refusal

_NUMBERS = bool, int, float
_MISSING = object()
# Within a run, those that it is made of leave what they find.
_running = contextvars.ContextVar("running", default=False)


@contextlib.contextmanager
def removed(module: nn.Module, functions: Iterable[Callable] = ()) -> Iterator[None]:
    """Within it, anything may be kept where reach.py looks, and in global variables. functions run beside the module, as losses.

    Afterwards these are as they were.
    """
    if _running.get():
        yield
        return
    before = _Places(module, functions)
    token = _running.set(True)
    try:
        yield
    finally:
        _running.reset(token)
        before.restore()


def refuse_carried(module: nn.Module, first: Callable[[], dict[str, Tensor]], second: Callable[[], dict[str, Tensor]], functions: Iterable[Callable] = ()) -> None:
    """Raises Refusal if what the first run leaves changes what the second returns, or makes it fail. They run the module on batches of one size."""
    def alone(run: Callable[[], dict[str, Tensor]] = second) -> dict[str, Tensor]:
        progress.at("on a batch of numbers, for what it leaves for the next call")
        with removed(module, functions):
            return run()

    with torch.no_grad():
        try:
            alone(first)
            want = alone()
        except Refusal:
            raise
        except Exception as error:
            # A batch that forward cannot take: the check of the graph knows more of it.
            progress.remark(f"forward does not run on a random batch ({watch.summary(error)}), so what it leaves for the next call "
                            "is not checked")
            return
        with clocks.later() as asked:
            again = _again(alone)
        if not _same(want, again):
            raise Refusal("forward returns something else for the same batch when it runs again",
                          "random numbers are torch.rand, randn and the like, which follow from the seed of the step; what follows from the time would be a constant", next(iter(asked), None))
        with removed(module, functions):
            places = _Places(module, functions)
            first()
            left = places.changes()
            after = _again(second, left)
            counted = [change for change in left if change.counts()]
        if _same(want, after) and not counted:
            return
        # Of several, a tensor says more than a flag that tells that it was set.
        [blamed, *_] = (counted if _same(want, after) else sorted(left, key=lambda change: not isinstance(change.value, Tensor))) or [None]
        if blamed is None:
            raise Refusal("a run of forward changes what the next one returns", "what lasts is a buffer of the module, by register_buffer: buffers that forward changes are state")
        with removed(module, functions):
            line = line_of(blamed.happened, first)
        raise blamed.refusal(line)


def _again(run: Callable[[], dict[str, Tensor]], left: Sequence["_Change"] = ()) -> dict[str, Tensor]:
    """A run that another one has shown to work. left is what the run before this one has left."""
    try:
        return run()
    except Exception as error:
        names = ", ".join(dict.fromkeys(change.name for change in left))
        raise Refusal(f"forward fails when it is called again: {watch.summary(error)}",
                      f"a graph begins each step as the first one began: make {names or 'what a call uses up'} anew in forward; what lasts is a buffer, by register_buffer",
                      refusal.within(error)) from error


@dataclass
class _Change:
    """An entry of a place after a run."""

    name: str
    place: object
    key: object
    old: object
    value: object

    def now(self) -> object:
        return self.place.get(self.key, _MISSING) if isinstance(self.place, MutableMapping) else tuple(self.place)

    def happened(self) -> bool:
        return _differs(self.old, self.now())

    def counts(self) -> bool:
        """Whether it is a number that the next run has changed again: a cache stays as it is, since both have one size."""
        old, value, now = ((x if isinstance(x, tuple) else (x,)) for x in (self.old, self.value, self.now()))
        return (all(type(x) in (int, float) for x in (*old, *value, *now)) and len(old) == len(value) == len(now)
                and any(x not in (y, z) and y != z for x, y, z in zip(now, value, old, strict=True)))

    def refusal(self, line: str | None) -> Refusal:
        if isinstance(self.value, _NUMBERS):
            return Refusal(f"forward changes {self.name} from {self.old} to {self.value}, and the next call has the new value: a graph would not",
                           "a number that changes over steps is an input, schedule(...), or a buffer that is written where self.training; a counter that decides nothing is left out", line)
        name = self.name.rpartition(".")[2]
        return Refusal(f"forward gives {self.name} another {'tensor' if isinstance(self.value, Tensor) else 'value'}, which outlives the step",
                       f"make it a buffer, by register_buffer({name!r}, ...): buffers that forward changes are state", line)


class _Places:
    """Where a run may leave something, and what is there."""

    def __init__(self, module: nn.Module, functions: Iterable[Callable] = ()):
        attributes = [(f"{path}." if path else "", part.__dict__) for path, part in module.named_modules()]
        variables, known = globals_of_users(), {id(own) for _, own in attributes}
        named = [*attributes, *((f"{name}.", own) for name, own in variables)]
        containers = [(prefix + str(key), x) for prefix, own in named for key, x in own.items() if is_container(x) and key not in BOOKS]
        known.update(id(x) for _, x in [*named, *containers])
        # Of what the code holds, such as a helper with an average or the variables of a closure.
        reached = Reached((module, *functions))
        further = [(name, place) for name, place in reached.places if id(place) not in known]
        self._shared = {id(own) for _, own in variables} | {id(own) for _, own in further if isinstance(own, Attributes)}
        self._before = [(name, place, _copy(place)) for name, place in [*named, *containers, *further]]
        self._buffers = [(part._buffers, part._buffers.copy()) for part in module.modules()]
        own = [x for _, own in variables for x in own.values() if isinstance(x, functools._lru_cache_wrapper)]
        self._caches = {id(x): x for x in (*own, *reached.caches)}.values()

    def changes(self) -> list[_Change]:
        """What is no longer as it was."""
        found = []
        for name, place, old in self._before:
            if not isinstance(place, MutableMapping):
                if _differs(now := tuple(place), tuple(old)):
                    found.append(_Change(name, place, None, tuple(old), now))
                continue
            for key in [key for key in {**old, **place} if key not in BOOKS and self._matters(place, old, key)]:
                label = name + str(key) if name.endswith(".") or not name else name
                found.append(_Change(label, place, key, old.get(key, _MISSING), place.get(key, _MISSING)))
        return found

    def restore(self) -> None:
        for _, place, old in self._before:
            if not isinstance(place, MutableMapping):
                if _differs(tuple(place), tuple(old)):
                    place.clear()
                    (place.update if isinstance(place, set) else place.extend)(old)
                continue
            for key in [key for key in {**old, **place} if key not in BOOKS and self._matters(place, old, key)]:
                if key in old:
                    place[key] = old[key]
                else:
                    del place[key]
        for own, known in self._buffers:
            # Those that had a tensor may be state.
            had = {name: own[name] for name, x in known.items() if x is not None}
            own.clear()
            own.update(known | had)
        for function in self._caches:
            function.cache_clear()

    def _matters(self, place: dict, old: dict, key: object) -> bool:
        """Whether an entry has changed. Of global variables and classes, which libraries have, too, only tensors and numbers count."""
        was, now = old.get(key, _MISSING), place.get(key, _MISSING)
        return _differs(was, now) and (id(place) not in self._shared or any(isinstance(x, (Tensor, *_NUMBERS)) or _has_tensor(x) for x in (was, now)))


def _copy(place):
    return dict(place) if isinstance(place, MutableMapping) else list(place)


def _differs(a: object, b: object) -> bool:
    """Of numbers their values count, of anything else which object it is."""
    if isinstance(a, tuple) and isinstance(b, tuple):
        return len(a) != len(b) or any(_differs(x, y) for x, y in zip(a, b, strict=True))
    return a is not b and (type(a) is not type(b) or type(a) not in (*_NUMBERS, str) or a != b)


def _has_tensor(x: object) -> bool:
    if isinstance(x, dict):
        x = tuple(x.values())
    return isinstance(x, Tensor) or (isinstance(x, (tuple, list)) and any(isinstance(y, Tensor) for y in x))


def _same(a: dict[str, Tensor], b: dict[str, Tensor]) -> bool:
    return a.keys() == b.keys() and all(torch.equal(torch.nan_to_num(x), torch.nan_to_num(b[name])) for name, x in a.items())


def line_of(happened: Callable[[], bool], run: Callable[[], object]) -> str | None:
    """The user's line that makes it happen."""
    last, found = None, None

    def follow(frame, event: str, _):
        nonlocal last, found
        if not refusal.is_users(frame.f_code.co_filename):
            return None
        if found is None and last and happened():
            found = last
        last = frame.f_code.co_filename, frame.f_lineno, frame.f_code.co_name
        return follow

    former = sys.gettrace()
    sys.settrace(follow)
    try:
        run()
    finally:
        sys.settrace(former)
    return refusal.at(*found) if found or (last and happened() and (found := last)) else None
