"""The joint graph of AOTAutograd with a list of inputs and a list of results.

torch._functorch.aot_autograd.aot_export_module traces its graph a second time to drop the tangents, which takes longer
than the first time. Its nodes are copied instead, in the order and with the names that tracing gives them: the names of
values in ONNX follow from both, and so the bytes of a graph.
"""

import contextlib
import operator
from collections.abc import Callable, Iterator
from unittest import mock

import torch
from torch import Tensor, fx
from torch._functorch import aot_autograd
from torch.fx.experimental.proxy_tensor import py_sym_types

from . import lines

aten = torch.ops.aten
# Tracing asks for a size where it is used first.
_SIZES = {aten.sym_size.int, aten.sym_stride.int, aten.sym_numel.default, aten.sym_storage_offset.default}
_META = ("val", "tensor_meta", lines.META)


@contextlib.contextmanager
def copied() -> Iterator[None]:
    """Within it, aot_export_module copies its joint graph."""
    export, trace, joint = aot_autograd._aot_export_function, aot_autograd.make_fx, []

    def noted(*args, **options):
        joint[:] = export(*args, **options)
        return tuple(joint)

    def copying(function: Callable, **options) -> Callable[..., fx.GraphModule]:
        return lambda *args: _Copy(joint[0]).of(args) if _plain(joint[0], args) else trace(function, **options)(*args)

    with mock.patch.object(aot_autograd, "_aot_export_function", noted), mock.patch.object(aot_autograd, "make_fx", copying):
        yield


def _plain(joint: fx.GraphModule, args: tuple) -> bool:
    """Whether it has functions and tensors only, and a gradient of each argument that needs one."""
    [returned] = joint.graph.find_nodes(op="output")
    gradients = returned.args[0][-len(args):]
    needed = [isinstance(x, Tensor) and x.requires_grad for x in args]
    attributes = [getattr(joint, node.target, None) for node in joint.graph.find_nodes(op="get_attr")]
    return ({node.op for node in joint.graph.nodes} <= {"placeholder", "call_function", "get_attr", "output"}
            and needed == [x is not None for x in gradients] and all(isinstance(x, Tensor) for x in attributes))


class _Copy:
    def __init__(self, joint: fx.GraphModule):
        self._joint, self._holder, self._graph = joint, torch.nn.Module(), fx.Graph()
        self._made: dict[fx.Node, fx.Node] = {}
        self._constants: dict[int, str] = {}

    def of(self, args: tuple) -> fx.GraphModule:
        """The graph that takes args, and returns the results and the gradients that there are."""
        given = self._joint.graph.find_nodes(op="placeholder")[:len(args)]
        for n, node in enumerate(given):
            self._note(node, self._graph.placeholder(f"arg{n}_1"))
        for node in self._joint.graph.nodes:
            if node.op == "call_function" and node.target not in _SIZES and node not in self._made:
                self._copy(node)
        [returned] = self._joint.graph.find_nodes(op="output")
        self._graph.output(tuple(self._get(x) for x in returned.args[0] if x is not None))
        return fx.GraphModule(self._holder, self._graph)

    def _get(self, node: fx.Node) -> fx.Node:
        if node.op == "get_attr":
            return self._constant(node)
        if node not in self._made:
            self._copy(node)
        return self._made[node]

    def _constant(self, node: fx.Node) -> fx.Node:
        """Each use has a node."""
        x = getattr(self._joint, node.target)
        if id(x) not in self._constants:
            self._constants[id(x)] = name = f"_tensor_constant{len(self._constants)}"
            setattr(self._holder, name, x)
        return self._graph.get_attr(self._constants[id(x)])

    def _copy(self, node: fx.Node) -> None:
        args, kwargs = (fx.node.map_arg(x, self._get) for x in (node.args, node.kwargs))
        # Sizes have the names of their overloads, and all else that of the operator.
        of_operator = isinstance(node.target, torch._ops.OpOverload) and not isinstance(node.meta.get("val"), py_sym_types)
        name = self._graph._target_to_str(node.target.overloadpacket.__name__) if of_operator else None
        made = self._graph.create_node(node.op, node.target, args, kwargs, name)
        self._note(node, made)
        results = node.meta.get("val")
        if isinstance(results, (list, tuple)):
            # Tracing takes all of them, in their order.
            users = [user for user in node.users if user.target is operator.getitem]
            for n, x in enumerate(results):
                item = self._graph.call_function(operator.getitem, (made, n))
                item.meta["val"] = x
                for user in users:
                    if user.args[1] == n:
                        self._note(user, item)

    def _note(self, node: fx.Node, made: fx.Node) -> None:
        self._made[node] = made
        made.meta.update({key: node.meta[key] for key in _META if key in node.meta})
