"""bf16: what the policy casts, what a graph takes and gives in bf16, and how far it is from PyTorch. test_module exports the examples with it."""

import contextlib
import types
from pathlib import Path

import numpy as np
import onnx
import onnxruntime as ort
import pytest
import torch
import torch.nn.functional as F
from onnx import TensorProto, helper
from torch import nn

from . import bf16, convolutions, dropout, examples, lowering, mixed, precision, presets, session, writer
from .bundle import BF16
from .command import main
from .inputs import Input, batch, sequence
from .joint import export
from .module import Export, Step, steps
from .refusal import Refusal

LOW = torch.bfloat16
former_weight_norm = nn.utils.weight_norm


class Uses(nn.Module):
    """Every way to use a matrix: in products (of attention, a convolution, two linear layers, one of them in part), looked up, both."""

    def __init__(self):
        super().__init__()
        self.table, self.tied = nn.Embedding(9, 8), nn.Linear(8, 7, bias=False)
        self.conv, self.depthwise = nn.Conv1d(8, 8, 3, padding=1), nn.Conv1d(8, 8, 3, padding=1, groups=8)
        self.attention, self.norm = nn.MultiheadAttention(8, 2, batch_first=True), nn.LayerNorm(8)
        self.up, self.down = nn.Linear(8, 16), nn.Linear(16, 8)

    def forward(self, ids, x):
        with lowering.seeded(None):
            y = F.embedding(ids, self.tied.weight) + self.table(ids) + x
            y = y + self.depthwise(self.conv(y.transpose(1, 2))).transpose(1, 2)
            normal = self.norm(y)
            y = y + self.attention(normal, normal, normal, need_weights=False)[0]
            y = y + self.down(F.relu(self.up(y))) + F.linear(y, self.down.weight[:, :8].t())
            return (F.cross_entropy(self.tied(y).transpose(1, 2), ids.long()),)


def test_refuses_a_module_without_matrices(tmp_path):
    class Vector(nn.Module):
        def __init__(self):
            super().__init__()
            self.scale = nn.Parameter(torch.ones(4))

        def forward(self, x):
            return ((x * self.scale).square().sum(),)

    with pytest.raises(Refusal, match="no matrix product is in the module"):
        export(Vector(), [Input("x", "f32", ("B", "T", 4))], [torch.zeros(3, 5, 4)], ("loss",), tmp_path / "x.onnx", compute="bf16")


MATRICES = {"conv.weight", "attention.in_proj_weight", "attention.out_proj.weight", "up.weight", "down.weight"}


@pytest.fixture(scope="module")
def uses(tmp_path_factory):
    """The module and its bf16 graph."""
    torch.manual_seed(0)
    module, path = Uses(), tmp_path_factory.mktemp("uses") / "x.onnx"
    export(module, [Input("ids", "i32", ("B", "T")), Input("x", "f32", ("B", "T", 8))], [torch.zeros(3, 5, dtype=torch.int32), torch.zeros(3, 5, 8)],
           ("loss",), path, compute="bf16")
    return module, onnx.load(path)


def test_matrices_of_products_are_bf16(uses):
    module, model = uses
    types = lambda values: {v.name: v.type.tensor_type.elem_type for v in values}
    want = {name: TensorProto.BFLOAT16 if name in MATRICES else TensorProto.FLOAT for name, _ in module.named_parameters()}
    assert types(model.graph.input) == {**want, "ids": TensorProto.INT32, "x": TensorProto.FLOAT}
    assert types(model.graph.output) == {"loss": TensorProto.FLOAT, **{"grad." + name: t for name, t in want.items()}}


def test_products_are_bf16_and_the_rest_is_not(uses):
    """relu's gradient compares, which CUDA does not in bf16; the product of a look-up's gradient keeps the f32 of its table."""
    types = bf16._types(uses[1])
    nodes = {}
    for node in uses[1].graph.node:
        nodes.setdefault(node.op_type, []).append(types[node.input[0]])
    low = [t == TensorProto.BFLOAT16 for t in [*nodes["MatMul"], *nodes.get("Gemm", [])]]
    assert low.count(False) == 2
    for op in ("Softmax", "LogSoftmax", "LayerNormalization", "LessOrEqual", "Exp", "Pad"):
        assert TensorProto.BFLOAT16 not in nodes.get(op, []), op


