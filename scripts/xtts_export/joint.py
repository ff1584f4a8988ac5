"""Forward and backward of a PyTorch module as one plain ONNX graph with symbolic shapes.

AOTAutograd traces the joint graph, decompositions reduce it to operators that ONNX has, torch.onnx writes it. The result takes
the batch and the parameters and returns the module's outputs and one gradient per parameter, under the parameters' names.
"""

import dataclasses
from collections.abc import Callable
from unittest import mock

import onnx
import torch
from torch import Tensor, nn
from torch._functorch import aot_autograd

from . import bf16, capture, clean, collection, constants, flattened, lines, lowering, precision, progress, refusal, scangraph, tensors, translate, watch
from .cache import Cache
from .cache import key as keyed
from .inputs import Input
from .refusal import Refusal
from .watch import DryRun, Sizes

IR_VERSION = 10
PARTS = "leave parts of forward out until it passes, to find the one that fails"


def export(module: nn.Module, inputs: list[Input], example: list[Tensor], outputs: tuple[str, ...], path, backward: bool = True,
           dry: DryRun | None = None, compute: str = "f32", buckets: list[dict] | tuple = (), cache: Cache | None = None,
           ahead: Callable[[tuple[str, ...]], tuple[bytes, clean.Gains] | None] = lambda _: None) -> tuple[onnx.ModelProto, clean.Gains]:
    """Writes path, the graph of trace cleaned and checked, and returns it with what cleaning took away. Raises Refusal.

    A graph that the cache has is the same, byte by byte. Of one that it has not, ahead is asked.
    """
    dry = dry or watch.dry_run(module, inputs, example, backward=backward, buckets=buckets)
    now = dry.program.lines.runs
    key = _key(module, inputs, example, outputs, path, backward, dry, compute, buckets, cache) if cache and cache.folder else None
    if key and (found := cache.get(key, path.name, lambda notes, graph: _kept(notes, graph, now))):
        model, gains, graph = found
        path.write_bytes(graph)
        return model, gains
    if found := ahead(outputs):
        graph, gains = found
        model = onnx.load_from_string(graph)
    else:
        model, gains = made(module, inputs, example, outputs, backward, dry, compute, buckets)
        graph = model.SerializeToString()
    path.write_bytes(graph)
    if key:
        cache.put(key, {"gains": dataclasses.asdict(gains), "lines": now}, graph)
    return model, gains


def _key(module: nn.Module, inputs: list[Input], example: list[Tensor], outputs: tuple[str, ...], path, backward: bool, dry: DryRun, compute: str,
         buckets: list[dict] | tuple, cache: Cache) -> str | None:
    """The name of the graph in the cache: all that trace takes, with a module as the program that it runs. None if a digest would not cover the program."""
    programs, sizes = [dry.program], [list(x.shape) for x in example]
    if compute != "f32" or not dry.of(inputs, example, backward):
        try:
            with precision.applied(module, compute):
                programs.append(watch.dry_run(module, inputs, example, backward=backward, buckets=buckets).program)
        except Refusal:
            # Tracing has the message for it.
            return None
    if unknown := next(filter(None, (program.unknown for program in programs)), None):
        cache.remarks.append(f"{path.name} is not kept: {unknown}")
        return None
    return keyed(
        programs=[program.digest() for program in programs], inputs=[[i.name, i.dtype, i.shape] for i in inputs], example=sizes, outputs=outputs,
        backward=backward, compute=compute, buckets=list(buckets), aliases=tensors.aliases(module),
        parameters=[[name, list(p.shape), str(p.dtype), p.requires_grad] for name, p in module.named_parameters()])


def _kept(notes: dict, graph: bytes, now: list[lines.Run]) -> tuple[onnx.ModelProto, clean.Gains, bytes] | None:
    """An entry of the cache, with the lines where its code is now. None if one has become several.

    Raises an exception if it is not what export puts there.
    """
    model, gains = onnx.load_from_string(graph), clean.Gains(**notes["gains"])
    moves = lines.moves([(line, count) for line, count in notes["lines"]], now)
    if moves is None or not lines.moved(model.graph, moves):
        return None
    return model, gains, model.SerializeToString() if moves else graph


