"""Tensors that a traced graph holds itself, which torch.onnx would lose: they are inputs while it is translated."""

import onnx
import torch
from torch import Tensor

from .watch import Sizes


def lift(graph: torch.fx.GraphModule, sizes: Sizes) -> dict[str, Tensor]:
    """Makes inputs, after the others, of the tensors that are the module's own attributes or made in forward."""
    constants, lifted = {}, {}
    last = graph.graph.find_nodes(op="placeholder")[-1]
    for node in graph.graph.find_nodes(op="get_attr"):
        if node.target not in lifted:
            constants[node.target] = getattr(graph, node.target)
            with graph.graph.inserting_after(last):
                last = lifted[node.target] = graph.graph.placeholder(node.target)
            last.meta["val"] = sizes.mode.from_tensor(constants[node.target], static_shapes=True)
        node.replace_all_uses_with(lifted[node.target])
        graph.graph.erase_node(node)
    for name in constants:
        delattr(graph, name)
    return constants


def fold(model: onnx.ModelProto, constants: dict[str, Tensor]) -> onnx.ModelProto:
    """Undoes lift: the inputs become constants of the graph."""
    inputs = [i for i in model.graph.input if i.name not in constants]
    del model.graph.input[:]
    model.graph.input.extend(inputs)
    model.graph.initializer.extend(onnx.numpy_helper.from_array(x.detach().numpy(), name) for name, x in constants.items())
    return model
