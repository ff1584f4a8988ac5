"""An ONNX graph that passes rewrite: which node produces and which nodes read a value, its type and its symbolic shape.

Dimensions are integers and polynomials of the graph's symbols, in one normal form, so that equal sizes compare equal however the
exporter wrote them: `T*B` and `B*T`.
"""

import re
from collections import defaultdict
from functools import cache

import numpy as np
import onnx
import sympy
from onnx import helper, numpy_helper

Shape = tuple[sympy.Expr, ...]


class Graph:
    """The graph of a model with value_info for all its values, as torch.onnx writes it. Passes change it; write puts it back."""

    def __init__(self, model: onnx.ModelProto):
        self.model = model
        graph = model.graph
        self.nodes = list(graph.node)
        self.inputs = [i.name for i in graph.input]
        self.outputs = {o.name for o in graph.output}
        self.constants = {t.name: numpy_helper.to_array(t) for t in graph.initializer}
        self.types, self.shapes = {}, {}
        for value in [*graph.value_info, *graph.input, *graph.output]:
            tensor = value.type.tensor_type
            self.types[value.name] = tensor.elem_type
            shape = _shape(tensor)
            if shape is not None:
                self.shapes[value.name] = shape
        for name, x in self.constants.items():
            self._describe_constant(name, x)
        self._count = 0
        self._index()

    def write(self) -> None:
        graph = self.model.graph
        used = {name for node in self.nodes for name in node.input} | self.outputs
        nodes = list(self.nodes)
        del graph.node[:], graph.initializer[:], graph.value_info[:]
        graph.node.extend(nodes)
        graph.initializer.extend(numpy_helper.from_array(x, name) for name, x in self.constants.items() if name in used)
        made = {name for node in nodes for name in node.output if name} - self.outputs
        for name, kind in self.types.items():
            if name in made:
                shape = self.shapes.get(name)
                dims = None if shape is None else [int(d) if d.is_Integer else str(d) for d in shape]
                graph.value_info.append(helper.make_tensor_value_info(name, kind, dims))

    # Questions.

    def maker(self, name: str, *operators: str) -> onnx.NodeProto | None:
        """The node that computes a value, if it is one of the operators."""
        node = self._makers.get(name)
        return node if node is not None and (not operators or node.op_type in operators) else None

    def readers(self, name: str) -> list[onnx.NodeProto]:
        """One entry for each input that is the value."""
        return self._readers[name]

    def single(self, name: str) -> bool:
        """Whether one input is all that needs the value."""
        return len(self._readers[name]) == 1 and name not in self.outputs

    def shape(self, name: str) -> Shape | None:
        return self.shapes.get(name)

    def scalar(self, name: str) -> float | None:
        """The value of a scalar constant, or None."""
        x = self.constants.get(name)
        return x.item() if x is not None and x.ndim == 0 else None

    def integers(self, name: str) -> list[int] | None:
        """The elements of an integer constant, or None."""
        x = self.constants.get(name)
        return x.reshape(-1).tolist() if x is not None and x.dtype == np.int64 else None

    # Changes.

    def constant(self, x: np.ndarray, like: str) -> str:
        name = self._name(like)
        self.constants[name] = x
        self._describe_constant(name, x)
        return name

    def add(self, operator: str, inputs: list[str], like: str, shape: Shape, **attributes) -> str:
        """The output of a new node. It has the type of the value `like`; tidy places it next to the node that produces `like`."""
        name = self._name(like)
        node = helper.make_node(operator, inputs, [name], **attributes)
        self.types[name], self.shapes[name] = self.types[like], shape
        # Beside what it is made from: a node that waits for its first reader keeps its inputs in memory until then.
        self._places[id(node)] = self._places.get(id(self._makers.get(like)), 0)
        self.nodes.append(node)
        self._makers[name] = node
        for i in inputs:
            self._readers[i].append(node)
        return name

    def become(self, node: onnx.NodeProto, operator: str, inputs: list[str], **attributes) -> None:
        """The node computes its outputs in another way."""
        self.connect(node, inputs)
        node.op_type = operator
        del node.attribute[:]
        node.attribute.extend(helper.make_attribute(name, value) for name, value in attributes.items())

    def connect(self, node: onnx.NodeProto, inputs: list[str]) -> None:
        for name in node.input:
            self._forget(name, node)
        del node.input[:]
        node.input.extend(inputs)
        for name in inputs:
            self._readers[name].append(node)

    def replace(self, old: str, new: str) -> bool:
        """All readers of old read new. False, and nothing changes, if both are names of the graph itself."""
        if old in self.outputs:
            if new in self.outputs or new not in self._makers:
                return False
            self._rename(old, new)
            return True
        for node in list({id(n): n for n in self._readers[old]}.values()):
            self.connect(node, [new if name == old else name for name in node.input])
        return True

    def tidy(self) -> None:
        """Removes nodes that nothing needs, and puts each node after those that it reads."""
        needed, stack = set(), [self._makers[name] for name in self.outputs if name in self._makers]
        while stack:
            node = stack.pop()
            if id(node) not in needed:
                needed.add(id(node))
                stack.extend(self._makers[name] for name in node.input if name in self._makers)
        ordered, placed = [], set()
        for root in sorted(self.nodes, key=lambda node: self._places[id(node)]):
            stack = [root] if id(root) in needed else []
            while stack:
                node = stack[-1]
                waiting = [m for name in node.input if (m := self._makers.get(name)) is not None and id(m) not in placed]
                if id(node) in placed or not waiting:
                    stack.pop()
                    if id(node) not in placed:
                        placed.add(id(node))
                        ordered.append(node)
                else:
                    stack.extend(reversed(waiting))
        self.nodes = ordered
        self._index()

    def _index(self) -> None:
        self._places = {id(node): i for i, node in enumerate(self.nodes)}
        self._makers = {name: node for node in self.nodes for name in node.output if name}
        self._readers = defaultdict(list)
        for node in self.nodes:
            for name in node.input:
                self._readers[name].append(node)

    def _rename(self, old: str, new: str) -> None:
        """The value new is called old from here on; what old was loses its name."""
        former, node = self._makers.get(old), self._makers.pop(new)
        if former is not None:
            unused = self._name(old)
            former.output[list(former.output).index(old)] = unused
            self._makers[unused] = former
            self.types[unused] = self.types[old]
        node.output[list(node.output).index(new)] = old
        self._makers[old] = node
        for reader in list({id(n): n for n in self._readers[new]}.values()):
            self.connect(reader, [old if name == new else name for name in reader.input])

    def _forget(self, name: str, node: onnx.NodeProto) -> None:
        readers = self._readers[name]
        del readers[next(i for i, reader in enumerate(readers) if reader is node)]

    def _name(self, like: str) -> str:
        base = re.sub(r"\.clean\d+$", "", like)
        while True:
            self._count += 1
            name = f"{base}.clean{self._count}"
            if name not in self.types:
                return name

    def _describe_constant(self, name: str, x: np.ndarray) -> None:
        self.types[name] = helper.np_dtype_to_tensor_dtype(x.dtype)
        self.shapes[name] = tuple(sympy.Integer(n) for n in x.shape)


