"""What a graph is made of and what one run of it costs, counted from the graph."""

from collections import Counter

import numpy as np
import onnx
import onnxruntime as ort

# Shape arithmetic and views: no floating-point work and, run well, no memory traffic.
_FREE = {"Reshape", "Unsqueeze", "Squeeze", "Shape", "Identity", "Constant", "Range", "Expand"}


def nodes(path) -> dict[str, int]:
    """The number of a graph's nodes by operator, the most frequent first."""
    counts = Counter(node.op_type for node in onnx.load(path).graph.node)
    return dict(sorted(counts.items(), key=lambda item: (-item[1], item[0])))


def count(path, feed: dict[str, np.ndarray]) -> tuple[float, float]:
    """(floating-point operations, bytes read and written) of a run on these inputs.

    A matrix product of [m, k] and [k, n] counts 2mkn operations, another node one per element of its largest operand. Bytes
    are those of each node's inputs and outputs: an upper bound, which fusion lowers.
    """
    model = onnx.load(path)
    arrays = {name: (x.shape, x.itemsize) for name, x in feed.items()}
    for tensor in model.graph.initializer:
        x = onnx.numpy_helper.to_array(tensor)
        arrays[tensor.name] = x.shape, x.itemsize
    arrays |= _intermediates(model, feed)

    flops = bytes_ = 0
    for node in model.graph.node:
        if node.op_type in _FREE:
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
    return float(flops), float(bytes_)


# Which inputs of a node choose the shape of its output; None means all.
_CHOOSE_SHAPE = {"Range": None, "Reshape": (1,), "Expand": (1,), "Slice": (1, 2, 3, 4), "Split": (1,), "Tile": (1,), "Pad": (1,), "ConstantOfShape": (0,), "TopK": (1,)}


def _intermediates(model: onnx.ModelProto, feed: dict[str, np.ndarray]) -> dict:
    """Shape and item size of every computed value.

    Shape inference alone loses track at computed sizes. They are computed, which needs no other part of the graph and almost no
    memory, and put into the graph as constants.
    """
    computed = {name for node in model.graph.node for name in node.output}
    sizes = {name for node in model.graph.node if node.op_type in _CHOOSE_SHAPE
             for i, name in enumerate(node.input) if name in computed and (_CHOOSE_SHAPE[node.op_type] is None or i in _CHOOSE_SHAPE[node.op_type])}
    concrete = onnx.ModelProto()
    concrete.CopyFrom(model)
    for value in concrete.graph.input:
        for dim, n in zip(value.type.tensor_type.shape.dim, feed[value.name].shape, strict=True):
            dim.dim_value = n
    constants = _run(model, sizes, feed)
    for node in concrete.graph.node:
        for i, name in enumerate(node.output):
            if name in constants:
                node.output[i] = name + ".computed"
    concrete.graph.initializer.extend(onnx.numpy_helper.from_array(x, name) for name, x in constants.items())
    inferred = onnx.shape_inference.infer_shapes(concrete, strict_mode=True)

    known = {name: (x.shape, x.itemsize) for name, x in constants.items()}
    for value in [*inferred.graph.value_info, *inferred.graph.output]:
        tensor = value.type.tensor_type
        if not all(dim.HasField("dim_value") for dim in tensor.shape.dim):
            raise ValueError(f"shape inference lost the shape of {value.name}: {tensor.shape}")
        shape = tuple(dim.dim_value for dim in tensor.shape.dim)
        known[value.name.removesuffix(".computed")] = shape, onnx.helper.tensor_dtype_to_np_dtype(tensor.elem_type).itemsize
    return known


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
    options.log_severity_level = 3
    session = ort.InferenceSession(probe.SerializeToString(), options, providers=["CPUExecutionProvider"])
    return dict(zip(sorted(names), session.run(sorted(names), {i.name: feed[i.name] for i in session.get_inputs()}), strict=True))


def _keep_ancestors(graph: onnx.GraphProto, names: set[str]) -> None:
    """Removes the nodes and inputs that the values of these names do not need."""
    needed, kept = set(names), []
    for node in reversed(graph.node):
        if needed.intersection(node.output):
            needed.update(node.input)
            kept.append(node)
    inputs = [i for i in graph.input if i.name in needed]
    del graph.node[:], graph.input[:]
    graph.node.extend(reversed(kept))
    graph.input.extend(inputs)
