"""Values that hold sizes, and the cheapest one for a Reshape."""

from dataclasses import dataclass

import numpy as np
import onnx
import sympy

from .graph import Graph, Shape, attribute

# Constants of more numbers than the margins of a Pad are no sizes.
_MOST = 16


class Sizes:
    """The sizes that values of a graph hold, and which of these depend on input shapes only, so that any node may read them."""

    def __init__(self, graph: Graph):
        self._graph = graph
        self._values, self._constants, self._vectors = {}, {}, {}
        for name, x in graph.constants.items():
            if x.dtype == np.int64 and x.ndim <= 1 and x.size <= _MOST:
                self._values[name] = _Sizes([sympy.Integer(n) for n in x.reshape(-1).tolist()], x.ndim, True)
                if x.ndim == 1:
                    self._constants.setdefault(tuple(x.tolist()), name)
        for node in graph.nodes:
            sizes = self._compute(node)
            if sizes is not None:
                self._values[node.output[0]] = sizes
                if sizes.free and sizes.rank == 1:
                    self._vectors.setdefault(tuple(sizes.entries), node.output[0])

    def reshape(self, node: onnx.NodeProto, source: str) -> bool:
        """Makes the node a Reshape of source. False, and nothing changes, if its sizes depend on more than input shapes."""
        target = self._target(self._graph.shape(source), self._graph.shape(node.output[0]))
        if target is not None:
            self._graph.become(node, "Reshape", [source, target], **self._zeros(target))
        return target is not None

    def reshaped(self, source: str, shape: Shape) -> str | None:
        """The value source in a shape, by a new node unless it has the shape; None as reshape has False."""
        if self._graph.shape(source) == shape:
            return source
        target = self._target(self._graph.shape(source), shape)
        return target and self._graph.add("Reshape", [source, target], source, shape, **self._zeros(target))

    def cheapest(self, name: str) -> str:
        """The value to read in place of a value that holds sizes: a constant, or one that holds the same and depends on inputs only."""
        sizes = self._values.get(name)
        if sizes is None or sizes.rank != 1:
            return name
        if all(entry.is_Integer for entry in sizes.entries):
            return self._constant([int(entry) for entry in sizes.entries])
        return self._vectors.get(tuple(sizes.entries), name)

    def _target(self, source: Shape, shape: Shape) -> str | None:
        constant = reshape_constant(source, shape)
        return self._constant(constant) if constant is not None else self._vector(shape)

    def _zeros(self, target: str) -> dict[str, int]:
        """In a constant 0 copies a dimension, in what is computed it is a size."""
        return {} if target in self._graph.constants else {"allowzero": 1}

    def _constant(self, entries: list[int]) -> str:
        key = tuple(entries)
        if key not in self._constants:
            self._constants[key] = self._graph.constant(np.array(entries, np.int64), "sizes")
        return self._constants[key]

    def _vector(self, shape: Shape) -> str | None:
        if shape not in self._vectors:
            parts = [self._constant([int(d)]) if d.is_Integer else self._vectors.get((d,)) for d in shape]
            if None in parts:
                return None
            self._vectors[shape] = self._graph.add("Concat", parts, parts[0], (sympy.Integer(len(shape)),), axis=0)
        return self._vectors[shape]

    def _compute(self, node: onnx.NodeProto) -> "_Sizes | None":
        if node.op_type == "Shape":
            shape = self._graph.shape(node.input[0])
            return shape and _Sizes(list(shape[attribute(node, "start", 0):attribute(node, "end", len(shape))]), 1, node.input[0] in self._graph.inputs)
        values = [self._values.get(name) for name in node.input]
        if not values or None in values:
            return None
        free, entries = all(value.free for value in values), [value.entries for value in values]
        match node.op_type, [len(e) for e in entries]:
            case "Concat", _:
                return _Sizes(sum(entries, []), 1, free)
            case "Squeeze", [1, *_]:
                return _Sizes(entries[0], 0, free)
            case "Reshape" | "Unsqueeze", [1, *_]:
                return _Sizes(entries[0], 1, free)
            case "Add" | "Sub" | "Mul", [1, 1]:
                [a], [b] = entries
                result = {"Add": a + b, "Sub": a - b, "Mul": a * b}[node.op_type]
                return _Sizes([sympy.expand(result)], max(value.rank for value in values), free)
        return None


@dataclass(frozen=True)
class _Sizes:
    """Entries of a scalar or vector; free when they depend on the shapes of inputs only."""

    entries: list[sympy.Expr]
    rank: int
    free: bool


def reshape_constant(source: Shape | None, shape: Shape) -> list[int] | None:
    """The constant second input of Reshape, where one serves for every size: 0 copies a dimension, one -1 takes what is left. None is an unknown shape."""
    source = source or []
    open_ = [i for i, d in enumerate(shape) if not d.is_Integer]
    if len(open_) > 1:
        open_ = [i for i in open_ if i >= len(source) or source[i] != shape[i]]
    entries = [int(d) if d.is_Integer else 0 for d in shape]
    # Beside a copied dimension that may be empty (T - 1) nothing can be left to take.
    if len(open_) > 1 or open_ and any(d.is_positive is not True for i, d in enumerate(shape) if i not in open_):
        return None
    for i in open_:
        entries[i] = -1
    return entries
