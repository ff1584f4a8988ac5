"""The clean-up passes keep every number, take away what they are for, and leave alone what they must."""

from collections import Counter

import numpy as np
import onnx
import onnx.parser
import onnxruntime
import pytest
import sympy
import torch
from onnx import numpy_helper
from onnx.reference import ReferenceEvaluator

from . import capture, examples, joint, large, model, presets, writer
from .clean import PASSES, clean, sizes
from .inputs import SEED, sequence, zeros
from .joint import IR_VERSION
from .module import Export, Step
from .translate import OPSET


def traced(export: Export) -> onnx.ModelProto:
    """The training graph as torch.onnx writes it."""
    step = Step(export)
    dry, inputs = writer.dry_run(export, step), [*export.inputs, SEED]
    return joint.trace(step, inputs, zeros(inputs, dry.sizes), step.outputs, dry=dry)


def miniature() -> Export:
    """The preset tiny with narrower and fewer layers."""
    torch.manual_seed(0)
    sizes = large.Sizes((64, 1), (64, 1), (128, 2), vocab=64, prosody=False)
    sequences = [*sequence("text_sequences", "i32", "T_text", lengths="text_lengths", below=sizes.vocab),
                 *sequence("mel_spectrograms", "f32", "T_mel", sizes.n_mels, lengths="mel_lengths")]
    return Export(name="myxtts", module=large.MyXTTS(sizes), loss=model.loss, inputs=sequences, buckets=[{"T_text": 8, "T_mel": 8}], features={})


MODELS = {
    "nano": lambda: traced(presets.build("nano")), "tiny in miniature": lambda: traced(miniature()),
    **{build.__name__: lambda build=build: traced(build()) for build in (examples.fast_speech, examples.conformer, examples.code_model)},
}


@pytest.fixture(scope="module", params=MODELS)
def naive(request):
    """A naive graph, and what it gives for random batches of SIZES."""
    model = MODELS[request.param]()
    feeds = [feed(model, sizes, empty, seed) for seed, (sizes, empty) in enumerate(SIZES)]
    return model, feeds, [run(model, x) for x in feeds]


def run(model: onnx.ModelProto, feed: dict[str, np.ndarray]) -> dict[str, np.ndarray]:
    """Outputs in double precision, by ONNX's reference implementation: what differs is not rounding, and nothing is optimised away."""
    double = without_traces(model)
    del double.graph.value_info[:]
    for value in [*double.graph.input, *double.graph.output]:
        if value.type.tensor_type.elem_type == onnx.TensorProto.FLOAT:
            value.type.tensor_type.elem_type = onnx.TensorProto.DOUBLE
    tensors = [*double.graph.initializer, *(a.t for node in double.graph.node for a in node.attribute if a.type == onnx.AttributeProto.TENSOR)]
    for tensor in tensors:
        if tensor.data_type == onnx.TensorProto.FLOAT:
            tensor.CopyFrom(numpy_helper.from_array(numpy_helper.to_array(tensor).astype(np.float64), tensor.name))
    for node in double.graph.node:
        if node.op_type == "Cast" and node.attribute[0].i == onnx.TensorProto.FLOAT:
            node.attribute[0].i = onnx.TensorProto.DOUBLE
    names = [o.name for o in model.graph.output]
    feed = {name: x.astype(np.float64) if x.dtype == np.float32 else x for name, x in feed.items()}
    return dict(zip(names, ReferenceEvaluator(double).run(names, feed), strict=True))


# One row, an empty row among others, sequences so short that their sizes take part in broadcasting.
SIZES = [
    ({"B": 1, "T_text": 7, "T_mel": 19, "T_ref_mel": 5}, None),
    ({"B": 3, "T_text": 30, "T_mel": 41, "T_ref_mel": 18}, 1),
    ({"B": 2, "T_text": 2, "T_mel": 2, "T_ref_mel": 2}, None),
    ({"B": 1, "T_text": 2, "T_mel": 1, "T_ref_mel": 1}, None),
]


