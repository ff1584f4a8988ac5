"""Clean-up of exported graphs: passes that remove nodes and keep the numbers.

What torch.onnx writes follows PyTorch's operators, one by one: a matrix is transposed before its product, attention's heads are
folded into the batch and unfolded again, gradients are views of views. On a GPU each Transpose and Expand is a kernel and a trip through memory.

The passes hold for every size of the batch: what they know of shapes are symbols (graph.py).
"""

from collections.abc import Callable
from dataclasses import dataclass

import onnx

from .. import progress
from . import elementwise, products, sharing, views
from .graph import Graph

# Each finds more after the others, so they run in rounds.
PASSES: dict[str, Callable[[Graph], None]] = {
    "factors": elementwise.factors,
    "expansions": elementwise.expansions,
    "reductions": elementwise.reductions,
    "transposes": views.transposes,
    "gemm": products.gemm,
    "batched": products.batched,
    "views": views.views,
    "sink_reshapes": views.sink_reshapes,
    "sizes": sharing.sizes,
    "expressions": sharing.expressions,
}


@dataclass(frozen=True)
class Gains:
    """The number of nodes before and after the passes, and how many each pass removed."""

    before: int
    after: int
    passes: dict[str, int]

    def __str__(self) -> str:
        return f"{self.before} -> {self.after} nodes: " + ", ".join(f"{name} {-n:+d}" for name, n in self.passes.items() if n)


def clean(model: onnx.ModelProto, passes: dict[str, Callable[[Graph], None]] = PASSES) -> Gains:
    """Changes the model in place. value_info must describe all values, and does so afterwards."""
    graph = Graph(model)
    start = end = len(graph.nodes)
    gains = dict.fromkeys(["unused", *passes], 0)

    def run(name: str, change: Callable[[Graph], None]) -> None:
        nonlocal end
        change(graph)
        graph.tidy()
        gains[name] += end - len(graph.nodes)
        end = len(graph.nodes)

    run("unused", lambda _: None)
    before, turn = end + 1, 0
    while end < before:
        before, turn = end, turn + 1
        for n, (name, change) in enumerate(passes.items(), start=1):
            progress.at(f"cleaned, round {turn}, {name}", n, len(passes))
            run(name, change)
    graph.write()
    return Gains(start, end, gains)
