"""Mixed precision: matrix products in bf16, what accumulates or has a wide range in f32, masters in f32.

torch.autocast chooses by device, and traced without that device it fails in the backward pass; here the policy is a
TorchFunctionMode around forward. It casts the operands of matrix products to bf16, and of reductions, norms, softmax, exponentials and
losses to f32 (the lists are torch.autocast's); everything else computes in what it is given. Autograd then gives the backward
pass the same types. bf16 has f32's range, so that there is no loss scale.

The traced graph takes f32 parameters and casts them. A matrix that is used by nothing but products becomes an input, and its gradient
an output, of bf16 (`lower`): the host keeps the f32 master.
"""

import contextlib
import itertools
from collections.abc import Iterator
from unittest import mock

import onnx
import torch
from onnx import TensorProto, helper
from torch import Tensor, nn
from torch.overrides import TorchFunctionMode

from .refusal import Refusal

aten = torch.ops.aten
functional = torch.nn.functional

# What `--precision` knows.
NAMES = ("f32", "bf16")
LOW = torch.bfloat16

# Functions by name: torch, torch.nn.functional and Tensor have them under the same ones.
_PRODUCTS = frozenset({
    "linear", "matmul", "__matmul__", "__rmatmul__", "mm", "mv", "bmm", "addmm", "addmv", "addbmm", "baddbmm", "einsum", "tensordot", "bilinear",
})
_WIDE = frozenset({
    "softmax", "log_softmax", "softmin", "logsumexp", "softplus", "logsigmoid", "log_sigmoid",
    "layer_norm", "group_norm", "instance_norm", "rms_norm", "norm", "normalize", "renorm", "vector_norm",
    "sum", "mean", "prod", "cumsum", "cumprod", "std", "var", "std_mean", "var_mean", "nansum", "nanmean",
    "exp", "exp2", "expm1", "log", "log2", "log10", "log1p", "pow", "__pow__", "__rpow__", "square", "reciprocal", "__rtruediv__", "__rdiv__", "rsqrt",
    "cosh", "sinh", "tan", "acos", "asin", "erfinv", "cdist", "dist", "pdist", "cosine_similarity",
    "binary_cross_entropy", "binary_cross_entropy_with_logits", "cross_entropy_loss", "nll_loss", "nll_loss_nd", "nll_loss2d", "mse_loss", "l1_loss",
    "smooth_l1_loss", "huber_loss", "kl_div", "poisson_nll_loss", "margin_ranking_loss", "hinge_embedding_loss", "cosine_embedding_loss",
    "soft_margin_loss", "triplet_margin_loss", "ctc_loss",
})
_FLOATS = (torch.float32, torch.float16, torch.bfloat16)


def _cast(x, dtype: torch.dtype):
    """x, or what a list or tuple holds, with its floats as dtype."""
    if isinstance(x, Tensor):
        return x.to(dtype) if x.dtype in _FLOATS else x
    if isinstance(x, (list, tuple)) and any(isinstance(y, Tensor) for y in x):
        return type(x)(_cast(y, dtype) for y in x)
    return x


class Policy(TorchFunctionMode):
    """Casts the arguments of the functions above."""

    def __torch_function__(self, function, types, args=(), kwargs=None):
        name, kwargs = getattr(function, "__name__", ""), kwargs or {}
        dtype = LOW if name in _PRODUCTS else torch.float32 if name in _WIDE else None
        if dtype is None:
            return function(*args, **kwargs)
        with torch._C.DisableTorchFunction():
            return function(*(_cast(x, dtype) for x in args), **{key: _cast(x, dtype) for key, x in kwargs.items()})


def operands(*tensors: Tensor | None) -> tuple[Tensor | None, ...]:
    """Operands that a product will get, cast before they are copied for it."""
    mixed = any(isinstance(mode, Policy) for mode in torch.overrides._get_current_function_mode_stack())
    return tuple(_cast(x, LOW) for x in tensors) if mixed else tensors


@contextlib.contextmanager
def applied(module: nn.Module, precision: str) -> Iterator[None]:
    """Makes module's forward follow the policy of a precision. Its results are f32 in all of them."""
    if precision == "f32":
        yield
        return
    forward = module.forward

    def mixed(*args):
        # Functions written in Python must be entered, or the policy would see attention as a whole and not its products.
        entered = [mock.patch.object(functional, name, lambda *_: False)
                   for name in ("has_torch_function", "has_torch_function_unary", "has_torch_function_variadic")]
        with Policy(), entered[0], entered[1], entered[2]:
            results = forward(*args)
        return tuple(_cast(x, torch.float32) for x in results) if isinstance(results, tuple) else {key: _cast(x, torch.float32) for key, x in results.items()}

    with mock.patch.object(module, "forward", mixed):
        yield


# Same numbers in another order or shape: a cast may stand before or behind them.
_MOVES = frozenset({
    aten.t.default, aten.transpose.int, aten.permute.default, aten.view.default, aten._unsafe_view.default, aten.reshape.default,
    aten.unsqueeze.default, aten.squeeze.dim, aten.squeeze.dims, aten.expand.default, aten.clone.default, aten.alias.default, aten.slice.Tensor, aten.select.int,
})


def lower(graph: torch.fx.GraphModule, parameters: dict[str, str], gradients: dict[str, str]) -> None:
    """Rewrites a traced graph to take matrices of products, and to return their gradients, in bf16.

    parameters and gradients have the names of parameters by those of the graph's placeholders and outputs. Whatever else uses a
    matrix (a look-up, an addition) keeps it in f32, with a cast in the graph before each product. Raises Refusal when there is none.
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
    if not lowered:
        raise Refusal("no parameter is used by matrix products alone, so that none would be bf16", "leave bf16 out of --precision")
    [returned] = graph.graph.find_nodes(op="output")
    results = list(returned.args[0])
    for i, node in enumerate(results):
        if node is not None and gradients.get(node.name) in lowered:
            results[i] = _narrowed(graph, node)
    returned.args = (tuple(results),)
    graph.recompile()


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
    """The casts to bf16 that stand between a value and all of its uses; None when there is another use."""
    found = []
    for user in node.users:
        if _casts_to(user, LOW):
            found.append(user)
            continue
        behind = _casts(user) if user.target in _MOVES else None
        if behind is None:
            return None
        found += behind
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

    A graph without an input of bf16 has no such nodes.
    """
    if all(i.type.tensor_type.elem_type != TensorProto.BFLOAT16 for i in model.graph.input):
        return
    types = _types(model)
    nodes, taken = [], {name for node in model.graph.node for name in [*node.input, *node.output]}
    for node in model.graph.node:
        names = [*node.input, *node.output]
        if node.op_type in kernels or not any(types.get(name) == TensorProto.BFLOAT16 for name in names):
            nodes.append(node)
            continue
        before, behind = [], []
        for side, casts in ((node.input, before), (node.output, behind)):
            for i, name in enumerate(side):
                if types.get(name) == TensorProto.BFLOAT16:
                    side[i] = next(new for k in itertools.count() if (new := f"{name}.wide{k}") not in taken)
                    taken.add(side[i])
                    cast = (name, side[i], TensorProto.FLOAT) if casts is before else (side[i], name, TensorProto.BFLOAT16)
                    casts.append(helper.make_node("Cast", [cast[0]], [cast[1]], to=cast[2]))
        _widen_attributes(node)
        nodes += [*before, node, *behind]
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