@pytest.mark.parametrize("sizes", [(2, 5), (4, 17)])
def test_graph_is_pytorchs_with_the_policy(uses, sizes):
    module, model = uses
    random = torch.Generator().manual_seed(1)
    tensors = {"ids": torch.randint(0, 7, sizes, dtype=torch.int32, generator=random), "x": torch.randn(*sizes, 8, generator=random)}
    feed = {name: p.detach() for name, p in module.named_parameters()} | tensors
    graph = ort.InferenceSession(bf16.emulated(model).SerializeToString(), providers=["CPUExecutionProvider"])
    got = session.run(graph, {name: x.numpy() for name, x in feed.items()})
    for compute, loss_limit, each, together in (("bf16", 1e-5, 5e-3, 5e-3), ("f32", 5e-3, 2e-1, 5e-2)):
        with lowering.functions(), precision.applied(module, compute):
            [loss] = module(*tensors.values())
        assert got["loss"] == pytest.approx(loss.item(), rel=loss_limit)
        errors, norms = [], []
        for (name, _), want in zip(module.named_parameters(), torch.autograd.grad(loss, list(module.parameters())), strict=True):
            errors.append(np.linalg.norm(got["grad." + name] - want.numpy()))
            norms.append(np.linalg.norm(want.numpy()))
            assert errors[-1] < each * norms[-1], name
        assert np.linalg.norm(errors) < together * np.linalg.norm(norms)
    # What leaves the graph in bf16 has bf16's digits.
    for name in MATRICES:
        x = torch.from_numpy(got["grad." + name])
        assert torch.equal(x, x.to(LOW).float()), name


def test_pico(tmp_path):
    exported = presets.pico()
    step = Step(exported)
    sizes = {"B": 3, "T_text": 5, "T_mel": 7, "T_ref_mel": 9}
    example = [torch.zeros_like(x) for x in batch(exported.inputs, sizes, np.random.default_rng(0)).values()]
    step.outputs = tuple(step.named(*example, torch.tensor(-1)))
    export(step, [*exported.inputs, Input("seed", "i64", ())], [*example, torch.tensor(-1)], step.outputs, tmp_path / BF16, compute="bf16")
    same, f32 = mixed.check(exported, step, sizes, tmp_path / BF16)
    assert same.loss < 1e-3 and same.gradients < 1e-2
    assert f32.loss < 1e-2 and f32.gradients < 5e-2
    tensors = batch(exported.inputs, sizes, np.random.default_rng(1), 1)
    assert same.gradients < mixed.rounding(step, tensors) < 5e-2
    low = {i.name for i in onnx.load(tmp_path / BF16).graph.input if i.type.tensor_type.elem_type == TensorProto.BFLOAT16}
    assert low == {name for name, p in step.named_parameters() if p.dim() == 2}


class Calls(nn.Module):
    def __init__(self, call):
        super().__init__()
        self.call = call

    def forward(self, x, weight):
        self.result = self.call(x, weight)
        return (self.result.sum(),)


@pytest.mark.parametrize(("call", "dtype"), [
    (F.linear, LOW), (torch.matmul, LOW), (lambda x, w: x @ w, LOW), (lambda x, w: torch.einsum("ij,jk->ik", x, w), LOW),
    (lambda x, w: F.gelu(x @ w), LOW), (lambda x, w: (x @ w) * (x @ w), LOW), (lambda x, w: F.dropout(x @ w, 0.5, False), LOW),
    (lambda x, w: convolutions.conv1d(x[None], w[:, :, None]), LOW), (lambda x, w: convolutions.conv1d(x[None], w[:, :1, None], groups=8), torch.float32),
    (lambda x, w: F.softmax(x @ w, -1), torch.float32), (lambda x, w: (x @ w).sum(), torch.float32), (lambda x, w: F.layer_norm(x @ w, [8]), torch.float32),
    (lambda x, w: (x @ w).exp(), torch.float32), (lambda x, w: F.mse_loss(x @ w, x), torch.float32), (lambda x, w: x @ w + x, torch.float32),
    (lambda x, w: F.cross_entropy(x @ w, torch.zeros(8).long()), torch.float32), (lambda x, w: x * w, torch.float32), (F.embedding, torch.float32),
    # Residual sums, but not biases, positions, one number for each place, and sums with fewer axes.
    (lambda x, w: x[None] + x[None] @ w, LOW), (lambda x, w: torch.add(x[None] @ w, x[None], alpha=0.5), LOW), (lambda x, w: x[None] @ w + w[0], torch.float32),
    (lambda x, w: torch.stack([x, x]) @ w + x[None], torch.float32), (lambda x, w: x[None] + x[None], torch.float32), (lambda x, w: x[None] - x[None] @ w, torch.float32),
    (lambda x, w: torch.add(input=x[None], other=x[None] @ w), LOW), (lambda x, w: torch.add(x[None], x[None] @ w, out=torch.empty(1, 8, 8)), torch.float32),
    (lambda x, w: x[None, :, :1] + x[None] @ w[:, :1], torch.float32), (lambda x, w: torch.add(x[None], 2, x[None] @ w), torch.float32),
])
def test_policy(call, dtype):
    module = Calls(call)
    x, weight = torch.randn(8, 8), torch.randn(8, 8)
    if call is F.embedding:
        x = torch.arange(8)
    with precision.applied(module, "bf16"):
        [loss] = module(x, weight)
    assert module.result.dtype == dtype and loss.dtype == torch.float32
    with precision.applied(module, "f32"):
        module(x, weight)
    assert module.result.dtype == torch.float32


