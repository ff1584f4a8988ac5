"""Numbers that depend on sizes, in arithmetic with tensors: counted on the device, where a number of a shape would be copied to it in every step."""

import operator

import torch
from torch.fx import GraphModule, Node

aten = torch.ops.aten

_ARITHMETIC = {aten.add, aten.sub, aten.mul, aten.div, aten.remainder, aten.fmod}
_OPERATIONS = {
    operator.add: aten.add.Tensor, operator.sub: aten.sub.Tensor, operator.mul: aten.mul.Tensor, operator.truediv: aten.div.Tensor,
    operator.pow: aten.pow.Tensor_Tensor, operator.mod: aten.remainder.Tensor,
}


def on_device(graph: GraphModule) -> None:
    """Changes operators with a tensor and a size to operators with two tensors."""
    known = {}
    for node in list(graph.graph.nodes):
        packet = getattr(node.target, "overloadpacket", None)
        if node.op != "call_function" or packet not in _ARITHMETIC or node.target._overloadname not in ("Scalar", "Tensor") or len(node.args) < 2:
            continue
        x, number = node.args[:2]
        if _is_tensor(x) and isinstance(number, Node) and not _is_tensor(number):
            with graph.graph.inserting_before(node):
                kind = node.meta["val"].dtype
                node.args = (x, _Counter(graph, node, kind, known).of(number), *node.args[2:])
            node.target = packet.Tensor


def _is_tensor(x: object) -> bool:
    return isinstance(x, Node) and isinstance(x.meta.get("val"), torch.Tensor)


class _Counter:
    """Tensors of the numbers that nodes before `place` hold."""

    def __init__(self, graph: GraphModule, place: Node, kind: torch.dtype, known: dict):
        self._graph, self._place, self._kind, self._known = graph.graph, place, kind, known

    def of(self, number: Node | float) -> Node:
        key = number, self._kind
        if key not in self._known:
            self._known[key] = self._made(number)
        return self._known[key]

    def _made(self, number: Node | float) -> Node:
        if not isinstance(number, Node):
            return self._call(aten.full.default, ([], number), {"dtype": self._kind})
        if number.target in (torch.sym_float, float):
            return self.of(number.args[0])
        if number.target in _OPERATIONS:
            return self._call(_OPERATIONS[number.target], tuple(self.of(n) for n in number.args))
        if number.target in (aten.sym_size.int, operator.floordiv):
            # A quotient of sizes is one itself: floats would not round as integers do.
            ones = self._call(aten.full.default, ([number], 1), {"dtype": self._kind}, (number.meta["val"],))
            return self._call(aten.sum.dim_IntList, (ones, [0]), {"dtype": self._kind})
        return self._call(aten.scalar_tensor.default, (number,), {"dtype": self._kind})

    def _call(self, target, args: tuple, options: dict | None = None, shape: tuple = ()) -> Node:
        made = self._graph.call_function(target, args, options or {})
        # Not computed: PyTorch would make a number of the example's size.
        made.meta["val"] = self._place.meta["val"].new_empty(shape, dtype=self._kind)
        return made