@collection.off()
def made(module: nn.Module, inputs: list[Input], example: list[Tensor], outputs: tuple[str, ...] | Callable[[], tuple[str, ...]],
         backward: bool, dry: DryRun, compute: str, buckets: list[dict] | tuple) -> tuple[onnx.ModelProto, clean.Gains]:
    """The graph of trace cleaned and checked, and what cleaning took away. Raises Refusal."""
    try:
        model = trace(module, inputs, example, outputs, dry, backward, compute, buckets)
        noted = lines.of(model.graph)
        capture.rewrite(model)
        bf16.widen(model)
        gains = clean.clean(model)
        progress.at("the file")
        lines.write(plain(model).graph, noted)
    except Refusal:
        raise
    except Exception as error:
        raise Refusal(f"the graph cannot be written: {watch.summary(error)}", PARTS) from error
    return model, gains


def trace(module: nn.Module, inputs: list[Input], example: list[Tensor], outputs: tuple[str, ...] | Callable[[], tuple[str, ...]], dry: DryRun,
          backward: bool = True, compute: str = "f32", buckets: list[dict] | tuple = ()) -> onnx.ModelProto:
    """The module's forward and, with backward, its gradients, as torch.onnx writes them. compute is the precision of matrix products.

    module(*example) returns f32 scalars, the loss first. Every symbolic size of the example must be greater than 1,
    because tracing takes 0 and 1 for constants; the graph runs with them all the same. Raises Refusal for code that
    no graph can express. outputs may be a function, for names that are known after a run. dry is the module's dry run.
    buckets are the sizes that the graph will run with.
    """
    for name, place in dry.changed.items():
        raise Refusal(f"forward changes buffer {name}, which no graph of this module returns", "export a Step, which has state", place)
    progress.at("traced")
    sizes = Sizes(inputs, example, buckets)
    try:
        # Of stack traces the file has a line for each node, and tracing is faster without them.
        with (progress.tracing(), watch.quiet(), flattened.copied(), lines.noted(), mock.patch.object(torch.fx.config, "do_not_emit_stack_traces", True),
              tensors.parameters_only(module), sizes.mode, lowering.functions(), precision.applied(module, compute), torch.set_grad_enabled(backward),
              mock.patch.object(aot_autograd, "create_graph_signature", _signature)):
            graph, signature = aot_autograd.aot_export_module(
                module, tuple(sizes.tensors), trace_joint=backward, output_loss_index=0 if backward else None,
                decompositions={**translate.decompositions(), **lowering.decompositions()})
    except Refusal:
        raise
    except Exception as error:
        # What was baked in may be what made the trace fail.
        sizes.refuse_assumptions()
        if "Cannot view a tensor" in str(error):
            raise Refusal("a tensor is written to in two views of it, whose elements are in another order",
                          "write a new tensor: y = y.transpose(1, 2) + 1, not y.transpose(1, 2).add_(1)", dry.writes()) from error
        hint = PARTS if compute == "f32" else "in f32 it passes: where two tensors must have one type, cast one with .to(other.dtype)"
        raise Refusal(f"tracing failed: {watch.summary(error)}", hint, refusal.within(error)) from error
    sizes.refuse_assumptions()

    returned = _graph_outputs(graph, signature, outputs() if callable(outputs) else outputs, backward)
    same = _unite_outputs(graph, returned)
    if compute != "f32":
        bf16.lower(graph, signature.inputs_to_parameters, signature.backward_signature.gradients_to_parameters)
    names = _graph_inputs(graph, signature, inputs)
    scangraph.trace(graph, dry)
    own = constants.lift(graph, sizes)
    model = translate.translate(graph, sizes.symbols(), [*names, *own], returned, dry)
    sizes.refuse_assumptions()
    _name_outputs(model, returned)
    _copy_outputs(model, same)
    _name_sizes(model, inputs)
    return constants.fold(model, own)


_SIGNATURE = aot_autograd.create_graph_signature


def _signature(graph: torch.fx.GraphModule, *metadata, num_user_fw_outs: int | None, **rest) -> aot_autograd.GraphSignature:
    """Of a graph whose gradients all have names of their own: those of two parameters that are added up are one result."""
    [returned] = graph.graph.find_nodes(op="output")
    results, seen = list(returned.args[0]), set()
    for i, node in enumerate(results):
        if i >= (num_user_fw_outs or len(results)) and node in seen:
            with graph.graph.inserting_before(returned):
                results[i] = graph.graph.call_function(torch.ops.aten.clone.default, (node,))
            results[i].meta = dict(node.meta)
        seen.add(node)
    returned.args = (tuple(results),)
    return _SIGNATURE(graph, *metadata, num_user_fw_outs=num_user_fw_outs, **rest)


def uses(model: onnx.ModelProto, name: str) -> bool:
    """Whether any node reads the value."""
    return any(name in scangraph.reads(node) for node in model.graph.node)


