"""What one run of a graph costs, counted from the graph."""

import numpy as np
import onnx
import onnxruntime as ort

# Shape arithmetic and views: no floating-point work and, run well, no memory traffic.
_FREE = {"Reshape", "Unsqueeze", "Squeeze", "Shape", "Identity", "Constant", "Range", "Expand"}


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


def _intermediates(model: onnx.ModelProto, feed: dict[str, np.ndarray]) -> dict:
    """Shape and item size of every computed value. Running is the one way that no shape expression escapes."""
    probe = onnx.ModelProto()
    probe.CopyFrom(model)
    known = {o.name for o in probe.graph.output}
    names = [name for node in probe.graph.node for name in node.output if name]
    probe.graph.output.extend(onnx.ValueInfoProto(name=name) for name in names if name not in known)
    options = ort.SessionOptions()
    options.graph_optimization_level = ort.GraphOptimizationLevel.ORT_DISABLE_ALL
    session = ort.InferenceSession(probe.SerializeToString(), options, providers=["CPUExecutionProvider"])
    wanted = [o.name for o in session.get_outputs()]
    given = {i.name: feed[i.name] for i in session.get_inputs()}
    return {name: (x.shape, x.itemsize) for name, x in zip(wanted, session.run(wanted, given), strict=True)}
