"""Makes the graphs that the tests of this folder's package open.

    python3 -m venv /tmp/onnx && /tmp/onnx/bin/pip install onnx==1.19.1
    /tmp/onnx/bin/python make_models.py
"""

import pathlib

import onnx
from onnx import TensorProto as T
from onnx import helper as h

FOLDER = pathlib.Path(__file__).parent


def value(name, dtype, shape):
    return h.make_tensor_value_info(name, dtype, shape)


def scalar(name, x):
    return h.make_tensor(name, T.FLOAT, [], [x])


def save(name, nodes, inputs, outputs, init=()):
    graph = h.make_graph(nodes, name, inputs, outputs, list(init))
    model = h.make_model(graph, opset_imports=[h.make_opsetid("", 20)], ir_version=10)
    onnx.checker.check_model(model, full_check=True)
    onnx.save(model, FOLDER / f"{name}.onnx")


# y = x + 1
save(
    "add_one",
    [h.make_node("Add", ["x", "one"], ["y"])],
    [value("x", T.FLOAT, ["n"])],
    [value("y", T.FLOAT, ["n"])],
    [scalar("one", 1)],
)

# The update of stochastic gradient descent: elementwise, so that `updated` may lie on `w`.
save(
    "sgd",
    [h.make_node("Mul", ["grad.w", "lr"], ["d"]), h.make_node("Sub", ["w", "d"], ["updated"])],
    [value("w", T.FLOAT, ["n"]), value("grad.w", T.FLOAT, ["n"]), value("lr", T.FLOAT, [])],
    [value("updated", T.FLOAT, ["n"])],
)

# Every element type that the package knows, and every kind of dimension.
TYPES = {
    "f32": T.FLOAT, "f64": T.DOUBLE, "f16": T.FLOAT16, "bf16": T.BFLOAT16,
    "i32": T.INT32, "i64": T.INT64, "u8": T.UINT8, "bool": T.BOOL,
}
SHAPE = ["B", 3, None]
save(
    "types",
    [h.make_node("Identity", [n], [n + "_out"]) for n in TYPES],
    [value(n, t, SHAPE) for n, t in TYPES.items()],
    [value(n + "_out", t, SHAPE) for n, t in TYPES.items()],
)

# y has as many elements as `shape` says: more memory than there is, if wanted.
save(
    "fill",
    [h.make_node("ConstantOfShape", ["shape"], ["zeros"]), h.make_node("ReduceSum", ["zeros"], ["sum"], keepdims=0)],
    [value("shape", T.INT64, [1])],
    [value("sum", T.FLOAT, [])],
)

# y = x after `count` rounds of x = x * half: a run that lasts as long as a test wants.
body = h.make_graph(
    [h.make_node("Identity", ["go"], ["go_out"]), h.make_node("Mul", ["v", "half"], ["v_out"])],
    "body",
    [value("i", T.INT64, []), value("go", T.BOOL, []), value("v", T.FLOAT, [1])],
    [value("go_out", T.BOOL, []), value("v_out", T.FLOAT, [1])],
    [scalar("half", 0.5)],
)
save(
    "loop",
    [h.make_node("Loop", ["count", "", "x"], ["y"], body=body)],
    [value("count", T.INT64, []), value("x", T.FLOAT, [1])],
    [value("y", T.FLOAT, [1])],
)

# What the package refuses: an element type without a fixed size, a value that is no tensor.
save(
    "strings",
    [h.make_node("Identity", ["x"], ["y"])],
    [value("x", T.STRING, [1])],
    [value("y", T.STRING, [1])],
)
save(
    "sequence",
    [h.make_node("SequenceConstruct", ["x"], ["y"])],
    [value("x", T.FLOAT, [1])],
    [h.make_tensor_sequence_value_info("y", T.FLOAT, [1])],
)
