"""What a graph is made of and what one run of it costs, counted from the graph."""

import re
from collections import Counter
from collections.abc import Iterable, Iterator
from typing import NamedTuple

import numpy as np
import onnx
import onnxruntime as ort

from . import scangraph

# Shape arithmetic and views: no floating-point work and, run well, no memory traffic.
_FREE = {"Reshape", "Unsqueeze", "Squeeze", "Shape", "Identity", "Constant", "Range", "Expand"}
# With one of these in its step, a recurrence gets no kernel of the host's compiler (docs/fusion.md).
_WITHOUT_KERNEL = re.compile(r"Reduce.*|.*Softmax|.*Normalization|Conv.*|Arg.*|TopK|CumSum|Scan")


def nodes(path) -> dict[str, int]:
    """The number of a graph's nodes by operator, the most frequent first. Those of bodies count once."""
    counts = Counter(node.op_type for node in _all(onnx.load(path).graph))
    return dict(sorted(counts.items(), key=lambda item: (-item[1], item[0])))


def _all(graph: onnx.GraphProto) -> Iterator[onnx.NodeProto]:
    """The nodes, also those of bodies."""
    for node in graph.node:
        yield node
        for attribute in node.attribute:
            if attribute.type == onnx.AttributeProto.GRAPH:
                yield from _all(attribute.g)


def without_kernel(scan: onnx.NodeProto) -> set[str]:
    """The operators of a recurrence's step for which a GPU starts every node of every step."""
    [body] = [a.g for a in scan.attribute if a.name == "body"]
    return {node.op_type for node in body.node if _WITHOUT_KERNEL.fullmatch(node.op_type)}


def recurrences(path) -> list[set[str]]:
    """without_kernel of a graph's recurrences."""
    return [without_kernel(node) for node in onnx.load(path).graph.node if node.op_type == "Scan"]


class Cost(NamedTuple):
    """Floating-point operations, bytes read and written, executed nodes, and those of them that a GPU starts: a kernel computes all steps of a recurrence."""

    flops: float
    bytes: float
    nodes: int
    started: int


def count(path, feed: dict[str, np.ndarray]) -> Cost:
    """The cost of a run on these inputs.

    A matrix product of [m, k] and [k, n] counts 2mkn operations, another node one per element of its largest operand. Bytes
    are those of each node's inputs and outputs: an upper bound, which fusion lowers.
    """
    model = onnx.load(path)
    arrays = {name: (x.shape, x.itemsize) for name, x in feed.items()}
    for tensor in model.graph.initializer:
        x = onnx.numpy_helper.to_array(tensor)
        arrays[tensor.name] = x.shape, x.itemsize
    return _count(model.graph.node, arrays | _intermediates(model, feed))


def _count(nodes: Iterable[onnx.NodeProto], arrays: dict[str, tuple[tuple, int]]) -> Cost:
    """arrays are shapes and item sizes, by name."""
    flops = bytes_ = ran = started = 0
    for node in nodes:
        if node.op_type in _FREE:
            continue
        ran, started = ran + 1, started + 1
        if node.op_type == "Scan":
            given = {a.name: a for a in node.attribute}
            steps, body = arrays[node.input[-1]][0][0], given["body"].g
            first = len(node.input) - given["num_scan_inputs"].i
            items = {i.name: (shape[n >= first:], size) for n, (i, (shape, size)) in enumerate(zip(body.input, (arrays[name] for name in node.input), strict=True))}
            step = _count(body.node, arrays | items)
            flops, bytes_, ran = flops + steps * step.flops, bytes_ + steps * step.bytes, ran + steps * step.nodes
            started += steps * step.nodes if without_kernel(node) else 0
            continue
        inputs = [arrays[name] for name in node.input if name]
        outputs = [arrays[name] for name in node.output if name in arrays]
        bytes_ += sum(int(np.prod(shape)) * size for shape, size in inputs + outputs)
        if node.op_type in ("MatMul", "Gemm"):
            transposed = any(a.name == "transA" and a.i for a in node.attribute)
            inner = inputs[0][0][-2 if transposed else -1]
            flops += 2 * inner * int(np.prod(outputs[0][0]))
        else:
            flops += max(int(np.prod(shape)) for shape, _ in inputs + outputs)
    return Cost(float(flops), float(bytes_), ran, started)


