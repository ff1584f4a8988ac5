"""A traced graph of PyTorch's operators as ONNX.

torch.onnx.export takes modules: it traces them, traces the trace again to take its operators apart, and tries every rule of its
optimizer on every node. A graph of joint.py has been traced and taken apart, so it goes in as the program that tracing ends with, and is
tidied by the rules that find something in such graphs. It gives the same nodes in a fifth of the time.
"""

import logging
import operator
import re
from functools import cache
from unittest import mock

import onnx
import torch
from onnxscript import ir, optimizer, rewriter
from onnxscript.rewriter import pattern
from onnxscript.rewriter.rules import common as rules
from torch._export.verifier import Verifier
from torch.export import ExportedProgram
from torch.export.exported_program import ModuleCallEntry, ModuleCallSignature
from torch.export.graph_signature import ExportGraphSignature, InputKind, InputSpec, OutputKind, OutputSpec, TensorArgument
from torch.onnx._internal.fx.passes import type_promotion
from torch.onnx._internal.exporter import _core, _decomp, _fx_passes, _registration
from torch.utils import _pytree

from . import counts, progress, recurrence, rounded, watch, ways_out
from .refusal import Refusal
from .watch import DryRun

OPSET = 20
# Of the node that stands for a recurrence, and the graphs of the steps by their numbers, until scangraph.py writes it.
SCAN_DOMAIN = "xtts_export"
steps: dict[int, onnx.GraphProto] = {}


def _neutral(operator: str, number: int) -> pattern.RewriteRule:
    """An operation by exactly this number changes nothing. onnxscript's own rules take 1e-8 for 0 and 1.000008 for 1."""
    exactly = pattern.Constant(number, rel_tol=0, abs_tol=0)
    return pattern.RewriteRule(lambda op, x: getattr(op, operator)(x, exactly), lambda op, x, **_: op.Identity(x))


_RULES = (
    rules.cast_cast_rule, rules.no_op_cast_rule, rules.no_op_expand_rule, rules.reshape_reshape_rule, rules.no_op_transpose_rule,
    rules.transpose_transpose_rule, rules.unsqueeze_unsqueeze_rule, rules.squeeze_reshape_1d_rule, rules.collapse_slice_rule,
    rules.materialize_reshape_shape_rule, _neutral("Add", 0), _neutral("Sub", 0), _neutral("Mul", 1), _neutral("Div", 1),
)


@cache
def decompositions() -> dict:
    """What tracing must take apart because torch.onnx has no function for it."""
    # It warns of packages that it would like to have.
    logging.getLogger(_registration.__name__).setLevel(logging.ERROR)
    return _decomp.create_onnx_friendly_decomposition_table(set(_decomp.get_onnx_implemented_overloads(_registration.ONNXRegistry.from_torchlib())))


@cache
def _registry() -> _registration.ONNXRegistry:
    """torch.onnx's functions for PyTorch's operators. It reads their sources anew for each graph, as long as a small graph takes."""
    registry = _registration.ONNXRegistry.from_torchlib(opset_version=OPSET)
    registry._register(recurrence.OPERATOR, _registration.OnnxDecompMeta(_scan, recurrence.OPERATOR, None, is_custom=True, skip_signature_inference=True))
    registry._register(rounded.whole, _registration.OnnxDecompMeta(rounded.translated, rounded.whole, None, is_custom=True, skip_signature_inference=True))
    return registry


def _scan(tensors: list[ir.Value], carries: int, sequences: int, reverse: bool, body: int) -> list[ir.Value]:
    attributes = {"carries": carries, "sequences": sequences, "reverse": int(reverse), "body": body}
    node = ir.node("Scan", tensors, attributes, domain=SCAN_DOMAIN, num_outputs=len(steps[body].output))
    _core.current_tracer.nodes.append(node)
    return node.outputs


def translate(graph: torch.fx.GraphModule, symbols: dict[str, str], inputs: list[str], outputs: list[str], dry: DryRun) -> onnx.ModelProto:
    """The graph with these names of inputs and outputs. symbols names the sizes that PyTorch calls s0, s1. Raises Refusal."""
    rounded.exact(graph)
    counts.on_device(graph)
    _floor_sizes(graph)
    _share_sizes(graph)
    registry = _registry()
    progress.at("to ONNX")
    calls = len([node for node in graph.graph.nodes if node.op == "call_function"])
    try:
        with (watch.quiet(),
              progress.counted(_core, "_handle_call_function_node_with_lowering", calls, lambda model, node, *_: node.target),
              mock.patch.object(_fx_passes, "decompose_with_registry", lambda program, registry: program),
              mock.patch.object(type_promotion._TypePromotionInterpreter, "run_node", _promoted),
              mock.patch.object(_registration.ONNXRegistry, "from_torchlib", lambda *_, **options: registry),
              # It allows no function that PyTorch does not know, as rounded.whole.
              mock.patch.object(Verifier, "check", lambda *_: None)):
            program = torch.onnx.export(_program(graph), (), dynamo=True, verbose=False, opset_version=OPSET, optimize=False,
                                        input_names=inputs, output_names=outputs)
    except torch.onnx.errors.OnnxExporterError as error:
        operator = _failed(error)
        if operator is None:
            raise
        raise Refusal(f"operator {operator} has no form in plain ONNX", ways_out.of(operator), dry.place(operator)) from error
    _tidy(program.model)
    model = program.model_proto
    for value in [*model.graph.input, *model.graph.output, *model.graph.value_info]:
        for dim in value.type.tensor_type.shape.dim:
            if dim.dim_param:
                dim.dim_param = re.sub(r"\bs\d+\b", lambda match: symbols.get(match[0], match[0]), dim.dim_param)
    return model