FLOATS = {  # calls of functions that want one type, and how many floats they get
    "cross": (lambda x, y: torch.cross(x, y, dim=0), 2), "heaviside": (torch.heaviside, 2), "linalg_cross": (torch.linalg.cross, 2),
    "meshgrid": (lambda *x: torch.stack(torch.meshgrid(*(y[0] for y in x), indexing="ij")), 2),
    "inner": (torch.inner, 2), "multi_dot": (lambda *x: torch.linalg.multi_dot(x), 3), "vecdot": (torch.linalg.vecdot, 2), "dot": (lambda x, y: torch.dot(x[0], y[0]), 2),
    "solve": (torch.linalg.solve, 2), "complex": (lambda x, y: torch.view_as_real(torch.complex(x, y)), 2), "prelu": (lambda x, w: F.prelu(x, w[0]), 2),
    "grid_sample": (lambda x, y: F.grid_sample(x.view(1, 1, 3, 3), y.reshape(-1)[:8].view(1, 2, 2, 2), align_corners=False), 2),
    "scatter": (lambda x, y: x.scatter(0, torch.zeros(1, 3, dtype=torch.int64), y), 2), "scatter_add": (lambda x, y: x.scatter_add(0, torch.zeros(1, 3, dtype=torch.int64), y), 2),
    "index_add": (lambda x, y: x.index_add(0, torch.arange(3), y), 2), "index_copy": (lambda x, y: x.index_copy(0, torch.arange(3), y), 2),
    "index_put": (lambda x, y: x.index_put((torch.arange(3),), y), 2), "masked_scatter": (lambda x, y: x.masked_scatter(x > 0, y), 2),
    "index_add_": (lambda x, y: (x + 0).index_add_(0, torch.arange(3), y), 2), "isclose": (torch.isclose, 2),
}


@pytest.mark.parametrize("name", FLOATS)
def test_functions_that_want_one_type_get_it(name):
    """PyTorch refuses two types, with the policy there is none that it would refuse. The result is near that of f32."""
    call, count = FLOATS[name]
    numbers = torch.rand(count, 3, 3, generator=torch.Generator().manual_seed(0)).to(LOW).float().unbind()
    want = call(*numbers)
    for lone in range(count):
        for kinds in ((LOW, torch.float32), (torch.float32, LOW)):
            given = [x.to(kinds[i != lone]) for i, x in enumerate(numbers)]
            with pytest.raises((RuntimeError, NotImplementedError)):
                call(*given)
            module = Calls(lambda *_, given=given: call(*given))
            with precision.applied(module, "bf16"):
                module(None, None)
            if name in ("prelu", "index_add_"):
                assert module.result.dtype == given[0].dtype
            torch.testing.assert_close(module.result.to(want.dtype), want, atol=5e-2, rtol=5e-2)


@pytest.mark.parametrize("call", [lambda x: torch.linalg.vector_norm(x, dim=-1), lambda x: F.normalize(x, dim=-1), lambda x: torch.special.expm1(x), lambda x: torch.linalg.norm(x)])
def test_functions_of_linalg_and_special_have_the_policy(call):
    module = Calls(lambda x, w: call(x @ w))
    with precision.applied(module, "bf16"):
        module(torch.randn(8, 8), torch.randn(8, 8))
    assert module.result.dtype == torch.float32


class Computed(nn.Module):
    """Nothing but weights that the module computes: by a weight norm of either form, and by a spectral norm, which has state."""

    def __init__(self):
        super().__init__()
        self.enter = nn.utils.parametrizations.weight_norm(nn.Conv1d(80, 16, 3, padding=1))
        self.middle = nn.utils.parametrizations.spectral_norm(nn.Conv1d(16, 16, 3, padding=1))
        self.leave = former_weight_norm(nn.Linear(16, 80))

    def forward(self, mel_spectrograms):
        return self.leave(F.leaky_relu(self.middle(self.enter(mel_spectrograms.transpose(1, 2)))).transpose(1, 2))