def feed(model: onnx.ModelProto, sizes: dict[str, int], empty: int | None, seed: int) -> dict[str, np.ndarray]:
    """Random numbers for all inputs; lengths are of whole or half axes, and 0 in the empty row."""
    random, feed = np.random.default_rng(seed), {}
    for value in model.graph.input:
        tensor = value.type.tensor_type
        shape = [sizes[d.dim_param] if d.dim_param else d.dim_value for d in tensor.shape.dim]
        if tensor.elem_type == onnx.TensorProto.FLOAT:
            feed[value.name] = random.normal(0, 0.3, shape).astype(np.float32)
        elif value.name == "seed":
            feed[value.name] = np.array(7, np.int64)
        elif len(shape) == 1:
            name = {"text_lengths": "T_text", "mel_lengths": "T_mel", "reference_mel_lengths": "T_ref_mel"}.get(value.name)
            lengths = random.integers(1, sizes[name] + 1 if name else 4, shape).astype(np.int32)
            if empty is not None and name:
                lengths[empty] = 0
            feed[value.name] = lengths
        else:
            feed[value.name] = random.integers(0, 40, shape).astype(np.int32)
    return feed


def without_traces(model: onnx.ModelProto) -> onnx.ModelProto:
    """A copy without what torch.onnx writes about each node, which is most of it."""
    copy = onnx.ModelProto()
    copy.CopyFrom(model)
    for holder in [copy.graph, *copy.graph.node, *copy.graph.value_info]:
        holder.ClearField("metadata_props")
    return copy


@pytest.mark.parametrize("name", [*PASSES, "all", "all, with capture"])
def test_numbers_stay(naive, name):
    model, feeds, wanted = naive
    cleaned = without_traces(model)
    if name == "all, with capture":
        capture.rewrite(cleaned)
    gains = clean(cleaned, {name: PASSES[name]} if name in PASSES else PASSES)
    print(f"{name}: {gains}")
    assert gains.before - sum(gains.passes.values()) == gains.after == len(cleaned.graph.node)
    assert gains.after <= gains.before
    onnx.checker.check_model(cleaned, full_check=True)
    for x, want in zip(feeds, wanted, strict=True):
        got = run(cleaned, x)
        for output, y in want.items():
            assert np.isfinite(y).all() and y.shape == got[output].shape, output
            assert np.linalg.norm(got[output] - y) <= 1e-7 * np.linalg.norm(y) + 1e-15, output


def test_a_second_time_changes_nothing(naive):
    model = without_traces(naive[0])
    clean(model)
    again = without_traces(model)
    gains = clean(again)
    assert gains.before == gains.after
    assert [n.op_type for n in again.graph.node] == [n.op_type for n in model.graph.node]


def test_optimised_it_moves_no_more(naive, tmp_path):
    """ONNX Runtime fuses Transposes into products, too: what cleaning makes of them must not be in its way."""
    cleaned = without_traces(naive[0])
    clean(cleaned)
    before, after = (optimised(model, tmp_path / "model.onnx") for model in (without_traces(naive[0]), cleaned))
    moving = lambda kinds: sum(n for kind, n in kinds.items() if kind in ("Transpose", "Expand", "Tile"))
    print(f"{moving(before)} -> {moving(after)} nodes that move elements only")
    assert moving(after) <= moving(before)


def optimised(model: onnx.ModelProto, path) -> Counter:
    """Nodes by operator as ONNX Runtime would run them."""
    model.ir_version = IR_VERSION
    options = onnxruntime.SessionOptions()
    options.graph_optimization_level = onnxruntime.GraphOptimizationLevel.ORT_ENABLE_EXTENDED
    options.optimized_model_filepath, options.log_severity_level = str(path), 3
    onnxruntime.InferenceSession(model.SerializeToString(), options, providers=["CPUExecutionProvider"])
    return Counter(node.op_type for node in onnx.load(path).graph.node)


@pytest.mark.parametrize("naive", ["nano", "tiny in miniature"], indirect=True)
def test_at_most_85_percent_of_the_nodes_stay(naive):
    """Of tiny itself bench_clean.py asserts it, which takes minutes: this one has its parts, and fewer of each."""
    gains = clean(without_traces(naive[0]))
    print(f"{gains}, {gains.after / gains.before:.1%}")
    assert gains.after <= 0.85 * gains.before


# Sizes that the parser's text cannot have.
COMPUTED = {"TB": "T*B", "HB": "2*B", "S": "T - 1"}


