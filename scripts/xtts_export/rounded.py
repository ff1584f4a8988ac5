"""Whole numbers that code makes of sizes by way of floats, as `int(n * 0.7)` and `round(n / 3)`: computed in f64, as Python computes them.

torch.onnx has f32 for Python's floats: 90 * 0.7 is 63.0 there, and 62.99999999999999 in Python. It has no function for Python's round.
"""

import builtins
import math
import operator

import numpy as np
import torch
from onnxscript import ir
from torch.fx import GraphModule, Node
from torch.onnx._internal.exporter import _core

# Of what makes a whole number, and of what computes the float that it is made of: Python's function, and ONNX's operator. A cast cuts off.
_WHOLE = {"floor": (math.floor, "Floor"), "ceil": (math.ceil, "Ceil"), "round": (builtins.round, "Round"), "trunc": (torch.sym_int, None)}
_FLOATS = {
    "add": (operator.add, "Add"), "sub": (operator.sub, "Sub"), "mul": (operator.mul, "Mul"), "div": (operator.truediv, "Div"),
    "pow": (operator.pow, "Pow"), "neg": (operator.neg, "Neg"), "sqrt": (torch.sym_sqrt, "Sqrt"),
}
_NAMES = {function: name for table in (_WHOLE, _FLOATS) for name, (function, _) in table.items()}
_NAMES |= {math.trunc: "trunc", builtins.int: "trunc", math.sqrt: "sqrt", torch._sym_sqrt: "sqrt"}


def exact(graph: GraphModule) -> None:
    """Makes one node of each whole number. What it does not know stays, and is refused where torch.onnx has no form."""
    for node in list(graph.graph.nodes):
        name = _NAMES.get(node.target) if node.op == "call_function" else None
        if name not in _WHOLE or not isinstance(node.args[0], Node) or not isinstance(node.args[0].meta.get("val"), torch.SymFloat):
            continue
        if any(x is not None for x in node.args[1:]) or (number := _program(node.args[0])) is None:
            continue
        with graph.graph.inserting_before(node):
            made = graph.graph.call_function(whole, (name, number))
        made.meta["val"] = node.meta["val"]
        node.replace_all_uses_with(made)
        graph.graph.erase_node(node)
    graph.graph.eliminate_dead_code()


def _program(x: object) -> object:
    """A number: a node that has a size, a float, or a name of _FLOATS and its arguments, which are numbers. None if it is something else."""
    if isinstance(x, (int, float)):
        return float(x)
    if not isinstance(x, Node):
        return None
    if isinstance(x.meta.get("val"), (int, torch.SymInt)):
        return x
    if x.target in (torch.sym_float, builtins.float):
        return _program(x.args[0])
    if (name := _NAMES.get(x.target)) not in _FLOATS:
        return None
    parts = [_program(part) for part in x.args]
    return None if None in parts else (name, *parts)


def whole(name: str, program: object) -> int | torch.SymInt:
    """The number, by Python: what a node of the graph calls."""
    return _WHOLE[name][0](_value(program))


def _value(program: object):
    return _FLOATS[program[0]][0](*map(_value, program[1:])) if isinstance(program, (tuple, list)) else program


def translated(name: str, program: object) -> ir.Value:
    """The number, by nodes of ONNX."""
    x = _float(program)
    if (operator := _WHOLE[name][1]) is not None:
        x = _node(operator, [x])
    return _node("Cast", [x], ir.DataType.INT64, {"to": ir.DataType.INT64.value})


def _float(program: object) -> ir.Value:
    match program:
        case [str(name), *parts]:
            return _node(_FLOATS[name][1], [_float(part) for part in parts])
        case ir.Value():
            return _node("Cast", [program], attributes={"to": ir.DataType.DOUBLE.value})
    return _node("Constant", [], attributes={"value": ir.tensor(np.float64(program))})


def _node(kind: str, inputs: list[ir.Value], dtype: ir.DataType = ir.DataType.DOUBLE, attributes: dict | None = None) -> ir.Value:
    node = ir.node(kind, inputs, attributes)
    [result] = node.outputs
    result.dtype, result.shape = dtype, ir.Shape([])
    _core.current_tracer.nodes.append(node)
    return result