def part(model: onnx.ModelProto, outputs: tuple[str, ...], without: str, path) -> None:
    """Writes path: what the outputs need of a graph of export. It keeps all inputs but one, which it does not use."""
    graph = model.graph
    needed, nodes = set(outputs), []
    for node in reversed(graph.node):
        if needed.intersection(node.output):
            needed.update(scangraph.reads(node))
            nodes.append(node)
    kept = {"node": nodes[::-1], "initializer": [t for t in graph.initializer if t.name in needed],
            "input": [i for i in graph.input if i.name != without], "output": [o for o in graph.output if o.name in outputs]}
    small = onnx.ModelProto()
    small.CopyFrom(model)
    for field, values in kept.items():
        small.graph.ClearField(field)
        getattr(small.graph, field).extend(values)
    onnx.checker.check_model(small, full_check=True)
    onnx.save(small, path)


def _graph_inputs(graph, signature, inputs) -> list[str]:
    """The names of the placeholders, in the graph's order."""
    remaining = iter(inputs)
    return [signature.inputs_to_parameters.get(node.name) or next(remaining).name for node in graph.graph.find_nodes(op="placeholder")]


def _graph_outputs(graph, signature, outputs, backward) -> list[str]:
    """The names of the results. The module's outputs come first and in order; tracing renames them, so the position decides."""
    names = list(outputs)
    if backward:
        gradients = signature.backward_signature.gradients_to_parameters
        [returned] = graph.graph.find_nodes(op="output")
        names += ["grad." + gradients[node.name] for node in returned.args[0][len(outputs):]]
    return names


def _unite_outputs(graph, names: list[str]) -> dict[str, str]:
    """Leaves one of the results that are the same, such as a loss that is also a metric, and its name. Returns its name for each other one's."""
    [returned] = graph.graph.find_nodes(op="output")
    first, same = {}, {}
    for node, name in zip(returned.args[0], names, strict=True):
        if first.setdefault(node, name) != name:
            same[name] = first[node]
    returned.args = (tuple(first),)
    names[:] = first.values()
    return same


def _name_outputs(model: onnx.ModelProto, names: list[str]) -> None:
    """Gives the results their names, in their order: of equal ones, such as gradients of biases that are added up, torch.onnx names one."""
    given = {o.name: name for o, name in zip(model.graph.output, names, strict=True)}
    for value in model.graph.output:
        value.name = given[value.name]
    for node in model.graph.node:
        for values in node.input, node.output:
            values[:] = [given.get(name, name) for name in values]


def _copy_outputs(model: onnx.ModelProto, same: dict[str, str]) -> None:
    """Adds outputs under further names. Not by Identity: a graph without it has one name again."""
    for name, source in same.items():
        model.graph.node.append(onnx.helper.make_node("Sum", [source], [name]))
        [value] = [o for o in model.graph.output if o.name == source]
        model.graph.output.add().CopyFrom(value)
        model.graph.output[-1].name = name


def _name_sizes(model: onnx.ModelProto, inputs: list[Input]) -> None:
    """Gives the inputs' dimensions their names. If code requires that one size follows from another, PyTorch has an expression of that one instead."""
    given = {i.name: i for i in inputs}
    for value in model.graph.input:
        if value.name in given:
            for dim, size in zip(value.type.tensor_type.shape.dim, given[value.name].shape, strict=True):
                if isinstance(size, str):
                    dim.dim_param = size


def plain(model: onnx.ModelProto) -> onnx.ModelProto:
    """Drops stack traces (most of the file) and checks what remains."""
    scangraph.write(model.graph)
    model.ir_version = IR_VERSION
    model.producer_version = ""
    for known in [o for o in model.opset_import if o.domain == translate.SCAN_DOMAIN]:
        model.opset_import.remove(known)
    model.ClearField("metadata_props")
    _strip(model.graph)
    onnx.checker.check_model(model, full_check=True)
    foreign = {(n.domain, n.op_type) for n in model.graph.node if n.domain}
    if foreign or len(model.functions):
        raise ValueError(f"not plain ONNX: {sorted(foreign)}, {[f.name for f in model.functions]}")
    return model


def _strip(graph: onnx.GraphProto) -> None:
    for holder in [graph, *graph.node, *graph.value_info, *graph.input, *graph.output, *graph.initializer]:
        holder.ClearField("metadata_props")
        holder.ClearField("doc_string")
    del graph.value_info[:]
    for node in graph.node:
        node.ClearField("name")
        for attribute in node.attribute:
            if attribute.type == onnx.AttributeProto.GRAPH:
                _strip(attribute.g)
