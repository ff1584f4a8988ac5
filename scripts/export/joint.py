"""Forward and backward of a PyTorch module as one plain ONNX graph with symbolic shapes.

AOTAutograd traces the joint graph, decompositions reduce it to operators that ONNX has, torch.onnx writes it. The result takes
the batch and the parameters and returns the module's outputs and one gradient per parameter, under the parameters' names.
"""

import re

import onnx
import torch
from torch import Tensor, nn
from torch._functorch.aot_autograd import aot_export_module
from torch.export import Dim

from . import capture, clean, lowering, refusal, watch
from .refusal import Refusal
from .watch import Input, Rehearsal, Sizes

__all__ = ["Input", "export", "trace"]

OPSET = 20
IR_VERSION = 10


def export(module: nn.Module, inputs: list[Input], example: list[Tensor], outputs: tuple[str, ...], path, backward: bool = True,
           rehearsal: Rehearsal | None = None) -> clean.Gains:
    """Writes path, the graph of trace cleaned and checked, and returns what cleaning took away. Raises Refusal."""
    model = trace(module, inputs, example, outputs, backward, rehearsal)
    capture.rewrite(model)
    gains = clean.clean(model)
    onnx.save(_plain(model), path)
    return gains


def trace(module: nn.Module, inputs: list[Input], example: list[Tensor], outputs: tuple[str, ...], backward: bool = True,
          rehearsal: Rehearsal | None = None) -> onnx.ModelProto:
    """The module's forward and, with backward, its gradients, as torch.onnx writes them.

    module(*example) returns f32 scalars, the loss first. Every symbolic size of the example must be greater than 1,
    because tracing takes 0 and 1 for constants; the graph runs with them all the same. Raises Refusal for what has no place
    in a graph. rehearsal is the module's own, if there has been one.
    """
    rehearsal = rehearsal or watch.rehearse(module, inputs, example, backward=backward)
    sizes = Sizes(inputs, example)
    try:
        with watch.quiet(), sizes.mode, lowering.functions(), torch.set_grad_enabled(backward):
            graph, signature = aot_export_module(
                module, tuple(sizes.tensors), trace_joint=backward, output_loss_index=0 if backward else None,
                decompositions=lowering.decompositions())
    except Refusal:
        raise
    except Exception as error:
        # What was baked in may be what made the trace fail.
        sizes.refuse_frozen()
        raise Refusal(f"tracing failed: {watch.summary(error)}", "leave parts of forward out until it passes, to find the one that fails",
                      refusal.within(error)) from error
    sizes.refuse_frozen()

    names, values, dynamic = _graph_inputs(graph, signature, module, inputs, example)
    constants = _lift_constants(graph)
    model = _translate(graph, [*values, *constants.values()], [*dynamic, *(None for _ in constants)], [*names, *constants],
                       _graph_outputs(graph, signature, outputs, backward), rehearsal)
    return _fold_constants(model, constants)


def _translate(graph: torch.fx.GraphModule, values: list, dynamic: list, inputs: list[str], outputs: list[str],
               rehearsal: Rehearsal) -> onnx.ModelProto:
    try:
        with watch.quiet():
            program = torch.onnx.export(
                _Traced(graph).eval(), tuple(values), dynamo=True, verbose=False, opset_version=OPSET, dynamic_shapes=(tuple(dynamic),),
                input_names=inputs, output_names=outputs)
    except torch.onnx.errors.OnnxExporterError as error:
        operator = _failed(error)
        if operator is None:
            raise
        raise Refusal(f"operator {operator} has no form in plain ONNX", "write it with elementwise operators, matrix products, torch.where and torch.cat",
                      rehearsal.place(operator)) from error
    return program.model_proto


def _failed(error: BaseException) -> torch._ops.OpOverload | None:
    """The operator that the translation stopped at: its errors have the node in their text only."""
    while error is not None:
        if match := re.search(r"torch\.ops\.(\w+)\.(\w+)\.(\w+)", str(error)):
            namespace, name, overload = match.groups()
            return getattr(getattr(getattr(torch.ops, namespace), name), overload)
        error = error.__cause__
    return None


class _Traced(nn.Module):
    """torch.onnx.export takes modules whose forward it can call; a GraphModule's signature is generated."""

    def __init__(self, graph: torch.fx.GraphModule):
        super().__init__()
        self.graph = graph

    def forward(self, *values):
        return self.graph(*values)


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


def _lift_constants(graph: torch.fx.GraphModule) -> dict[str, Tensor]:
    """Makes inputs of the tensors that are the module's own attributes or made in forward: torch.onnx.export loses them otherwise."""
    constants, lifted = {}, {}
    last = graph.graph.find_nodes(op="placeholder")[-1]
    for node in graph.graph.find_nodes(op="get_attr"):
        if node.target not in lifted:
            constants[node.target] = getattr(graph, node.target)
            with graph.graph.inserting_after(last):
                last = lifted[node.target] = graph.graph.placeholder(node.target)
        node.replace_all_uses_with(lifted[node.target])
        graph.graph.erase_node(node)
    graph.recompile()
    for name in constants:
        delattr(graph, name)
    return constants


def _fold_constants(model: onnx.ModelProto, constants: dict[str, Tensor]) -> onnx.ModelProto:
    """Undoes _lift_constants: the inputs become constants of the graph."""
    inputs = [i for i in model.graph.input if i.name not in constants]
    del model.graph.input[:]
    model.graph.input.extend(inputs)
    model.graph.initializer.extend(onnx.numpy_helper.from_array(x.detach().numpy(), name) for name, x in constants.items())
    return model


def _graph_outputs(graph, signature, outputs, backward) -> list[str]:
    """The module's outputs come first and in order; tracing renames them, so they are told by position."""
    names = list(outputs)
    if backward:
        gradients = signature.backward_signature.gradients_to_parameters
        [returned] = graph.graph.find_nodes(op="output")
        names += ["grad." + gradients[node.name] for node in returned.args[0][len(outputs):]]
    return names


def _plain(model: onnx.ModelProto) -> onnx.ModelProto:
    """Drops stack traces (most of the file) and checks what remains."""
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
