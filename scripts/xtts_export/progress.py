"""What the exporter prints while it works.

Each phase is a line. While it runs, the line says every second what is being done, on a terminal; elsewhere, a further
line says so every ten seconds. The work itself only notes where it is (at, operator): a thread of its own prints, and
looks which part of the module is running.
"""

import shutil
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from types import FrameType
from unittest import mock

import torch
from torch import nn

# Seconds between two lines, on a terminal and elsewhere.
TERMINAL, PIPE = 1.0, 10.0
_COLUMNS = 100
# Autograd gives this number or a higher one to nodes that have none of their own, as those that accumulate gradients.
_UNNUMBERED = 1 << 62
_running: "_Phase | None" = None


class _Phase:
    """A phase that is running, and what it is doing."""

    def __init__(self, name: str, module: nn.Module | None):
        self.name, self.start, self.out = name, time.monotonic(), sys.stdout
        self.shown = False
        self.at("")
        parts = [] if module is None else [(path, part) for path, part in module.named_modules() if path]
        self._parts = {id(part): f"forward of {path} ({n} of {len(parts)} parts)"
                       for n, (path, part) in enumerate(parts, start=1)}
        self._worker, self._stop, self._lock = threading.get_ident(), threading.Event(), threading.Lock()
        self._thread = threading.Thread(target=self._tell, daemon=True)

    def at(self, step: str | Callable[[], str]) -> None:
        self.step, self.operator = step, ("", None, None)
        self.forward()

    def forward(self) -> None:
        """A forward pass begins with this number of autograd's nodes. Its last one is known when the gradients begin."""
        self.first, self.last = torch._C._autograd._get_sequence_nr(), None

    def begin(self) -> None:
        print(f"{self.name} ... ", end="", flush=True, file=self.out)
        self._thread.start()

    def end(self, done: bool) -> None:
        self._stop.set()
        self._thread.join()
        took = f"{time.monotonic() - self.start:.1f} s" if done else "failed"
        self._clear()
        print(f"{self.name} ... {took}" if self.shown else took, flush=True, file=self.out)

    def line(self, text: str) -> None:
        """Prints a line that stays."""
        with self._lock:
            self._clear()
            print(text if self.shown else f"\n{text}", flush=True, file=self.out)
            self.shown = True

    def now(self) -> str:
        """What it is doing: the step, and the part of the module or the operator, as far as they are known."""
        name, n, of = self.operator
        done = "" if n is None else f" ({n:,} of {of:,})"
        step = self.step() if callable(self.step) else self.step
        return ", ".join(filter(None, (step, self._part() or f"{name}{done}")))

    def _tell(self) -> None:
        terminal = self.out.isatty()
        while not self._stop.wait(TERMINAL if terminal else PIPE):
            text = f"{self.now() or 'begins'}, {time.monotonic() - self.start:.0f} s"
            if not terminal:
                self.line(f"  {text}")
                continue
            with self._lock:
                self._clear()
                width = shutil.get_terminal_size((_COLUMNS, 1)).columns - 1
                print(f"\r{self.name} ... {text}"[:width], end="", flush=True, file=self.out)
                self.shown = True

    def _clear(self) -> None:
        if self.out.isatty() and self.shown:
            print("\r\x1b[K", end="", file=self.out)

    def _part(self) -> str:
        """The innermost part of the module whose forward is running, as seen from outside: a hook would be seen by it."""
        frame = sys._current_frames().get(self._worker) if self._parts else None
        while frame is not None:
            if part := self._parts.get(_owner(frame)):
                return part
            frame = frame.f_back
        return ""


def _owner(frame: FrameType) -> int | None:
    code = frame.f_code
    return id(frame.f_locals.get(code.co_varnames[0])) if code.co_name == "forward" and code.co_argcount else None


@contextmanager
def phase(name: str, module: nn.Module | None = None) -> Iterator[None]:
    """Prints the phase and, after it, its seconds; meanwhile, which part of the module runs, and what at and operator note."""
    global _running
    former, _running = _running, _Phase(name, module)
    _running.begin()
    done = False
    try:
        yield
        done = True
    finally:
        _running.end(done)
        _running = former


def told(module: nn.Module, tell: Callable[[str], None]) -> None:
    """From now on, in a process of its own, what it does goes to tell, and not to the terminal."""
    global _running
    _running = _Phase("", module)

    def run() -> None:
        while True:
            tell(_running.now())
            time.sleep(TERMINAL / 2)

    threading.Thread(target=run, daemon=True).start()


def at(step: str | Callable[[], str], n: int | None = None, of: int | None = None) -> None:
    """Notes the step that the phase is at, which may be n of so many. A function is asked when a line is printed."""
    if _running is not None:
        _running.at(step if n is None else f"{step} ({n} of {of})")


def operator(name: object, n: int | None = None, of: int | None = None) -> None:
    """Notes the operator that the phase is at. In a backward pass, n and of are those of autograd's nodes by default."""
    if _running is None:
        return
    node = torch._C._current_autograd_node() if n is None else None
    if node is not None and (number := node._sequence_nr()) < _UNNUMBERED:
        _running.last = max(_running.last or 0, number)
        name, n, of = f"gradients, {name}", _running.last - number + 1, _running.last - _running.first + 1
    _running.operator = name, n, of and max(n, of)


@contextmanager
def tracing() -> Iterator[None]:
    """Within it, each node of a graph that is traced is noted."""
    create = torch.fx.Graph.create_node

    def noted(self, op, target, *args, **kwargs):
        if _running is not None and op == "placeholder":
            # A pass of its own: functions run once for their results' types, and once for their graph.
            _running.forward()
        operator(target)
        return create(self, op, target, *args, **kwargs)

    with mock.patch.object(torch.fx.Graph, "create_node", noted):
        yield


@contextmanager
def counted(holder: object, function: str, of: int, name: Callable[..., object]) -> Iterator[None]:
    """Within it, each call of a function is noted by the name that its arguments give."""
    original, calls = getattr(holder, function), 0

    def noted(*args, **kwargs):
        nonlocal calls
        calls += 1
        operator(name(*args), calls, of)
        return original(*args, **kwargs)

    with mock.patch.object(holder, function, noted):
        yield


def remark(text: str) -> None:
    """Prints a line that stays, also within a phase."""
    if _running is None:
        print(text, flush=True)
    else:
        _running.line(text)