def attribute(node: onnx.NodeProto, name: str, default=None):
    return next((helper.get_attribute_value(a) for a in node.attribute if a.name == name), default)


def broadcast(*shapes: Shape) -> Shape | None:
    """The shape of an elementwise operator's result; None when that depends on the sizes."""
    rank = max(map(len, shapes))
    result = []
    for axis in range(-rank, 0):
        dims = []
        for shape in shapes:
            if len(shape) >= -axis and shape[axis] != 1 and shape[axis] not in dims:
                dims.append(shape[axis])
        if len(dims) > 1:
            return None
        result.append(dims[0] if dims else sympy.Integer(1))
    return tuple(result)


def _shape(tensor: onnx.TypeProto.Tensor) -> Shape | None:
    """None if it is not known: torch.onnx writes 0 for a dimension that it has lost."""
    if not tensor.HasField("shape"):
        return None
    dims = []
    for d in tensor.shape.dim:
        if not d.dim_param and not d.dim_value:
            return None
        dims.append(_expression(d.dim_param) if d.dim_param else sympy.Integer(d.dim_value))
    return tuple(dims)


@cache
def _expression(text: str) -> sympy.Expr:
    """Sizes are positive integers; names are the user's, also those that sympy uses itself."""
    names = {name: sympy.Symbol(name, integer=True, positive=True) for name in re.findall(r"(?<![\w.])[A-Za-z_]\w*(?!\w*\()", text)}
    return sympy.expand(sympy.sympify(text, locals=names))
