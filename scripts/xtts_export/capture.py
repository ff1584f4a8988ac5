"""Rewrites nodes that ONNX Runtime's CUDA provider cannot run, or cannot run from a captured CUDA graph.

`xtts-host graph lint` finds such nodes in any graph and says why they are wrong.
"""

import numpy as np
import onnx
from onnx import helper, numpy_helper

_FLOATS = (onnx.TensorProto.FLOAT, onnx.TensorProto.FLOAT16, onnx.TensorProto.BFLOAT16, onnx.TensorProto.DOUBLE)


def rewrite(model: onnx.ModelProto) -> None:
    """Changes the graph in place. The graph's value_info must be there: types and shapes are taken from it."""
    graph = model.graph
    rewriter = _Rewriter(graph)
    nodes = [new for node in graph.node for new in rewriter.replace(node)]
    del graph.node[:]
    graph.node.extend(nodes)


class _Rewriter:
    def __init__(self, graph: onnx.GraphProto):
        self.graph = graph
        self.types = {v.name: v.type.tensor_type for v in [*graph.value_info, *graph.input, *graph.output]}
        self.constants = {t.name: numpy_helper.to_array(t) for t in graph.initializer}
        self.makers = {name: node for node in graph.node for name in node.output}
        self.count = 0

    def replace(self, node: onnx.NodeProto) -> list[onnx.NodeProto]:
        if node.op_type == "Clip" and self._type(node.input[0]) == onnx.TensorProto.INT32:
            return self._integer_clip(node)
        if node.op_type == "Concat" and self._type(node.output[0]) in _FLOATS and self._unequal(node):
            return self._padded_sum(node)
        if node.op_type == "TopK" and node.input[1] not in self.constants:
            return [self._constant_count(node)]
        return [node]

    def _constant_count(self, node):
        """A sort takes its number of elements from a shape. A fixed one must be a constant, or the shapes after it are unknown."""
        dims, axis = self._dims(node.input[0]), next((a.i for a in node.attribute if a.name == "axis"), -1)
        if dims and isinstance(dims[axis], int):
            name = f"count{dims[axis]}.i64"
            if name not in self.constants:
                self.constants[name] = np.array([dims[axis]], np.int64)
                self.graph.initializer.append(numpy_helper.from_array(self.constants[name], name))
            node.input[1] = name
        return node

    def _integer_clip(self, node):
        """Clip has no kernel for i32; Max and Min have one."""
        bounds = [(op, name) for op, name in zip(("Max", "Min"), node.input[1:], strict=False) if name]
        new, value = [], node.input[0]
        for i, (op, bound) in enumerate(bounds):
            out = node.output[0] if i == len(bounds) - 1 else self._name(node)
            new.append(helper.make_node(op, [value, bound], [out]))
            value = out
        return new

    def _padded_sum(self, node):
        """The kernel of Concat copies a table of sizes from the host when they differ, which a captured graph would read
        again, stale. Each part between zeros, added up, is the same tensor; parts that are zero fall away."""
        shape = self._dims(node.output[0])
        axis = node.attribute[0].i % len(shape)
        new, sizes = [], []
        for part in node.input:
            size = self._name(node)
            new.append(helper.make_node("Shape", [part], [size], start=axis, end=axis + 1))
            sizes.append(size)
        none = self._zeros(1)
        margins = lambda before, after: [self._zeros(axis), before, self._zeros(len(shape) - 1), after, self._zeros(len(shape) - 1 - axis)]
        parts = [(i, part) for i, part in enumerate(node.input) if not self._is_zero(part)] or [(0, node.input[0])]
        total = ""
        for k, (i, part) in enumerate(parts):
            last = k == len(parts) - 1
            pads = self._name(node)
            before, after = self._sum(node, new, sizes[:i], none), self._sum(node, new, sizes[i + 1:], none)
            # All axes, not Pad's input of axes: ONNX Runtime 1.29.0 forgets that one when it moves a Transpose after the Pad.
            new.append(helper.make_node("Concat", [name for name in margins(before, after) if name], [pads], axis=0))
            padded = node.output[0] if last and not total else self._name(node)
            new.append(helper.make_node("Pad", [part, pads], [padded]))
            if total:
                out = node.output[0] if last else self._name(node)
                new.append(helper.make_node("Add", [total, padded], [out]))
                padded = out
            total = padded
        return new

    def _sum(self, node, new, sizes, none):
        if not sizes:
            return none
        total = sizes[0]
        for size in sizes[1:]:
            out = self._name(node)
            new.append(helper.make_node("Add", [total, size], [out]))
            total = out
        return total

    def _is_zero(self, name):
        """Zeros that some shape was filled with."""
        if name in self.constants:
            return not self.constants[name].any()
        maker = self.makers.get(name)
        if maker is None:
            return False
        if maker.op_type == "ConstantOfShape":
            return all(not numpy_helper.to_array(a.t).any() for a in maker.attribute)
        return maker.op_type in ("Expand", "Reshape", "Unsqueeze", "Cast", "CastLike") and self._is_zero(maker.input[0])

    def _unequal(self, node):
        axis = node.attribute[0].i
        sizes = set()
        for part in node.input:
            dims = self._dims(part)
            sizes.add(dims[axis] if dims else None)
        return len(sizes) > 1 or None in sizes

    def _dims(self, name):
        if name in self.constants:
            return list(self.constants[name].shape)
        kind = self.types.get(name)
        return [d.dim_param or d.dim_value or None for d in kind.shape.dim] if kind is not None else []

    def _type(self, name):
        if name in self.constants:
            return helper.np_dtype_to_tensor_dtype(self.constants[name].dtype)
        kind = self.types.get(name)
        return kind.elem_type if kind is not None else 0

    def _name(self, node):
        self.count += 1
        return f"{node.output[0]}.part{self.count}"

    def _zeros(self, count):
        """A constant of this many zeros; none for 0."""
        name = f"zeros{count}.i64" if count else ""
        if count and name not in self.constants:
            self.constants[name] = np.zeros(count, np.int64)
            self.graph.initializer.append(numpy_helper.from_array(self.constants[name], name))
        return name
