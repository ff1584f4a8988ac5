"""Products of matrices."""

import sympy

from .elementwise import BROADCASTING, UNARY
from .graph import Graph, Shape, attribute
from .sizes import Sizes


def gemm(graph: Graph) -> None:
    """Makes Gemm of a Transpose and a matrix product: Gemm reads the matrix in the other order."""
    for node in graph.nodes:
        if node.op_type not in ("MatMul", "Gemm") or any(len(graph.shape(name) or ()) != 2 for name in node.input[:2]):
            continue
        inputs, turned = list(node.input), [attribute(node, "transA", 0), attribute(node, "transB", 0)]
        for i in (0, 1):
            inner = graph.maker(inputs[i], "Transpose")
            if inner is not None and attribute(inner, "perm") == [1, 0]:
                inputs[i], turned[i] = inner.input[0], 1 - turned[i]
        if inputs != list(node.input):
            scale = {name: attribute(node, name, 1.0) for name in ("alpha", "beta")} if node.op_type == "Gemm" else {}
            graph.become(node, "Gemm", inputs, transA=turned[0], transB=turned[1], **scale)


def batched(graph: Graph) -> None:
    """PyTorch multiplies attention's matrices as [B*h, m, n]; ONNX can as [B, h, m, n], which is the shape before and after.

    The Reshape stays where a matrix is transposed that a Transpose has made: ONNX Runtime would join both into one more that moves
    elements, but it reads the matrix in the other order after a Reshape.
    """
    sizes = Sizes(graph)
    for node in list(graph.nodes):
        if node.op_type != "MatMul" or len(graph.shape(node.output[0]) or ()) != 3:
            continue
        out = node.output[0]
        readers = graph.readers(out)
        shapes = [graph.shape(reader.output[0]) for reader in readers]
        if (out in graph.outputs or not readers or any(reader.op_type != "Reshape" for reader in readers)
                or any(shape != shapes[0] for shape in shapes) or shapes[0] is None or not _splits(graph.shape(out), shapes[0])):
            continue
        batch = shapes[0][:2]
        if not all(_viewed(graph, name) for name in node.input):
            continue
        inputs = [_split(graph, sizes, name, batch) for name in node.input]
        if None in inputs:
            continue
        product = graph.add("MatMul", inputs, out, shapes[0])
        for reader in list(readers):
            graph.replace(reader.output[0], product)


def _splits(shape: Shape, split: Shape) -> bool:
    return len(split) == 4 and shape[1:] == split[2:] and shape[0] == sympy.expand(split[0] * split[1])


def _viewed(graph: Graph, name: str) -> bool:
    """Whether the value has a Reshape before it, or a Reshape and a Transpose of its matrices."""
    maker = graph.maker(name, "Reshape", "Transpose")
    if maker is not None and maker.op_type == "Transpose":
        return attribute(maker, "perm") == [0, 2, 1] and _viewed(graph, maker.input[0])
    return maker is not None and len(graph.shape(name) or ()) == 3


def _split(graph: Graph, sizes: Sizes, name: str, batch: Shape) -> str | None:
    """The value of shape [b*h, m, n] as [b, h, m, n], or None."""
    maker, shape = graph.maker(name), graph.shape(name)
    if maker.op_type == "Transpose":
        inner = _split(graph, sizes, maker.input[0], batch)
        if inner is None or _moved(graph, inner):
            return None
        return graph.add("Transpose", [inner], name, (*batch, *shape[1:]), perm=[0, 1, 3, 2])
    return sizes.reshaped(maker.input[0], (*batch, *shape[1:]))


def _moved(graph: Graph, name: str) -> bool:
    """Whether a Transpose makes the value, or would if it came after the elementwise operators that follow it."""
    node = graph.maker(name)
    while node is not None and node.op_type in UNARY | BROADCASTING:
        tensors = [name for name in node.input if graph.shape(name) != ()]
        node = graph.maker(tensors[0]) if len(tensors) == 1 else None
    return node is not None and node.op_type == "Transpose"