def distance(y, batch):
    weight = (torch.arange(y.shape[1])[None] < batch["mel_lengths"][:, None]).float()
    return {"loss": ((y - batch["mel_spectrograms"]).abs().mean(-1) * weight).sum() / weight.sum().clamp(min=1), "loss_weight": weight.sum()}


def described(module: nn.Module) -> Export:
    return Export(name="x", module=module, loss=distance, inputs=sequence("mel_spectrograms", "f32", "T_mel", 80, lengths="mel_lengths", origin="stage"),
                  buckets=[{"T_wav": 256 * 180, "T_mel": 181}], features=examples.FEATURES, pipeline=[examples.LOGMEL])


def test_computed_weights_are_cast(tmp_path):
    torch.manual_seed(0)
    writer.write(described(Computed()), tmp_path / "bundle", ("f32", "bf16"))
    model = onnx.load(tmp_path / "bundle" / BF16)
    assert TensorProto.BFLOAT16 not in {v.type.tensor_type.elem_type for v in [*model.graph.input, *model.graph.output]}
    types = bf16._types(model)
    low = [types[node.input[0]] == TensorProto.BFLOAT16 for node in model.graph.node if node.op_type in ("MatMul", "Gemm")]
    # Three products and their gradients, of which the first has none of its input; those of the spectral norm are f32.
    assert low.count(True) >= 8
    assert all('"compute"' not in line for line in (tmp_path / "bundle/bundle.json").read_text().splitlines())


@pytest.mark.parametrize("norm", [nn.utils.parametrizations.spectral_norm, nn.utils.spectral_norm])
def test_weights_are_computed_in_f32(norm):
    """What a spectral norm leaves is the same in both precisions."""
    left = []
    for compute in precision.NAMES:
        torch.manual_seed(0)
        module = norm(nn.Linear(8, 8))
        whole = Calls(lambda x, w, module=module: module(x))
        with precision.applied(whole, compute):
            whole(torch.ones(3, 8), None)
        left.append({name: x.clone() for name, x in module.named_buffers()})
    assert left[0] and all(torch.equal(left[0][name], left[1][name]) for name in left[0])


class Rectified(nn.Module):
    """PReLU behind a product, and behind f32, with one weight and with one for each channel."""

    def __init__(self):
        super().__init__()
        self.enter, self.one, self.each, self.leave = nn.Linear(80, 16), nn.PReLU(), nn.PReLU(16), nn.Linear(16, 80)

    def forward(self, mel_spectrograms):
        y = self.one(self.enter(self.one(mel_spectrograms)))
        return self.leave(self.each(y.transpose(1, 2)).transpose(1, 2))


def test_prelu_behind_a_product(tmp_path):
    torch.manual_seed(0)
    writer.write(described(Rectified()), tmp_path / "bundle", ("f32", "bf16"))


def test_dropout_keeps_the_mean_in_bf16():
    x = torch.ones(1, 4096, 64, dtype=LOW)
    y = dropout.dropout(x, 0.1, torch.tensor(3), 0)
    assert y.dtype == LOW
    # bf16's next numbers around 1/0.9 = 1.1111 are 1.1094 and 1.1172; their choice is rounding, not a scale rounded twice.
    assert {round(v, 4) for v in y.unique().tolist()} == {0.0, 1.1094}


def _bf16(op: str, inputs: list[str]) -> onnx.ModelProto:
    value = lambda name: helper.make_tensor_value_info(name, TensorProto.BFLOAT16, [8, 8])
    graph = helper.make_graph([helper.make_node(op, inputs, ["y"])], "g", [value(name) for name in inputs], [value("y")])
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 20)], ir_version=10)


def test_emulation_rounds_as_bf16_does():
    x, w = torch.randn(2, 8, 8, generator=torch.Generator().manual_seed(0))
    graph = ort.InferenceSession(bf16.emulated(_bf16("MatMul", ["x", "w"])).SerializeToString(), providers=["CPUExecutionProvider"])
    got = session.run(graph, {"x": x.numpy(), "w": w.numpy()})["y"]
    np.testing.assert_array_equal(got, (x.to(LOW) @ w.to(LOW)).float().numpy())


