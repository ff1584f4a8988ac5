"""Writes lowpass.onnx: y = x + wet * (filtered(x) - x), by a windowed sinc of 63 taps. It needs the package onnx."""

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper

CUTOFF, TAPS = 0.15, 63  # cycles per sample
t = np.arange(TAPS) - TAPS // 2
taps = np.sinc(2 * CUTOFF * t) * np.hanning(TAPS + 2)[1:-1]
taps = (taps / taps.sum()).astype(np.float32).reshape(1, 1, TAPS)


def info(name, *shape):
    return helper.make_tensor_value_info(name, TensorProto.FLOAT, shape)


graph = helper.make_graph(
    [
        helper.make_node("Conv", ["x", "taps"], ["filtered"], pads=[TAPS // 2, TAPS // 2]),
        helper.make_node("Sub", ["filtered", "x"], ["change"]),
        helper.make_node("Mul", ["wet", "change"], ["part"]),
        helper.make_node("Add", ["x", "part"], ["y"]),
    ],
    "lowpass", [info("x", "B", 1, "T"), info("wet", "B", 1, 1)], [info("y", "B", 1, "T")],
    [numpy_helper.from_array(taps, "taps")],
)
model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 20)], ir_version=10)
onnx.checker.check_model(model, full_check=True)
onnx.save(model, "lowpass.onnx")