def _promoted(self: type_promotion._TypePromotionInterpreter, node: torch.fx.Node) -> object:
    """What PyTorch's pass over types does with a node. It would run each node again, which has a result already."""
    with self._set_current_node(node):
        if rule := type_promotion.get_type_promotion_rule(node, self.type_promotion_table):
            self._maybe_promote_node(node, rule)
    if node.op == "call_function" and "val" in node.meta:
        return node.meta["val"]
    return torch.fx.Interpreter.run_node(self, node)


def _program(graph: torch.fx.GraphModule) -> ExportedProgram:
    """What torch.export would have made of it: every placeholder is an input, every result an output."""
    placeholders = graph.graph.find_nodes(op="placeholder")
    [returned] = graph.graph.find_nodes(op="output")
    results = returned.args[0]
    signature = ExportGraphSignature(
        [InputSpec(InputKind.USER_INPUT, TensorArgument(node.name), None) for node in placeholders],
        [OutputSpec(OutputKind.USER_OUTPUT, TensorArgument(node.name), None) for node in results])
    call = ModuleCallSignature([], [], _pytree.tree_structure(((0,) * len(placeholders), {})), _pytree.tree_structure((0,) * len(results)))
    return ExportedProgram(root=graph, graph=graph.graph, graph_signature=signature, state_dict={}, range_constraints={},
                           module_call_graph=[ModuleCallEntry("", call)])


def _share_sizes(graph: torch.fx.GraphModule) -> None:
    """One node for each size: tracing asks each tensor anew, and computes the same products of sizes at every view."""
    _multiply_sizes(graph)
    nodes = graph.graph.find_nodes(op="placeholder")
    known = {}
    with graph.graph.inserting_after(nodes[-1]):
        for node in nodes:
            for dim, size in enumerate(node.meta["val"].shape):
                if isinstance(size, torch.SymInt) and size.node.expr not in known:
                    known[size.node.expr] = asked = graph.graph.call_function(torch.ops.aten.sym_size.int, (node, dim))
                    asked.meta["val"] = size
    for node in list(graph.graph.nodes):
        size = node.meta.get("val")
        if isinstance(size, torch.SymInt) and known.setdefault(size.node.expr, node) is not node:
            node.replace_all_uses_with(known[size.node.expr])
            graph.graph.erase_node(node)
    graph.graph.eliminate_dead_code()


def _floor_sizes(graph: torch.fx.GraphModule) -> None:
    """Divisions of what may be negative, as in -(-n // 4), without a remainder. ONNX rounds towards zero, Python down."""
    for node in graph.graph.find_nodes(op="call_function", target=operator.floordiv):
        dividend, divisor = node.args
        size = dividend.meta["val"] if isinstance(dividend, torch.fx.Node) else dividend
        if isinstance(size, torch.SymInt) and any(share.is_negative for term, share in size.node.expr.as_coefficients_dict().items() if not term.is_number):
            with graph.graph.inserting_before(node):
                rest = graph.graph.call_function(operator.mod, (dividend, divisor))
                rest.meta["val"] = size % (divisor.meta["val"] if isinstance(divisor, torch.fx.Node) else divisor)
                whole = graph.graph.call_function(operator.sub, (dividend, rest))
                whole.meta["val"] = size - rest.meta["val"]
            node.args = (whole, divisor)


def _multiply_sizes(graph: torch.fx.GraphModule) -> None:
    """Counts of elements, for which torch.onnx has no function, as products of sizes."""
    for node in graph.graph.find_nodes(op="call_function", target=torch.ops.aten.sym_numel.default):
        [source] = node.args
        count = value = 1
        with graph.graph.inserting_before(node):
            for dim, size in enumerate(source.meta["val"].shape):
                factor = size
                if isinstance(size, torch.SymInt):
                    factor = graph.graph.call_function(torch.ops.aten.sym_size.int, (source, dim))
                    factor.meta["val"] = size
                value = value * size
                if isinstance(count, torch.fx.Node) or isinstance(factor, torch.fx.Node):
                    count = graph.graph.call_function(operator.mul, (count, factor))
                    count.meta["val"] = value
                else:
                    count = count * factor
        node.replace_all_uses_with(count)
        graph.graph.erase_node(node)


def _tidy(model: ir.Model) -> None:
    common = ir.passes.common
    fold = lambda model: optimizer.fold_constants_ir(model, onnx_shape_inference=True)
    unused, rewrite = common.RemoveUnusedNodesPass(), rewriter.RewritePass(_RULES)
    share = (common.LiftConstantsToInitializersPass(lift_all_constants=True, size_limit=0), common.DeduplicateInitializersPass(),
             common.CommonSubexpressionEliminationPass(), unused)
    # Rules take the most time: they come when equal nodes are one. What they find makes constants, and constants make more for them.
    steps = (fold, unused, *share, rewrite, unused, fold, rewrite, unused, fold,
             unused, common.IdentityEliminationPass(), *share, common.OutputFixPass(), common.NameFixPass(),
             common.RemoveUnusedOpsetsPass())
    for n, step in enumerate(steps, start=1):
        progress.at("tidied", n, len(steps))
        step(model)


def _failed(error: BaseException) -> torch._ops.OpOverload | None:
    """The operator that the translation stopped at: its errors have the node in their text only."""
    while error is not None:
        if match := re.search(r"torch\.ops\.(\w+)\.(\w+)\.(\w+)", str(error)):
            namespace, name, overload = match.groups()
            return getattr(getattr(getattr(torch.ops, namespace), name), overload)
        error = error.__cause__
    return None