def test_nodes_without_a_kernel_are_widened():
    model = _bf16("Floor", ["x"])
    bf16.widen(model)
    assert [n.op_type for n in model.graph.node] == ["Cast", "Floor", "Cast"]
    onnx.checker.check_model(model, full_check=True)
    model = _bf16("MatMul", ["x", "w"])
    bf16.widen(model)
    assert [n.op_type for n in model.graph.node] == ["MatMul"]


@pytest.mark.parametrize(("gradients", "passes"), [(0.05, True), (0.19, True), (0.21, False)])
def test_gradients_may_differ_as_much_as_rounding_changes_them(gradients, passes, monkeypatch):
    step = types.SimpleNamespace()
    monkeypatch.setattr(mixed, "rounding", lambda *_: 0.1)
    monkeypatch.setattr(mixed, "load", lambda _: None)
    monkeypatch.setattr(mixed, "batch", lambda *_: {})
    monkeypatch.setattr(mixed, "run", lambda *_: {})
    monkeypatch.setattr(mixed, "distance", lambda *arguments: mixed.Distance(0.0, gradients if arguments[-1] == "bf16" else 0.1))
    monkeypatch.setattr(mixed.verify, "soiled", lambda *_: {})
    refused = contextlib.nullcontext() if passes else pytest.raises(Refusal, match="1e-02 and 2.0e-01 are allowed")
    with refused:
        mixed.check(types.SimpleNamespace(inputs=[]), step, {}, Path(BF16))


@pytest.mark.parametrize(("gradients", "autocast", "passes"), [(0.25, 0.0, True), (0.3, 0.28, True), (0.3, 0.19, False), (0.49, 0.45, True), (0.51, 0.9, False)])
def test_gradients_may_be_as_far_from_f32_as_autocasts(gradients, autocast, passes, monkeypatch):
    """Not beyond a half, however far those of autocast are."""
    monkeypatch.setattr(mixed, "of_autocast", lambda *_: autocast)
    monkeypatch.setattr(mixed, "load", lambda _: None)
    monkeypatch.setattr(mixed, "batch", lambda *_: {})
    monkeypatch.setattr(mixed, "run", lambda *_: {})
    monkeypatch.setattr(mixed, "distance", lambda *arguments: mixed.Distance(0.0, 0.0 if arguments[-1] == "bf16" else gradients, farthest="first.weight"))
    monkeypatch.setattr(mixed.verify, "soiled", lambda *_: {})
    with contextlib.nullcontext() if passes else pytest.raises(Refusal, match="in f32 by .* most of them in that of first.weight"):
        mixed.check(types.SimpleNamespace(inputs=[]), types.SimpleNamespace(), {}, Path(BF16))


def test_autocasts_distance_is_that_of_pytorch():
    exported = described(Rectified())
    [step] = steps(exported).values()
    tensors = batch(exported.inputs, {"B": 3, "T_mel": 9}, np.random.default_rng(0))
    step.outputs = tuple(step.named(*tensors.values(), torch.tensor(-1)))
    assert 1e-4 < mixed.of_autocast(step, tensors) < 0.1


@pytest.mark.parametrize("found", [mixed.Distance(0.02, 0.0), mixed.Distance(0.0, 0.1), mixed.Distance(float("nan"), 0.0)])
def test_refuses_what_is_too_far(found):
    with pytest.raises(Refusal, match=r"training_model.bf16.onnx differs from PyTorch in bf16 by .* 1e-02 and 5.0e-02 are allowed"):
        mixed._refuse(BF16, found, mixed.SAME, "bf16", "hint")


@pytest.mark.parametrize("text", ["bf16", "f32,f16", "f32,f32", ""])
def test_precision_is_f32_or_both(text, tmp_path, capsys):
    with pytest.raises(SystemExit) as caught:
        main(["myxtts", "--out", str(tmp_path), "--precision", text])
    assert caught.value.code == 2 and "is neither f32 nor f32,bf16" in capsys.readouterr().err


class Recurrent(nn.Module):
    """Layers whose one type PyTorch takes for all of their tensors."""

    def __init__(self):
        super().__init__()
        self.enter, self.lstm = nn.Linear(80, 16), nn.LSTM(16, 12, 2, batch_first=True, bidirectional=True)
        self.gru, self.leave = nn.GRU(24, 8, batch_first=True), nn.Linear(8, 80)

    def forward(self, mel_spectrograms):
        return self.leave(self.gru(self.lstm(self.enter(mel_spectrograms))[0])[0])


def test_recurrences_behind_a_product(tmp_path):
    torch.manual_seed(0)
    writer.write(described(Recurrent()), tmp_path / "bundle", ("f32", "bf16"))
