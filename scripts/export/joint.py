"""Forward and backward of a PyTorch module as one plain ONNX graph with symbolic shapes.

AOTAutograd traces the joint graph, decompositions reduce it to operators that ONNX has, torch.onnx writes it. The result takes
the batch and the parameters and returns the module's outputs and one gradient per parameter, under the parameters' names.
"""

from dataclasses import dataclass

import onnx
import torch
from torch import Tensor, nn
from torch._decomp import core_aten_decompositions, get_decompositions
from torch._dynamo.source import ConstantSource
from torch._functorch.aot_autograd import aot_export_module
from torch._subclasses.fake_tensor import FakeTensorMode
from torch.export import Dim
from torch.fx.experimental.symbolic_shapes import DimDynamic, ShapeEnv, StatelessSymbolicContext

from . import capture

aten = torch.ops.aten

OPSET = 20
IR_VERSION = 10


@dataclass(frozen=True)
class Input:
    """An input of the module's forward; a shape's strings are symbols."""

    name: str
    dtype: str
    shape: tuple[str | int, ...]


def _decompositions() -> dict:
    """What to take apart: backward formulas without an ONNX operator. What ONNX has as one operator stays whole."""
    table = {
        **core_aten_decompositions(),
        **get_decompositions([
            aten.native_layer_norm_backward, aten._softmax_backward_data, aten._log_softmax_backward_data,
            aten.embedding_dense_backward, aten.gelu_backward, aten.nll_loss_forward, aten.nll_loss_backward,
        ]),
        aten.slice_backward.default: _slice_backward,
    }
    whole = ("aten.native_layer_norm.default", "aten._softmax.default", "aten.gelu.default", "aten.log1p", "aten.addmm")
    return {op: f for op, f in table.items() if not str(op).startswith(whole)}


def _slice_backward(grad: Tensor, sizes: list[int], dim: int, start: int, end: int, step: int) -> Tensor:
    """The gradient between zeros. PyTorch's own formula writes it into zeros, which in ONNX is a scatter."""
    if step != 1:
        raise ValueError(f"a slice with step {step} has no gradient in plain ONNX")
    dim %= len(sizes)
    start = start + sizes[dim] if start < 0 else start
    zeros = lambda count: grad.new_zeros([*sizes[:dim], count, *sizes[dim + 1:]])
    return torch.cat([zeros(start), grad, zeros(sizes[dim] - start - grad.shape[dim])], dim)


def export(module: nn.Module, inputs: list[Input], example: list[Tensor], outputs: tuple[str, ...], path, backward: bool = True) -> None:
    """Writes path: the module's forward and, with backward, its gradients.

    module(*example) returns f32 scalars, the loss first. Every symbolic size of the example must be greater than 1,
    because tracing takes 0 and 1 for constants; the graph runs with them all the same.
    """
    _refuse_buffers(module)
    fake_mode = FakeTensorMode(shape_env=ShapeEnv(), allow_non_fake_inputs=True)
    fake = []
    for spec, x in zip(inputs, example, strict=True):
        sizes = [DimDynamic.DYNAMIC if isinstance(d, str) else DimDynamic.STATIC for d in spec.shape]
        context = StatelessSymbolicContext(dynamic_sizes=sizes)
        fake.append(fake_mode.from_tensor(x, symbolic_context=context, source=ConstantSource(spec.name)))
    with fake_mode, torch.set_grad_enabled(backward):
        graph, signature = aot_export_module(
            module, tuple(fake), trace_joint=backward, output_loss_index=0 if backward else None, decompositions=_decompositions())
    _refuse_frozen_sizes(fake_mode.shape_env)

    names, values, dynamic = _graph_inputs(graph, signature, module, inputs, example)
    program = torch.onnx.export(
        _Traced(graph).eval(), tuple(values), dynamo=True, verbose=False, opset_version=OPSET, dynamic_shapes=(tuple(dynamic),),
        input_names=names, output_names=_graph_outputs(graph, signature, outputs, backward))
    onnx.save(_plain(program.model_proto), path)


class _Traced(nn.Module):
    """torch.onnx.export takes modules whose forward it can call; a GraphModule's signature is generated."""

    def __init__(self, graph: torch.fx.GraphModule):
        super().__init__()
        self.graph = graph

    def forward(self, *values):
        return self.graph(*values)


def _refuse_buffers(module: nn.Module) -> None:
    """A buffer would be state that neither the host nor a checkpoint knows."""
    if buffers := [name for name, _ in module.named_buffers()]:
        raise ValueError(f"module has buffers, which a bundle cannot hold: {', '.join(buffers)}")


def _refuse_frozen_sizes(shape_env: ShapeEnv) -> None:
    """Tracing records an equality with a number when it baked in the example's size."""
    frozen = [g.expr for g in shape_env.guards if g.expr.is_Equality and any(side.is_number for side in g.expr.args)]
    if frozen:
        raise ValueError(f"sizes of the example were baked in: {frozen}")


def _graph_inputs(graph, signature, module, inputs, example):
    """Name, value and dynamic dimensions of each placeholder, in the graph's order."""
    parameters = dict(module.named_parameters())
    symbols = {d: Dim(d, min=2) for spec in inputs for d in spec.shape if isinstance(d, str)}
    remaining = iter(zip(inputs, example, strict=True))
    names, values, dynamic = [], [], []
    for node in graph.graph.find_nodes(op="placeholder"):
        if name := signature.inputs_to_parameters.get(node.name):
            names.append(name)
            values.append(parameters[name].detach())
            dynamic.append(None)
            continue
        spec, x = next(remaining)
        names.append(spec.name)
        values.append(x)
        dynamic.append({i: symbols[d] for i, d in enumerate(spec.shape) if isinstance(d, str)} or None)
    return names, values, dynamic


def _graph_outputs(graph, signature, outputs, backward) -> list[str]:
    """The module's outputs come first and in order; tracing renames them, so they are told by position."""
    names = list(outputs)
    if backward:
        gradients = signature.backward_signature.gradients_to_parameters
        [returned] = graph.graph.find_nodes(op="output")
        names += ["grad." + gradients[node.name] for node in returned.args[0][len(outputs):]]
    return names


def _plain(model: onnx.ModelProto) -> onnx.ModelProto:
    """Rewrites what a CUDA graph cannot hold, drops stack traces (most of the file) and checks what remains."""
    capture.rewrite(model)
    model.ir_version = IR_VERSION
    model.producer_version = ""
    model.ClearField("metadata_props")
    for holder in [model.graph, *model.graph.node, *model.graph.value_info, *model.graph.input, *model.graph.output, *model.graph.initializer]:
        holder.ClearField("metadata_props")
        holder.ClearField("doc_string")
    del model.graph.value_info[:]
    for node in model.graph.node:
        node.ClearField("name")
    onnx.checker.check_model(model, full_check=True)
    foreign = {(n.domain, n.op_type) for n in model.graph.node if n.domain}
    if foreign or len(model.functions):
        raise ValueError(f"not plain ONNX: {sorted(foreign)}, {[f.name for f in model.functions]}")
    return model
