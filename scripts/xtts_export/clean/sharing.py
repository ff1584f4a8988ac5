"""Values that the graph has twice."""

from .graph import Graph
from .sizes import Sizes, reshape_constant


def expressions(graph: Graph) -> None:
    """Equal constants are one, and what is computed twice is computed once: shape arithmetic above all, and what other passes have made equal."""
    first = {}
    for name, x in graph.constants.items():
        graph.replace(name, first.setdefault((x.dtype.str, x.shape, x.tobytes()), name))
    first = {}
    for node in graph.nodes:
        attributes = tuple(sorted(a.SerializeToString(deterministic=True) for a in node.attribute))
        kept = first.setdefault((node.op_type, tuple(node.input), attributes, len(node.output)), node)
        if kept is not node:
            for old, new in zip(node.output, kept.output, strict=True):
                graph.replace(old, new)


def sizes(graph: Graph) -> None:
    """Sizes that are the same whatever the batch are constants, and those of intermediate values are read from an input that has them."""
    known = Sizes(graph)
    for node in list(graph.nodes):
        source, shape = node.input[0] if node.input else "", graph.shape(node.output[0])
        if node.op_type == "Reshape" and node.input[1] not in graph.constants and shape and reshape_constant(graph.shape(source), shape):
            known.reshape(node, source)
        if (cheapest := known.cheapest(node.output[0])) != node.output[0]:
            graph.replace(node.output[0], cheapest)
