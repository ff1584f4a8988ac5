"""Operators that work element by element."""

import numpy as np
import onnx

from .graph import Graph, attribute, broadcast

UNARY = {"Neg", "Abs", "Exp", "Log", "Sqrt", "Erf", "Tanh", "Sigmoid", "Relu", "Not", "Cast", "Gelu", "Sin", "Cos", "Sign", "Reciprocal", "Softplus"}
BROADCASTING = {"Add", "Sub", "Mul", "Div", "Mod", "Pow", "Where", "Max", "Min", "And", "Or", "Equal", "Less", "LessOrEqual", "Greater", "GreaterOrEqual"}


def expansions(graph: Graph) -> None:
    """Removes each Expand before an operator that broadcasts. Before other elementwise operators it moves after them: it is cheaper there, or removed."""
    for node in list(graph.nodes):
        out = node.output[0]
        shape = graph.shape(out)
        if node.op_type == "Expand" and shape is not None and graph.shape(node.input[0]) == shape:
            graph.replace(out, node.input[0])
        if node.op_type not in UNARY | BROADCASTING or shape is None:
            continue
        for i, name in enumerate(node.input):
            inputs = list(node.input)
            expand = graph.maker(name, "Expand")
            if expand is None:
                continue
            inputs[i] = expand.input[0]
            shapes = [graph.shape(x) for x in inputs]
            if None not in shapes and broadcast(*shapes) == shape:
                graph.connect(node, inputs)
        wide = [name for name in node.input if graph.shape(name) != ()]
        expand = graph.maker(wide[0], "Expand") if len(wide) == 1 and graph.single(wide[0]) and out not in graph.outputs else None
        if expand is not None and graph.shape(expand.input[0]) is not None:
            source = expand.input[0]
            attributes = {a.name: attribute(node, a.name) for a in node.attribute}
            inner = graph.add(node.op_type, [source if name == wide[0] else name for name in node.input], out, graph.shape(source), **attributes)
            graph.become(node, "Expand", [inner, expand.input[1]])


def factors(graph: Graph) -> None:
    """Joins consecutive multiplications by numbers, including Neg and Div by a number. Removes those by 1, and powers of 1."""
    for node in graph.nodes:
        if node.op_type == "Pow" and graph.scalar(node.input[1]) == 1:
            graph.replace(node.output[0], node.input[0])
        factor = _factor(graph, node)
        if factor is None:
            continue
        source = _other(graph, node)
        if factor == 1 and graph.replace(node.output[0], source):
            continue
        inner = graph.maker(source)
        inner_factor = _factor(graph, inner) if inner is not None else None
        if inner_factor is not None and graph.single(source) and _normal(factor * inner_factor):
            number = graph.constant(np.array(factor * inner_factor, np.float32), "factor")
            graph.become(node, "Mul", [_other(graph, inner), number])


def _factor(graph: Graph, node) -> float | None:
    """The number by which an operator on f32 multiplies its one tensor."""
    if graph.types.get(node.output[0]) != onnx.TensorProto.FLOAT:
        return None
    numbers = [graph.scalar(name) for name in node.input]
    match node.op_type, numbers:
        case "Neg", [None]:
            return -1.0
        case "Mul", [None, number] | [number, None]:
            return number
        case "Div", [None, number] if number:
            return 1 / number
    return None


def _normal(factor: float) -> bool:
    """Whether f32 has the number to full precision: two factors may be in range whose product is infinite, or 0."""
    limits = np.finfo(np.float32)
    return float(limits.tiny) <= abs(factor) <= float(limits.max)


def _other(graph: Graph, node) -> str:
    return next(name for name in node.input if graph.scalar(name) is None)


def reductions(graph: Graph) -> None:
    """Lets a reduction drop its dimensions of 1, if only a view that drops them follows."""
    for node in graph.nodes:
        if not node.op_type.startswith("Reduce") or not attribute(node, "keepdims", 1) or not graph.single(node.output[0]):
            continue
        [view], axes = graph.readers(node.output[0]), graph.integers(node.input[1]) if len(node.input) > 1 else None
        shape, kept = graph.shape(node.input[0]), graph.shape(view.output[0])
        if view.op_type not in ("Reshape", "Squeeze") or not axes or shape is None or kept is None:
            continue
        dropped = {axis % len(shape) for axis in axes}
        if kept == tuple(d for axis, d in enumerate(shape) if axis not in dropped):
            graph.become(view, node.op_type, list(node.input), keepdims=0)