@pytest.mark.parametrize(("name", "body", "want"), [
    ("views", """(float[B,T,4] x) => (float[B,T,2,2] y) <int64[2] flat = {-1, 4}, int64[2] two = {2, 2}, int64[2] s, int64[4] t, float[TB,4] a>
        { a = Reshape (x, flat)  s = Shape <start=0, end=2> (x)  t = Concat <axis=0> (s, two)  y = Reshape (a, t) }""", {"Reshape": 1}),
    # The inner view is needed, and to go round it would take arithmetic on shapes.
    ("views", """(float[N,4] x, float[B,T] z) => (float[B,T,2,2] y, float[B,T,4] a) <int64[3] s, int64[4] t>
        { s = Constant <value = int64[3] {2, 3, 4}> ()  t = Constant <value = int64[4] {2, 3, 2, 2}> ()  a = Reshape (x, s)  y = Reshape (a, t) }""",
     {"Reshape": 2, "Constant": 2}),
    ("views", "(float[B,1,4] x) => (float[1,B,4] y) { y0 = Transpose <perm=[1, 0, 2]> (x)  y = Neg (y0) }", {"Transpose": 1, "Neg": 1}),
    ("transposes", """(float[A,B,C] x) => (float[A,B,C] y) <float[B,C,A] a, float[A,B,C] b>
        { a = Transpose <perm=[1, 2, 0]> (x)  b = Transpose <perm=[2, 0, 1]> (a)  y = Neg (b) }""", {"Neg": 1}),
    ("transposes", """(float[A,B,C] x) => (float[B,A,C] y) <float[B,C,A] a>
        { a = Transpose <perm=[1, 2, 0]> (x)  y = Transpose <perm=[0, 2, 1]> (a) }""", {"Transpose": 1}),
    ("transposes", """(float[A,B,C] x) => (float[B,A,C] y, float[B,C,A] z) <float[B,C,A] a>
        { a = Transpose <perm=[1, 2, 0]> (x)  y = Transpose <perm=[0, 2, 1]> (a)  z = Neg (a) }""", {"Transpose": 2, "Neg": 1}),
    ("gemm", """(float[N,4] x, float[3,4] w, float[3] b) => (float[N,3] y) <float[4,3] a>
        { a = Transpose <perm=[1, 0]> (w)  y = Gemm <alpha=2.0> (x, a, b) }""", {"Gemm": 1}),
    ("gemm", """(float[B,2,4] x, float[B,3,4] w) => (float[B,2,3] y) <float[B,4,3] a>
        { a = Transpose <perm=[0, 2, 1]> (w)  y = MatMul (x, a) }""", {"Transpose": 1, "MatMul": 1}),
    ("batched", """(float[B,2,T,4] x, float[B,2,4,T] w) => (float[B,2,T,T] y)
        <int64[3] p = {-1, 5, 4}, int64[3] q = {-1, 4, 5}, int64[4] r = {-1, 2, 5, 5}, float[HB,T,4] a, float[HB,4,T] b, float[HB,T,T] c>
        { a = Reshape (x, p)  b = Reshape (w, q)  c = MatMul (a, b)  y = Reshape (c, r) }""", {"MatMul": 1}),
    # ONNX Runtime would make one Transpose of the two, where it fuses the inner one into the product.
    ("batched", """(float[B,T,2,4] x, float[B,2,T,4] w) => (float[B,2,T,T] y) <int64[3] p = {-1, 5, 4}, int64[4] r = {-1, 2, 5, 5},
        float[B,2,T,4] h, float[HB,T,4] a, float[HB,T,4] b, float[HB,4,T] t, float[HB,T,T] c>
        { h = Transpose <perm=[0, 2, 1, 3]> (x)  a = Reshape (h, p)  b = Reshape (w, p)  t = Transpose <perm=[0, 2, 1]> (a)  c = MatMul (b, t)  y = Reshape (c, r) }""",
     {"Transpose": 2, "Reshape": 3, "MatMul": 1}),
    # Without heads of its own, an operand would have to be broadcast.
    ("batched", """(float[B,2,T,4] x, float[HB,4,T] w) => (float[B,2,T,T] y)
        <int64[3] p = {-1, 5, 4}, int64[4] r = {-1, 2, 5, 5}, float[HB,T,4] a, float[HB,T,T] c>
        { a = Reshape (x, p)  c = MatMul (a, w)  y = Reshape (c, r) }""", {"MatMul": 1, "Reshape": 2}),
    ("sink_reshapes", """(float[TB,4] x, float s) => (float[TB,4] y) <int64[3] p = {-1, 5, 4}, int64[2] q = {-1, 4}, float[B,T,4] a, float[B,T,4] b>
        { a = Reshape (x, p)  b = Mul (a, s)  y = Reshape (b, q) }""", {"Mul": 1, "Reshape": 2}),
    ("expansions", """(float[B,T] x, float[B,1] z) => (float[B,T] y) <int64[2] s, float[B,T] a>
        { s = Shape (x)  a = Expand (z, s)  y = Add (a, x) }""", {"Add": 1}),
    # The other operand does not bring the size back.
    ("expansions", """(float[B,T] x, float[B,1] z, float[B,1] w) => (float[B,T] y) <int64[2] s, float[B,T] a>
        { s = Shape (x)  a = Expand (z, s)  y = Add (a, w) }""", {"Shape": 1, "Expand": 1, "Add": 1}),
    ("factors", """(float[B] x) => (float[B] y) <float two = {2}, float ten = {10}, float[B] a, float[B] b>
        { a = Mul (two, x)  b = Div (a, ten)  y = Neg (b) }""", {"Mul": 1}),
    ("factors", """(int32[B] x) => (int32[B] y) <int32 two = {2}, int32 three = {3}, int32[B] a>
        { a = Mul (two, x)  y = Div (a, three) }""", {"Mul": 1, "Div": 1}),
    ("reductions", """(float[B,T,4] x) => (float[4] y) <int64[2] axes = {0, 1}, int64[1] four = {4}, float[1,1,4] a>
        { a = ReduceSum (x, axes)  y = Reshape (a, four) }""", {"ReduceSum": 1}),
    ("reductions", """(float[B,T,4] x) => (float[2,2] y) <int64[2] axes = {0, 1}, int64[2] two = {2, 2}, float[1,1,4] a>
        { a = ReduceSum (x, axes)  y = Reshape (a, two) }""", {"ReduceSum": 1, "Reshape": 1}),
    ("sizes", """(float[B,T,4] x) => (float[B,T,2,2] y) <int64[2] s, int64[2] two = {2, 2}, int64[4] t>
        { s = Shape <start=0, end=2> (x)  t = Concat <axis=0> (s, two)  y = Reshape (x, t) }""", {"Reshape": 1}),
    # T - 1 may be 0, and next to a size of 0 Reshape cannot compute that of -1.
    ("sizes", """(float[B,S,8] x, float[Z] z) => (float[Z,S,8] y) <int64[1] s, int64[2] r, int64[3] t>
        { s = Shape (z)  r = Shape <start=1> (x)  t = Concat <axis=0> (s, r)  y = Reshape (x, t) }""", {"Shape": 2, "Concat": 1, "Reshape": 1}),
    ("expressions", """(float[B] x) => (float[B] y) <float[B] a, float[B] b>
        { a = Neg (x)  b = Neg (x)  y = Mul (a, b) }""", {"Neg": 1, "Mul": 1}),
])
def test_pass_on_a_small_graph(name, body, want):
    model = onnx.parser.parse_model(f'<ir_version: {IR_VERSION}, opset_import: ["" : {OPSET}]>\ngraph {body}')
    for value in [*model.graph.input, *model.graph.output, *model.graph.value_info]:
        for dim in value.type.tensor_type.shape.dim:
            if dim.dim_param in COMPUTED:
                dim.dim_param = COMPUTED[dim.dim_param]
    clean(model, {name: PASSES[name]})
    kinds = [node.op_type for node in model.graph.node]
    assert {kind: kinds.count(kind) for kind in kinds} == want


@pytest.mark.parametrize(("source", "want"), [(["B", "T"], [0, 0, -1]), (["B", 4], [0, -1, 4]), (None, None), (["N", 4], None)], ids=str)
def test_a_reshape_copies_only_known_dimensions(source, want):
    """A bf16 graph has casts whose shapes are unknown."""
    symbols = lambda dims: [sympy.Symbol(d, positive=True) if isinstance(d, str) else sympy.Integer(d) for d in dims]
    shape = ["B", "T", "N"] if want and want[-1] == -1 else ["B", "T", 4]
    assert sizes.reshape_constant(source and symbols(source), symbols(shape)) == want
