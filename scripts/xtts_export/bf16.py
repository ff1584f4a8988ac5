"""bf16 in graphs: which parameters a traced graph takes in bf16, and what ONNX Runtime lacks bf16 kernels for.

The traced graph takes f32 parameters and casts them (precision.py). A matrix that is used by nothing but products becomes an input, and its
gradient an output, of bf16 (`lower`): the host keeps the f32 master.
"""

import itertools

import onnx
import torch
from onnx import TensorProto, helper

from .precision import LOW
from .refusal import Refusal

aten = torch.ops.aten

# They change order or shape only, so a cast may come before or after them.
_MOVES = frozenset({
    aten.t.default, aten.transpose.int, aten.permute.default, aten.view.default, aten._unsafe_view.default, aten.reshape.default,
    aten.unsqueeze.default, aten.squeeze.dim, aten.squeeze.dims, aten.expand.default, aten.clone.default, aten.alias.default, aten.slice.Tensor, aten.select.int,
})


def lower(graph: torch.fx.GraphModule, parameters: dict[str, str], gradients: dict[str, str]) -> None:
    """Rewrites a traced graph to take matrices of products, and to return their gradients, in bf16.

    parameters and gradients have the names of parameters by those of the graph's placeholders and outputs. Whatever else uses a
    matrix (a look-up, an addition, a norm of weights) keeps it in f32, with a cast in the graph before each product. Raises Refusal when nothing is in bf16.
    """
    _drop_idle(graph)
    lowered = set()
    for node in graph.graph.find_nodes(op="placeholder"):
        if node.name not in parameters or node.meta["val"].dim() < 2:
            continue
        if casts := _casts(node):
            lowered.add(parameters[node.name])
            for cast in casts:
                source = cast.args[0]
                cast.replace_all_uses_with(source)
                graph.graph.erase_node(cast)
                _retype(source, node)
    if not lowered and not any(_casts_to(node, LOW) for node in graph.graph.nodes):
        raise Refusal("no matrix product is in the module, so nothing would be bf16", "leave bf16 out of --precision")
    [returned] = graph.graph.find_nodes(op="output")
    results = list(returned.args[0])
    for i, node in enumerate(results):
        if node is not None and gradients.get(node.name) in lowered:
            results[i] = _narrowed(graph, node)
    returned.args = (tuple(results),)


def _retype(node: torch.fx.Node, last: torch.fx.Node) -> None:
    """Notes that moves, from node back to last, are in bf16 now."""
    while True:
        node.meta["val"] = node.meta["val"].to(LOW)
        if node is last:
            return
        node = node.args[0]


def _drop_idle(graph: torch.fx.GraphModule) -> None:
    """Removes checks of a cast's argument, which pass by construction, and casts to f32 and back."""
    for node in list(graph.graph.nodes):
        if node.target is aten._assert_tensor_metadata.default:
            graph.graph.erase_node(node)
    for node in list(graph.graph.nodes):
        if _casts_to(node, LOW) and _casts_to(node.args[0], torch.float32) and node.args[0].args[0].meta["val"].dtype is LOW:
            wide = node.args[0]
            node.replace_all_uses_with(wide.args[0])
            graph.graph.erase_node(node)
            if not wide.users:
                graph.graph.erase_node(wide)


def _casts(node: torch.fx.Node) -> list[torch.fx.Node] | None:
    """The casts to bf16 between a value and all of its uses; None when there is another use."""
    found = []
    for user in node.users:
        if _casts_to(user, LOW):
            found.append(user)
            continue
        after = _casts(user) if user.target in _MOVES else None
        if after is None:
            return None
        found += after
    return found


def _casts_to(node: torch.fx.Node, dtype: torch.dtype) -> bool:
    return node.target is aten._to_copy.default and node.kwargs.get("dtype") is dtype


def _narrowed(graph: torch.fx.GraphModule, gradient: torch.fx.Node) -> torch.fx.Node:
    """The gradient in bf16: without the cast to f32 that it ends with, or, being a sum of several, rounded once."""
    node = gradient
    while node.target in _MOVES and len(node.users) == 1:
        node = node.args[0]
    if _casts_to(node, torch.float32) and node.args[0].meta["val"].dtype is LOW and len(node.users) == 1:
        source = node.args[0]
        node.replace_all_uses_with(source)
        graph.graph.erase_node(node)
        if node is gradient:
            return source
        _retype(gradient, source)
        return gradient
    with graph.graph.inserting_after(gradient):
        rounded = graph.graph.call_function(aten._to_copy.default, (gradient,), {"dtype": LOW})
    rounded.meta["val"] = gradient.meta["val"].to(LOW)
    return rounded


# Operators that ONNX Runtime 1.29's CUDA provider has for bf16 (docs/OperatorKernels.md of onnxruntime); ortgraphs/lint checks it.
_KERNELS = frozenset({
    "Abs", "Add", "Sub", "Mul", "Div", "Mod", "Pow", "Neg", "Sign", "Min", "Max", "Sum", "Where", "Sqrt", "Exp", "Erf", "Tanh", "Sigmoid", "Relu", "Gelu",
    "IsNaN", "IsInf", "Softmax", "LayerNormalization", "MatMul", "Gemm", "ReduceSum", "Tile", "Cast", "Identity", "Reshape", "Flatten", "Squeeze", "Unsqueeze",
    "Transpose", "Expand", "Concat", "Split", "Slice", "Gather", "GatherElements", "ScatterElements", "ScatterND", "Shape", "Size", "Trilu", "Constant",
    "ConstantOfShape",
})