# Which inputs of a node choose the shape of its output; None means all.
_CHOOSE_SHAPE = {"Range": None, "Reshape": (1,), "Expand": (1,), "Slice": (1, 2, 3, 4), "Split": (1,), "Tile": (1,), "Pad": (1,), "ConstantOfShape": (0,), "TopK": (1,)}


def _intermediates(model: onnx.ModelProto, feed: dict[str, np.ndarray]) -> dict:
    """Shape and item size of every computed value.

    Shape inference alone loses track at computed sizes. They are computed and put into the graph as constants, those first that follow from
    known shapes: then more shapes are known. What is left in the end is computed with all that it needs.
    """
    computed = {name for node in model.graph.node for name in node.output}
    sizes = {name for node in model.graph.node if node.op_type in _CHOOSE_SHAPE
             for i, name in enumerate(node.input) if name in computed and (_CHOOSE_SHAPE[node.op_type] is None or i in _CHOOSE_SHAPE[node.op_type])}
    concrete = onnx.ModelProto()
    concrete.CopyFrom(model)
    for value in concrete.graph.input:
        for dim, n in zip(value.type.tensor_type.shape.dim, feed[value.name].shape, strict=True):
            dim.dim_value = n
    constants: dict[str, np.ndarray] = {}
    while found := _shapes(concrete) | _run(concrete, _light(concrete, sizes - constants.keys()), feed):
        constants |= found
        _hold(concrete, found)
    left = _run(model, sizes - constants.keys(), feed)
    _hold(concrete, left)
    known = {name: (x.shape, x.itemsize) for name, x in (constants | left).items()}
    for value in _inferred(concrete):
        tensor = value.type.tensor_type
        if not all(dim.HasField("dim_value") for dim in tensor.shape.dim):
            raise ValueError(f"shape inference lost the shape of {value.name}: {tensor.shape}")
        shape = tuple(dim.dim_value for dim in tensor.shape.dim)
        known[value.name.removesuffix(".computed")] = shape, onnx.helper.tensor_dtype_to_np_dtype(tensor.elem_type).itemsize
    return known


def _shapes(model: onnx.ModelProto) -> dict[str, np.ndarray]:
    """The results of Shape whose tensors have known shapes."""
    graph = onnx.shape_inference.infer_shapes(model).graph
    types = {v.name: v.type.tensor_type for v in [*graph.input, *graph.value_info]}
    known = {name: [d.dim_value for d in t.shape.dim] for name, t in types.items() if t.HasField("shape") and all(d.HasField("dim_value") for d in t.shape.dim)}
    part = lambda node: slice(*({a.name: a.i for a in node.attribute}.get(key) for key in ("start", "end")))
    return {node.output[0]: np.array(known[node.input[0]][part(node)], np.int64) for node in model.graph.node if node.op_type == "Shape" and node.input[0] in known}


def _light(model: onnx.ModelProto, names: set[str]) -> set[str]:
    """Those of the names that do not depend on an input of floats."""
    heavy = {i.name for i in model.graph.input if i.type.tensor_type.elem_type == onnx.TensorProto.FLOAT}
    for node in model.graph.node:
        if heavy.intersection(node.input):
            heavy.update(node.output)
    return names.intersection(name for node in model.graph.node for name in node.output) - heavy


def _hold(model: onnx.ModelProto, constants: dict[str, np.ndarray]) -> None:
    """Puts values into the graph in place of what computes them."""
    kept = []
    for node in model.graph.node:
        for i, name in enumerate(node.output):
            if name in constants:
                node.output[i] = name + ".computed"
        if not all(name.endswith(".computed") for name in node.output if name):
            kept.append(node)
    del model.graph.node[:]
    model.graph.node.extend(kept)
    model.graph.initializer.extend(onnx.numpy_helper.from_array(x, name) for name, x in constants.items())


