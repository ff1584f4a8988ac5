"""Work in a process of its own, while this one works on: a graph is traced beside the dry run or another graph, and a
part of the check runs beside the others.

The process is a fork, so that it has the module, with the user's functions in it, and shares the memory of its weights. It
writes files, and returns what can be pickled. If it fails or hangs, the caller does the work again, and has the error.
"""

import gc
import mmap
import os
import pickle
import select
import signal
from collections.abc import Callable
from pathlib import Path

import torch
from torch import nn

from . import progress

# Bytes of the line that says what the process does.
_LINE = 512
# Seconds without any work after which a process hangs, as one does that waits for a thread which the fork has not.
_HANGS = 30


def possible() -> bool:
    """Whether there is a second core."""
    return Path("/proc/self/stat").exists() and len(os.sched_getaffinity(0)) > 1


def gradients_possible() -> bool:
    """Whether a fork may compute gradients after this process has: without an accelerator, if prepare's were the first."""
    return possible() and not torch.accelerator.is_available()


def prepare() -> None:
    """Computes a gradient, before there are any on tensors without memory.

    With the first gradient of a process, PyTorch starts a thread for each device that it finds, and then forbids gradients
    in forks. On tensors without memory it takes the CPU for such a device.
    """
    if not torch.accelerator.is_available():
        torch.ones((), requires_grad=True).backward()


class Forked:
    """Runs work in a fork. module is what it runs, for the line of its progress."""

    def __init__(self, work: Callable[[], object], module: nn.Module):
        self._line = mmap.mmap(-1, _LINE)
        self._reading, writing = os.pipe()
        self._pid = os.fork()
        if self._pid == 0:
            self._run(work, module, writing)
        os.close(writing)

    def _run(self, work: Callable[[], object], module: nn.Module, writing: int) -> None:
        status = 1
        # Or else the first collection would write to all objects, and so copy their memory.
        gc.freeze()
        try:
            nowhere = os.open(os.devnull, os.O_WRONLY)
            for stream in (1, 2):
                os.dup2(nowhere, stream)
            # OpenMP's threads do not outlive a fork, and PyTorch would wait for them.
            torch.set_num_threads(1)
            progress.told(module, self._tell)
            with os.fdopen(writing, "wb") as file:
                pickle.dump(work(), file)
            status = 0
        finally:
            # Nothing is cleaned up here: temporary folders are the other process's.
            os._exit(status)

    def _tell(self, text: str) -> None:
        self._line[:] = text.encode()[:_LINE].ljust(_LINE)

    def line(self) -> str:
        """What it does."""
        return self._line[:].decode(errors="ignore").strip("\0 ")

    def result(self) -> object | None:
        """What the work has returned, or None if it failed. Waits for it."""
        data, worked = b"", -1
        with os.fdopen(self._reading, "rb", buffering=0) as file:
            while True:
                if not select.select([file], [], [], _HANGS)[0]:
                    if (now := self._worked()) == worked:
                        os.kill(self._pid, signal.SIGKILL)
                    worked = now
                    continue
                if not (more := file.read(1 << 16)):
                    break
                data += more
        _, status = os.waitpid(self._pid, 0)
        self._pid = 0
        return pickle.loads(data) if status == 0 else None

    def _worked(self) -> int:
        """The clock ticks that the process has used."""
        user, system = Path(f"/proc/{self._pid}/stat").read_text().rpartition(")")[2].split()[11:13]
        return int(user) + int(system)

    def stop(self) -> None:
        """Ends it, if it has not ended."""
        if self._pid:
            os.kill(self._pid, signal.SIGKILL)
            self.result()
