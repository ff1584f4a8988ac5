"""Makes the inference graphs of package synthesizetest, which documents what they compute.

    .cache/venv-export/bin/python host/speak/synthesize/synthesizetest/testdata/make_graphs.py
"""

import pathlib

import numpy as np
import onnx
from onnx import TensorProto as T
from onnx import helper as h
from onnx import numpy_helper
from safetensors.numpy import save_file

FOLDER = pathlib.Path(__file__).parent
CODES, TARGETS = 8, 7
# Latents of a period of the vocoder's pattern, and samples of a latent.
PERIOD, STRIDE = 3, 4


def value(name, dtype, *shape):
    return h.make_tensor_value_info(name, dtype, list(shape))


def constant(name, x):
    return numpy_helper.from_array(np.asarray(x), name)


def node(kind, inputs, outputs, **attributes):
    return h.make_node(kind, inputs.split(), outputs.split(), **attributes)


def save(name, nodes, inputs, outputs, constants):
    graph = h.make_graph(nodes, name, inputs, outputs, constants)
    model = h.make_model(graph, opset_imports=[h.make_opsetid("", 20)], ir_version=10)
    onnx.checker.check_model(model, full_check=True)
    onnx.save(model, FOLDER / f"{name}.onnx")


ONE, ZERO, LAST = constant("one", np.int64([1])), constant("zero", np.int64([0])), constant("last", np.int64([-1]))

save("conditioning_mel",
     [node("Unsqueeze", "waveform last", "conditioning_mel"), node("Identity", "waveform_lengths", "conditioning_lengths")],
     [value("waveform", T.FLOAT, "B", "T_wav"), value("waveform_lengths", T.INT32, "B")],
     [value("conditioning_mel", T.FLOAT, "B", "T_cond", 1), value("conditioning_lengths", T.INT32, "B")], [LAST])

save("conditioning", [node("ReduceMean", "conditioning_mel one", "voice")],
     [value("conditioning_mel", T.FLOAT, "B", "T_cond", 1)], [value("voice", T.FLOAT, "B", 1, 1)], [ONE])

save("speaker",
     [node("Abs", "waveform", "level"), node("ReduceMax", "level one", "largest"), node("ReduceL2", "waveform one", "length"),
      node("Concat", "largest length", "speaker", axis=1)],
     [value("waveform", T.FLOAT, "B", "T_wav")], [value("speaker", T.FLOAT, "B", 2)], [ONE])

# What the two that decode have in common: the sum of the keys, which decides about the next code, and their number.
CHOICE = [
    node("ReduceSum", "keys one", "sum", keepdims=1), node("Shape", "keys", "count64", start=1, end=2), node("Cast", "count64", "count", to=T.FLOAT),
    node("Mod", "sum seven", "rest", fmod=1), node("Greater", "count long", "ended"), node("Where", "ended seven rest", "target"),
    node("Sub", "target range", "distance"), node("Mul", "distance distance", "square"), node("Neg", "square", "logits"),
    node("ReduceSum", "stop_head.bias", "bias", keepdims=0), node("ReduceSum", "stop_head.weight", "weight", keepdims=0),
    node("Add", "bias weight", "offset"), node("Add", "target offset", "first"),
    node("Shape", "first", "first_shape"), node("Expand", "count first_shape", "second"), node("Concat", "first second", "latent", axis=1),
]
NUMBERS = [ONE, LAST, constant("seven", np.float32([TARGETS])), constant("long", np.float32([40])), constant("range", np.arange(CODES, dtype=np.float32)[None])]
MADE = [value("logits", T.FLOAT, "B", CODES), value("latent", T.FLOAT, "B", 2), value("keys", T.FLOAT, "B", "T_next")]
HEAD = [value("stop_head.weight", T.FLOAT, 1, 16), value("stop_head.bias", T.FLOAT, 1)]

save("prefill",
     [node("Cast", "tokens", "words", to=T.FLOAT), node("Squeeze", "voice last", "heard"), node("Concat", "heard words", "keys", axis=1), *CHOICE],
     [value("voice", T.FLOAT, "B", 1, 1), value("tokens", T.INT32, "B", "T_text"), value("token_lengths", T.INT32, "B"), *HEAD], MADE, NUMBERS)

save("step",
     [node("Add", "code position", "together"), node("Cast", "together", "number", to=T.FLOAT), node("Unsqueeze", "number one", "new"),
      node("Concat", "past_keys new", "keys", axis=1), *CHOICE],
     [value("code", T.INT32, "B"), value("position", T.INT32, "B"), value("past_keys", T.FLOAT, "B", "T_past"), *HEAD], MADE, NUMBERS)

# The mean of a latent with the one before and after it, times a pattern of the place in the period, the first number of the speaker and
# the gain.
save("vocoder",
     [node("Transpose", "latents", "channels", perm=[0, 2, 1]), node("Conv", "channels kernel", "mean", pads=[1, 1]), node("Mul", "mean gain", "louder"),
      node("Gather", "speaker zero", "loud", axis=1), node("Unsqueeze", "loud last", "speaker3"), node("Mul", "louder speaker3", "said"), node("Transpose", "said", "column", perm=[0, 2, 1]),
      node("Shape", "latents", "count", start=1, end=2), node("Squeeze", "count zero", "n"), node("Squeeze", "one zero", "step"), node("Squeeze", "zero zero", "from"),
      node("Range", "from n step", "places"), node("Mod", "places period", "place"), node("Gather", "pattern place", "rows", axis=0),
      node("Mul", "column rows", "samples"), node("Reshape", "samples flat", "waveform")],
     [value("latents", T.FLOAT, "B", "T_latent", 2), value("speaker", T.FLOAT, "B", 2), value("gain", T.FLOAT, 1)], [value("waveform", T.FLOAT, "B", "T_wav")],
     [ONE, ZERO, LAST, constant("kernel", np.float32([[[0.25, 0.5, 0.25], [0.0, 0.01, 0.0]]])), constant("period", np.int64(PERIOD)), constant("flat", np.int64([0, -1])),
      constant("pattern", (np.arange(PERIOD * STRIDE, dtype=np.float32).reshape(PERIOD, STRIDE) + 1) / (PERIOD * STRIDE))])
save_file({"gain": np.float32([0.1])}, FOLDER / "vocoder.safetensors")