def _inferred(model: onnx.ModelProto) -> list[onnx.ValueInfoProto]:
    """The values that nodes make, also in the bodies of recurrences: shape inference loses the number of steps, and sizes computed in a step."""
    nodes, made = list(model.graph.node), []
    outputs = list(model.graph.output)
    del model.graph.node[:], model.graph.output[:]
    for node in nodes:
        if node.op_type != "Scan":
            model.graph.node.append(node)
            continue
        before = onnx.shape_inference.infer_shapes(model, strict_mode=True).graph
        types = {v.name: v.type for v in [*before.value_info, *before.input]}
        types |= {t.name: onnx.helper.make_tensor_type_proto(t.data_type, t.dims) for t in before.initializer}
        given = {a.name: a for a in node.attribute}
        body, carries = given["body"].g, len(node.input) - given["num_scan_inputs"].i
        length = types[node.input[-1]].tensor_type.shape.dim[0].dim_value
        step = _step(model, body, [types[name] for name in node.input], carries, types)
        made += step.values()
        for i, (name, value) in enumerate(zip(node.output, body.output, strict=True)):
            item = step[value.name].type.tensor_type
            shape = [length] * (i >= carries) + [d.dim_value for d in item.shape.dim]
            model.graph.input.append(onnx.helper.make_tensor_value_info(name, item.elem_type, shape))
            made.append(model.graph.input[-1])
    model.graph.output.extend(outputs)
    last = onnx.shape_inference.infer_shapes(model, strict_mode=True).graph
    return [*made, *last.value_info, *last.output]


def _step(model: onnx.ModelProto, body: onnx.GraphProto, given: list[onnx.TypeProto], carries: int, types: dict[str, onnx.TypeProto]) -> dict[str, onnx.ValueInfoProto]:
    """Every value of one step of a recurrence. It is computed: a step is small."""
    step = onnx.ModelProto(ir_version=model.ir_version, opset_import=model.opset_import, graph=body)
    for i, (value, kind) in enumerate(zip(step.graph.input, given, strict=True)):
        item = kind.tensor_type
        value.CopyFrom(onnx.helper.make_tensor_value_info(value.name, item.elem_type, [d.dim_value for d in item.shape.dim][i >= carries:]))
    made = [name for node in body.node for name in node.output if name]
    outside = {name for node in body.node for name in node.input if name} - {*made, *(i.name for i in body.input)}
    step.graph.initializer.extend(t for t in model.graph.initializer if t.name in outside)
    step.graph.input.extend(onnx.ValueInfoProto(name=name, type=types[name]) for name in sorted(outside - {t.name for t in step.graph.initializer}))
    zeros = {i.name: np.zeros([d.dim_value for d in i.type.tensor_type.shape.dim], onnx.helper.tensor_dtype_to_np_dtype(i.type.tensor_type.elem_type))
             for i in step.graph.input}
    values = _run(step, set(made), zeros)
    return {name: onnx.helper.make_tensor_value_info(name, onnx.helper.np_dtype_to_tensor_dtype(x.dtype), x.shape) for name, x in values.items()}


def _run(model: onnx.ModelProto, names: set[str], feed: dict[str, np.ndarray]) -> dict[str, np.ndarray]:
    """The values of these names, computed from the inputs that they need."""
    if not names:
        return {}
    probe = onnx.ModelProto()
    probe.CopyFrom(model)
    del probe.graph.output[:]
    probe.graph.output.extend(onnx.ValueInfoProto(name=name) for name in sorted(names))
    _keep_ancestors(probe.graph, names)
    options = ort.SessionOptions()
    options.graph_optimization_level = ort.GraphOptimizationLevel.ORT_DISABLE_ALL
    options.log_severity_level = 4
    session = ort.InferenceSession(probe.SerializeToString(), options, providers=["CPUExecutionProvider"])
    return dict(zip(sorted(names), session.run(sorted(names), {i.name: feed[i.name] for i in session.get_inputs()}), strict=True))


def _keep_ancestors(graph: onnx.GraphProto, names: set[str]) -> None:
    """Removes the nodes and inputs that the values of these names do not need."""
    needed, kept = set(names), []
    for node in reversed(graph.node):
        if needed.intersection(node.output):
            needed.update(scangraph.reads(node))
            kept.append(node)
    inputs = [i for i in graph.input if i.name in needed]
    del graph.node[:], graph.input[:]
    graph.node.extend(reversed(kept))
    graph.input.extend(inputs)
