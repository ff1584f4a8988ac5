"""Reshapes and Transposes. A Reshape changes a shape at no cost; a Transpose moves elements."""

from .elementwise import BROADCASTING, UNARY
from .graph import Graph, attribute
from .sizes import Sizes, reshape_constant

_VIEWS = ("Reshape", "Unsqueeze", "Squeeze", "Flatten", "Identity")


def views(graph: Graph) -> None:
    """Joins consecutive views into one, and removes views that change nothing. Unsqueeze, Squeeze and a Transpose past dimensions of 1 are views."""
    sizes = Sizes(graph)
    for node in list(graph.nodes):
        shape = graph.shape(node.output[0])
        if not is_view(graph, node) or shape is None:
            continue
        source, only = node.input[0], True
        while (inner := graph.maker(source)) is not None and is_view(graph, inner) and graph.shape(inner.input[0]) is not None:
            only = only and graph.single(source)
            source = inner.input[0]
        if graph.shape(source) == shape and graph.replace(node.output[0], source):
            continue
        # To go round a view that stays for others must not take new arithmetic.
        if source != node.input[0] and (only or reshape_constant(graph.shape(source), shape)):
            sizes.reshape(node, source)


def is_view(graph: Graph, node) -> bool:
    if node.op_type != "Transpose":
        return node.op_type in _VIEWS
    shape, order = graph.shape(node.input[0]), attribute(node, "perm")
    moved = [axis for axis in order if shape is None or shape[axis] != 1]
    return moved == sorted(moved)


def transposes(graph: Graph) -> None:
    """Joins two consecutive Transposes into one, or none.

    The inner one must not be needed otherwise: both would move elements then, where a Transpose of the last two axes, as products
    have it, is only read in another order by ONNX Runtime.
    """
    for node in graph.nodes:
        inner = graph.maker(node.input[0], "Transpose") if node.op_type == "Transpose" else None
        if inner is None:
            continue
        first, second = attribute(inner, "perm"), attribute(node, "perm")
        order = [first[axis] for axis in second]
        if order == sorted(order) and graph.replace(node.output[0], inner.input[0]):
            continue
        if graph.single(inner.output[0]):
            graph.become(node, "Transpose", [inner.input[0]], perm=order)


def sink_reshapes(graph: Graph) -> None:
    """Moves a Reshape after the elementwise operators that read it, where it can join another one."""
    sizes = Sizes(graph)
    for node in list(graph.nodes):
        reshaped = [name for name in node.input if graph.shape(name) != ()]
        makers = [graph.maker(name, "Reshape") for name in reshaped]
        if node.op_type not in UNARY | BROADCASTING or not makers or None in makers or not any(map(graph.single, reshaped)):
            continue
        before, after = [graph.shape(maker.input[0]) for maker in makers], [graph.shape(name) for name in [*reshaped, node.output[0]]]
        if before[0] is None or after[0] is None or any(shape != before[0] for shape in before) or any(shape != after[0] for shape in after):
            continue
        inputs = [graph.maker(name).input[0] if name in reshaped else name for name in node.input]
        attributes = {a.name: attribute(node, a.name) for a in node.attribute}
        sizes.reshape(node, graph.add(node.op_type, inputs, node.output[0], before[0], **attributes))