def widen(model: onnx.ModelProto, kernels: frozenset[str] = _KERNELS) -> None:
    """Runs the bf16 nodes of a graph in f32, between casts, where there is no kernel. Changes the model in place.

    A graph that neither takes nor makes bf16 has no such nodes.
    """
    made = any(a.name == "to" and a.i == TensorProto.BFLOAT16 for node in model.graph.node if node.op_type == "Cast" for a in node.attribute)
    if not made and all(i.type.tensor_type.elem_type != TensorProto.BFLOAT16 for i in model.graph.input):
        return
    types = _types(model)
    nodes, taken = [], {name for node in model.graph.node for name in [*node.input, *node.output]}
    for node in model.graph.node:
        names = [*node.input, *node.output]
        if node.op_type in kernels or not any(types.get(name) == TensorProto.BFLOAT16 for name in names):
            nodes.append(node)
            continue
        before, after = [], []
        for side, casts in ((node.input, before), (node.output, after)):
            for i, name in enumerate(side):
                if types.get(name) == TensorProto.BFLOAT16:
                    side[i] = next(new for k in itertools.count() if (new := f"{name}.wide{k}") not in taken)
                    taken.add(side[i])
                    cast = (name, side[i], TensorProto.FLOAT) if casts is before else (side[i], name, TensorProto.BFLOAT16)
                    casts.append(helper.make_node("Cast", [cast[0]], [cast[1]], to=cast[2]))
        _widen_attributes(node)
        nodes += [*before, node, *after]
    del model.graph.node[:]
    model.graph.node.extend(nodes)


def _widen_attributes(node: onnx.NodeProto) -> None:
    for attribute in node.attribute:
        if attribute.name == "dtype" and attribute.i == TensorProto.BFLOAT16:
            attribute.i = TensorProto.FLOAT
        elif attribute.HasField("t") and attribute.t.data_type == TensorProto.BFLOAT16:
            attribute.t.CopyFrom(onnx.numpy_helper.from_array(onnx.numpy_helper.to_array(attribute.t).astype("float32")))


def _types(model: onnx.ModelProto) -> dict[str, int]:
    graph = onnx.shape_inference.infer_shapes(model).graph
    types = {v.name: v.type.tensor_type.elem_type for v in [*graph.value_info, *graph.input, *graph.output]}
    return types | {t.name: t.data_type for t in graph.initializer}


def emulated(model: onnx.ModelProto) -> onnx.ModelProto:
    """The same graph for ONNX Runtime's CPU provider, which has no bf16 kernels, and for NumPy, which has no bf16.

    Inputs and outputs are f32; each node computes in f32 what it takes from bf16 and rounds its result to bf16, as kernels that
    accumulate in f32 do.
    """
    copy = onnx.ModelProto()
    copy.CopyFrom(model)
    widen(copy, frozenset({"Cast"}))
    casts = [[], []]
    for values, edge in zip((copy.graph.input, copy.graph.output), casts, strict=True):
        for value in values:
            tensor = value.type.tensor_type
            if tensor.elem_type == TensorProto.BFLOAT16:
                tensor.elem_type = TensorProto.FLOAT
                edge.append(value)
    for value in casts[0]:
        _rename(copy.graph, value.name, f"{value.name}.bf16")
    for value in casts[1]:
        _rename(copy.graph, value.name, f"{value.name}.bf16")
    nodes = [helper.make_node("Cast", [v.name], [f"{v.name}.bf16"], to=TensorProto.BFLOAT16) for v in casts[0]]
    nodes += [*copy.graph.node, *(helper.make_node("Cast", [f"{v.name}.bf16"], [v.name], to=TensorProto.FLOAT) for v in casts[1])]
    del copy.graph.node[:]
    copy.graph.node.extend(nodes)
    return copy


def _rename(graph: onnx.GraphProto, old: str, new: str) -> None:
    for node in graph.node:
        for side in (node.input, node.output):
            for i, name in enumerate(side):
                if name == old:
                    side[i] = new


def unite(models: list[onnx.ModelProto]) -> None:
    """Has the graphs of several players take each parameter in one type. What one of them uses in f32, the others take in f32 and cast."""
    taken = [{i.name: i.type.tensor_type.elem_type for i in model.graph.input} for model in models]
    used = [{name for node in model.graph.node for name in node.input} for model in models]
    low = {name for types in taken for name, kind in types.items() if kind == TensorProto.BFLOAT16}
    wide = {name for types, uses in zip(taken, used, strict=True) for name, kind in types.items() if name in uses and kind == TensorProto.FLOAT}
    for model, types, uses in zip(models, taken, used, strict=True):
        graph = model.graph
        for value in [i for i in graph.input if i.name in low - wide and i.name not in uses]:
            graph.input.remove(value)
        for name in sorted(low & wide):
            if types.get(name) == TensorProto.BFLOAT16:
                _take_wide(graph, name)


def _take_wide(graph: onnx.GraphProto, name: str) -> None:
    """Makes a bf16 input f32, with a cast, and its gradient, too."""
    short, gradient = f"{name}.bf16", f"grad.{name}"
    for node in graph.node:
        node.input[:] = [short if x == name else f"{gradient}.bf16" if x == gradient else x for x in node.input]
        node.output[:] = [f"{gradient}.bf16" if x == gradient else x for x in node.output]
    graph.node.insert(0, helper.make_node("Cast", [name], [short], to=TensorProto.BFLOAT16))
    for value in [*graph.input, *graph.output]:
        if value.name in (name, gradient):
            value.type.tensor_type.elem_type = TensorProto.FLOAT
    if any(o.name == gradient for o in graph.output):
        graph.node.append(helper.make_node("Cast", [f"{gradient}.bf16"], [gradient], to=TensorProto.FLOAT))
