"""ONNX's Scan of the operator of recurrence.py.

While passes change a graph, a recurrence is a node that names everything it reads. The last step makes a Scan of it, whose body reads the
constants from outside.
"""

import itertools

import onnx
import sympy
import torch
from onnx import helper
from torch._functorch.aot_autograd import aot_export_joint_simple

from . import capture, clean, constants, lowering, recurrence, translate, watch
from .inputs import Input
from .watch import DryRun, Sizes


def trace(graph: torch.fx.GraphModule, dry: DryRun) -> None:
    """Traces the bodies of the graph's recurrences. Raises Refusal."""
    for node in graph.graph.find_nodes(op="call_function", target=recurrence.OPERATOR):
        tensors, carries, sequences, _, number = node.args
        shapes = [x.meta["val"] for x in tensors]
        translate.steps[number] = _body(recurrence.bodies[number], [(x.dtype, x.shape[carries <= i < carries + sequences:]) for i, x in enumerate(shapes)], dry)


def _body(body: recurrence.Body, tensors: list[tuple[torch.dtype, torch.Size]], dry: DryRun) -> onnx.GraphProto:
    names: dict[sympy.Expr, str] = {}
    symbol = lambda d: d if isinstance(d, int) else names.setdefault(d.node.expr, f"d{len(names)}")
    inputs = [Input(f"given{i}", "", tuple(symbol(d) for d in shape)) for i, (_, shape) in enumerate(tensors)]
    # Tracing takes equal sizes for one.
    sizes = {name: 5 + 2 * i for i, name in enumerate(names.values())}
    example = [torch.zeros([sizes.get(d, d) for d in i.shape], dtype=dtype) for i, (dtype, _) in zip(inputs, tensors, strict=True)]
    fake = Sizes(inputs, example)
    with watch.quiet(), fake.mode, lowering.functions(), torch.no_grad():
        # A result may be one of the arguments.
        run = lambda *tensors: tuple(x.detach().clone() for x in body.run(*tensors))
        graph = aot_export_joint_simple(run, tuple(fake.tensors), trace_joint=False, decompositions={**translate.decompositions(), **lowering.decompositions()})
    fake.refuse_assumptions()
    trace(graph, dry)
    own = constants.lift(graph, fake)
    [returned] = graph.graph.find_nodes(op="output")
    model = translate.translate(graph, fake.symbols(), [*(i.name for i in inputs), *own], [f"made{i}" for i in range(len(returned.args[0]))], dry)
    model = constants.fold(model, own)
    capture.rewrite(model)
    clean.clean(model)
    return model.graph


def reads(node: onnx.NodeProto) -> set[str]:
    """The names that a node reads, also those that its body reads from outside. No name is in two graphs."""
    bodies = [a.g for a in node.attribute if a.type == onnx.AttributeProto.GRAPH]
    made = {name for body in bodies for inner in body.node for name in inner.output} | {i.name for body in bodies for i in body.input}
    return {name for name in node.input if name} | {name for body in bodies for inner in body.node for name in reads(inner)} - made


def write(graph: onnx.GraphProto, prefix: str = "") -> None:
    """Makes a Scan of each recurrence. prefix begins the names of the bodies' values."""
    for number, node in enumerate(n for n in graph.node if n.domain == translate.SCAN_DOMAIN):
        _write(graph, node, f"{prefix}scan{number}.")


def _write(graph: onnx.GraphProto, node: onnx.NodeProto, prefix: str) -> None:
    given, body = {a.name: a.i for a in node.attribute}, onnx.GraphProto()
    body.CopyFrom(translate.steps[given["body"]])
    inner = given["carries"] + given["sequences"]
    outside = {value.name: name for value, name in zip(body.input[inner:], node.input[inner:], strict=True)}
    del body.input[inner:]
    name = lambda x: outside.get(x, x and prefix + x)
    for value in [*body.input, *body.output, *body.value_info, *body.initializer]:
        value.name = name(value.name)
    for part in body.node:
        for values in part.input, part.output:
            values[:] = [name(x) for x in values]
    write(body, prefix)
    # They follow from what the node reads.
    body.ClearField("value_info")
    for value in [*body.input, *body.output]:
        value.type.tensor_type.ClearField("shape")
    _separate(body)
    # Read once, not in every step.
    graph.initializer.extend(body.initializer)
    body.ClearField("initializer")
    body.name = prefix + "step"
    results, backward = len(body.output) - given["carries"], given["reverse"]
    # An attribute without values has no type; the gradient of a step that has no results has none.
    outward = {"scan_output_directions": [backward] * results} if results else {}
    scan_node = helper.make_node("Scan", node.input[:inner], node.output, name=node.name, body=body, num_scan_inputs=given["sequences"],
                                 scan_input_directions=[backward] * given["sequences"], **outward)
    node.CopyFrom(scan_node)


def _separate(body: onnx.GraphProto) -> None:
    """Gives every result a node of its own: an input cannot be a result, nor a value two of them."""
    taken = {i.name for i in body.input} | {t.name for t in body.initializer}
    made = {name for node in body.node for name in node.output}
    for number, value in zip(itertools.count(), body.output):
        if value.name in taken or value.name not in made:
            body.node.append(helper.make_node("Identity", [value.name], [f"{body.input[0].name}.result{number}"]))
            value.name = body.node[-1].output[0]
        taken.add(value.name)
