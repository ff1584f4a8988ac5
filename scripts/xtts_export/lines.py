"""The user's lines that a graph's nodes come from, which the host names where a loss becomes NaN.

While PyTorch traces, each node of its graph gets the line of the user's code that runs. In the backward pass that is the line whose gradient
is computed: autograd numbers the operators of the forward pass, and its nodes of the backward pass have the same numbers. torch.onnx writes
what it finds under STACK next to each node. Cleaning makes new nodes for the same values, so the lines are kept by the names of values.
"""

from __future__ import annotations

import contextlib
import functools
import itertools
import re
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING
from unittest import mock

import torch
from torch import fx

from . import refusal

# The dry run, which needs no ONNX, has lines, too.
if TYPE_CHECKING:
    import onnx

# The key of a node's line: in fx graphs, in what torch.onnx writes, and in the files of a bundle.
META, STACK, KEY = "stack_trace", "pkg.torch.onnx.stack_trace", "line"
_OWN = str(Path(__file__).parent)
# A line, or none, and how many operators ran in it one after another.
Run = tuple[str | None, int]
# PyTorch notes some nodes itself, with several lines.
_ONE = re.compile(r".+:\d+")
# What capture.py, bf16.py and clean/ add to the name of a value that was traced, to name what they make of it.
_MADE = re.compile(r"(\.(part|wide|clean)\d+)+$")


@contextlib.contextmanager
def noted() -> Iterator[None]:
    """Within it, each node that PyTorch traces is noted with its line."""
    create, forward = fx.Graph.create_node, {}

    def create_node(*args, **options):
        node = create(*args, **options)
        gradient = torch._C._current_autograd_node()
        if gradient is not None:
            # A function of the user's own has a backward pass with lines.
            line = running() or forward.get(gradient._sequence_nr())
        elif line := running():
            # An operator without a gradient, such as a comparison, has no number of its own.
            forward.setdefault(torch.autograd._get_sequence_nr() - 1, line)
        if line:
            node.meta[META] = line
        return node

    with mock.patch.object(fx.Graph, "create_node", create_node):
        yield


def running() -> str | None:
    """`file.py:12`, the innermost line of the user's that runs below the exporter, or below autograd in the backward pass."""
    frame = sys._getframe(1)
    while frame is not None:
        path, name = frame.f_code.co_filename, frame.f_code.co_name
        if name == "_engine_run_backward" or name in ("trace", "dry_run") and path.startswith(_OWN):
            return None
        if (short := _users(path)) is not None:
            return f"{short}:{frame.f_lineno}"
        frame = frame.f_back
    return None


@functools.cache
def _users(path: str) -> str | None:
    """A user's file, from where Python finds its modules: what a file is called elsewhere says nothing to others. The exporter's models are not a user's."""
    if not refusal.is_users(path) or path.startswith(_OWN):
        return None
    folders = [Path(folder or ".").resolve() for folder in sys.path]
    within = [folder for folder in folders if Path(path).resolve().is_relative_to(folder)]
    return str(Path(path).resolve().relative_to(max(within, key=lambda folder: len(folder.parts)))) if within else Path(path).name


def of(graph: onnx.GraphProto) -> dict[str, str]:
    """The lines of a graph that torch.onnx has written, by the values that its nodes return."""
    found = {}
    for node in graph.node:
        if line := next((p.value for p in node.metadata_props if p.key == STACK and _ONE.fullmatch(p.value)), None):
            found |= dict.fromkeys(node.output, line)
    return found


def write(graph: onnx.GraphProto, lines: dict[str, str], outer: str | None = None) -> None:
    """Notes the nodes of a graph with lines, by the values that they return. A node within another has that one's, unless it has one of its own.

    The exporter's own nodes, such as the masks of rows, have none, and neither have sums of the gradients of a tensor that is used twice.
    """
    for node in graph.node:
        line = next((lines[name] for output in node.output if (name := _MADE.sub("", output)) in lines), outer)
        if line:
            node.metadata_props.add(key=KEY, value=line)
        for attribute in node.attribute:
            if attribute.HasField("g"):
                write(attribute.g, lines, line)


class Lines:
    """Of the operators of a run, in their order."""

    def __init__(self):
        self.runs: list[Run] = []

    def add(self, line: str | None) -> None:
        if self.runs and self.runs[-1][0] == line:
            self.runs[-1] = line, self.runs[-1][1] + 1
        else:
            self.runs.append((line, 1))


def moves(then: list[Run], now: list[Run]) -> dict[str, str] | None:
    """Where the lines of a program are now, by where they were: empty if none has moved, None if the operators of one are in several."""
    if then == now:
        return {}
    found: dict[str | None, str | None] = {None: None}
    for was, is_now in itertools.zip_longest(*(itertools.chain.from_iterable(itertools.repeat(*run) for run in runs) for runs in (then, now))):
        if found.setdefault(was, is_now) != is_now:
            return None
    return {was: line for was, line in found.items() if was and line}


def moved(graph: onnx.GraphProto, to: dict[str, str]) -> bool:
    """Moves the lines of a graph that write has noted. False if it has one that is not among them."""
    if not to:
        return True
    for node in graph.node:
        for noted in node.metadata_props:
            if noted.key == KEY:
                if noted.value not in to:
                    return False
                noted.value = to[noted.value]
        if not all(moved(attribute.g, to) for attribute in node.attribute if attribute.HasField("g")):
            return False
    return True
