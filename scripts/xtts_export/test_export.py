"""The exported graphs against the modules they come from, and the promises of docs/bundle.md."""

import hashlib
import json
from functools import cache

import numpy as np
import onnx
import pytest
import torch
from safetensors.numpy import load_file

from . import builtin, multispeaker, presets, session, tokenizer
from .baseline.learn import conditioning
from .dropout import dropout
from .inputs import Input
from .joint import export
from .module import Step

BUNDLES = [pytest.param(build(), folder, id=folder.name) for folder, build in builtin.FOLDERS.items()]
SIZES = {"T_text": 21, "T_mel": 40, "T_ref_mel": 18}

# The groups of parameters that have a gradient of like size.
GROUPS = {
    "myxtts-nano": {"text_encoder", "speaker_encoder", "decoder", "mel_head", "stop_head", "pitch_head", "energy_head"},
    "myxtts-pico": {"text_encoder", "speaker_encoder", "decoder", "mel_head", "stop_head"},
    "myxtts-multispeaker": {"characters", "speakers", "languages", "text", "text_norm", "duration", "frames", "frame_norm", "mel_head"},
}


@cache
def load(path):
    return session.load(path)


def batch(bundle, lengths: list[tuple[int, int, int]], sizes: dict = SIZES, seed: int = 0) -> dict[str, torch.Tensor]:
    """Random rows of these text, mel and reference lengths; the elements after a length are as random as those before it.

    A bundle without a reference leaves the third length out.
    """
    random = torch.Generator().manual_seed(seed)
    columns = dict(zip(("T_text", "T_mel", "T_ref_mel"), zip(*lengths, strict=True), strict=True))
    of = {i.lengths: i.shape[1] for i in bundle.inputs if i.lengths}
    tensors = {}
    for i in bundle.inputs:
        shape = [{**sizes, "B": len(lengths)}.get(d, d) for d in i.shape]
        if symbol := of.get(i.name):
            tensors[i.name] = torch.tensor(columns[symbol], dtype=torch.int32)
        elif i.dtype == "f32":
            tensors[i.name] = torch.randn(shape, generator=random)
        else:
            tensors[i.name] = torch.randint(0, i.table, shape, generator=random, dtype=torch.int32)
    return tensors


def graph(bundle, folder, tensors, seed=-1, file="training_model.onnx") -> dict[str, np.ndarray]:
    feed = {name: p.detach().numpy() for name, p in bundle.module.named_parameters()}
    return session.run(load(folder / file), {**feed, **session.batch_feed(bundle.inputs, tensors.values(), seed)})


FULL = [(21, 40, 18), (9, 33, 7), (14, 5, 18)]
WITH_EMPTY = [(8, 30, 11), (0, 0, 0), (21, 40, 18), (1, 1, 1)]
EMPTY = 1


@pytest.mark.parametrize(("bundle", "folder"), BUNDLES)
@pytest.mark.parametrize(("lengths", "sizes", "seed"), [
    pytest.param(FULL, SIZES, -1, id="full"),
    pytest.param(FULL, SIZES, 2**62 + 12345, id="dropout"),
    pytest.param(WITH_EMPTY, SIZES, 7, id="empty row"),
    pytest.param([(21, 40, 18)], SIZES, -1, id="one row"),
    pytest.param([(48, 170, 130), (31, 99, 64)], {"T_text": 48, "T_mel": 173, "T_ref_mel": 130}, 1, id="long"),
    pytest.param([(1, 1, 1), (1, 1, 1)], {"T_text": 1, "T_mel": 1, "T_ref_mel": 1}, -1, id="one frame"),
])
def test_gradients_are_autograds(bundle, folder, lengths, sizes, seed):
    tensors = batch(bundle, lengths, sizes)
    out = graph(bundle, folder, tensors, seed)
    module = Step(bundle)
    module.zero_grad()
    scalars = module(*tensors.values(), torch.tensor(seed))
    scalars["loss"].backward()
    for name, want in scalars.items():
        assert out[name].shape == () and out[name] == pytest.approx(want.item(), rel=1e-5), name
    gradients = {name: p.grad.numpy() for name, p in module.named_parameters()}
    # A lone text frame makes the attention's softmax flat, so that rounding is all that some gradients hold.
    floor = 1e-6 * max(np.linalg.norm(g) for g in gradients.values())
    for name, want in gradients.items():
        assert np.linalg.norm(out["grad." + name] - want) <= 2e-5 * np.linalg.norm(want) + floor, name


@pytest.mark.parametrize(("bundle", "folder"), BUNDLES)
def test_every_parameter_learns(bundle, folder):
    out = graph(bundle, folder, batch(bundle, FULL))
    groups = {}
    for name, gradient in out.items():
        if name.startswith("grad."):
            assert np.any(gradient), name
            groups.setdefault(name.split(".")[1], []).append(gradient.ravel())
    size = {name: np.sqrt(np.mean(np.concatenate(g) ** 2)) for name, g in groups.items()}
    assert set(size) == GROUPS[bundle.name]
    assert min(size.values()) >= 1e-3 * max(size.values()), size


@pytest.mark.parametrize(("bundle", "folder", "condition"), [
    pytest.param(bundle, folder, condition, id=f"{bundle.name} {condition}")
    for bundle, folder in (p.values for p in BUNDLES)
    for condition in sorted(conditioning(bundle)) if not condition.endswith("_lengths")
])
def test_conditions_matter(bundle, folder, condition):
    tensors = batch(bundle, [(21, 40, 18)] * 2)
    swapped = {name: x.flip(0) if name == condition else x for name, x in tensors.items()}
    assert graph(bundle, folder, tensors)["loss"] != graph(bundle, folder, swapped)["loss"]


def test_ids_beyond_the_table_take_its_ends():
    bundle, folder = multispeaker.build(), builtin.REPOSITORY / "ortgraphs/builtin/myxtts-multispeaker"
    loss = lambda ids: graph(bundle, folder, {**batch(bundle, FULL), "speaker_ids": torch.tensor(ids, dtype=torch.int32)})["loss"]
    last = multispeaker.SIZES.speakers - 1
    assert loss([-1, last + 1, 3]) == loss([-(2**31), 2**31 - 1, 3]) == loss([0, last, 3])
    assert loss([0, last, 3]) != loss([0, last - 1, 3])


@pytest.mark.parametrize(("bundle", "folder"), BUNDLES)
def test_all_rows_empty(bundle, folder):
    out = graph(bundle, folder, batch(bundle, [(0, 0, 0)] * 3), seed=5)
    for name, x in out.items():
        assert not np.any(x), name


@pytest.mark.parametrize("file", ["training_model.onnx", "eval_model.onnx"])
@pytest.mark.parametrize(("bundle", "folder"), BUNDLES)
@pytest.mark.parametrize(("float_garbage", "int_garbage"), [(1e30, 2**31 - 1), (float("nan"), -(2**31)), (float("inf"), 64)])
def test_garbage_after_lengths_changes_no_bit(bundle, folder, file, float_garbage, int_garbage):
    clean = batch(bundle, WITH_EMPTY)
    dirty = {name: x.clone() for name, x in clean.items()}
    lengths = {i.name: i.lengths for i in bundle.inputs}
    for name, x in dirty.items():
        garbage = float_garbage if x.is_floating_point() else int_garbage
        if lengths[name]:
            for row, length in enumerate(clean[lengths[name]]):
                x[row, length:] = garbage
        elif name not in lengths.values():
            x[EMPTY] = garbage
    want, got = (graph(bundle, folder, tensors, 3, file) for tensors in (clean, dirty))
    for name in want:
        assert want[name].tobytes() == got[name].tobytes(), name


@pytest.mark.parametrize(("bundle", "folder"), BUNDLES)
def test_dropout_is_the_seeds(bundle, folder):
    tensors = batch(bundle, FULL)
    loss = lambda seed: graph(bundle, folder, tensors, seed)["loss"].item()
    assert loss(7) == loss(7)
    # Neighbours, and seeds that agree in their low or in their high half.
    assert len({loss(s) for s in (0, 1, 7, 7 + 2**32, 2**63 - 1, -1)}) == 6
    assert loss(-1) == loss(-2) == loss(-(2**63))
    assert loss(-1) == graph(bundle, folder, tensors, file="eval_model.onnx")["loss"].item()


def test_dropout_looks_random():
    x, rate = torch.ones(8, 400, 256), 0.2
    first = dropout(x, rate, torch.tensor(11), site=0)
    kept = first.ne(0).float().view(-1, 256)
    assert kept.mean() == pytest.approx(1 - rate, abs=2e-3)
    assert first.max().item() == pytest.approx(1 / (1 - rate))
    spread = (rate * (1 - rate)) ** 0.5
    assert kept.mean(1).std().item() == pytest.approx(spread / 256**0.5, rel=0.1)
    assert kept.mean(0).std().item() == pytest.approx(spread / 3200**0.5, rel=0.3)
    others = {
        "next row": kept.roll(1, 0), "next column": kept.roll(1, 1),
        "next seed": dropout(x, rate, torch.tensor(12), site=0).ne(0).float().view(-1, 256),
        "next site": dropout(x, rate, torch.tensor(11), site=1).ne(0).float().view(-1, 256),
    }
    for what, other in others.items():
        assert abs(torch.corrcoef(torch.stack([kept.flatten(), other.flatten()]))[0, 1].item()) < 5e-3, what


@pytest.mark.parametrize(("bundle", "folder"), BUNDLES)
def test_bundle_describes_its_graphs(bundle, folder):
    document = json.loads((folder / "bundle.json").read_text())
    for name, digest in document["files"].items():
        assert hashlib.sha256((folder / name).read_bytes()).hexdigest() == digest, name
    assert {p.name for p in folder.iterdir()} == {"bundle.json", *document["files"]}

    declared = {i["name"]: i["shape"] for i in document["inputs"]} | {p["name"]: p["shape"] for p in document["parameters"]}
    model = onnx.load(folder / "training_model.onnx")
    shape = lambda v: [d.dim_param or d.dim_value for d in v.type.tensor_type.shape.dim]
    assert {i.name: shape(i) for i in model.graph.input} == {**declared, "seed": []}
    assert {o.name: shape(o) for o in model.graph.output} == (
        {o["name"]: [] for o in document["outputs"]} | {"grad." + p["name"]: p["shape"] for p in document["parameters"]})
    decays = [p["decay"] for p in document["parameters"]]
    assert decays == sorted(decays, reverse=True)
    weights = load_file(folder / "params.safetensors")
    assert {name: list(x.shape) for name, x in weights.items()} == {p["name"]: p["shape"] for p in document["parameters"]}
    assert sum(x.size for x in weights.values()) <= {"myxtts-nano": 450_000, "myxtts-multispeaker": 75_000, "pico": 15_000}[folder.name]

    evaluation = onnx.load(folder / "eval_model.onnx")
    assert {i.name: shape(i) for i in evaluation.graph.input} == declared
    for m in (model, evaluation):
        assert m.ir_version <= 10 and [(o.domain, o.version) for o in m.opset_import if o.domain == ""] == [("", 20)]
        assert not any("Random" in n.op_type or n.op_type in ("Dropout", "Bernoulli") or "Scatter" in n.op_type for n in m.graph.node)


def test_vocabulary_fits_the_embedding():
    ids = tokenizer.encode("The “quick” fox,  it's 5 — naïve [PAD]?")
    assert max(ids) < len(tokenizer.VOCABULARY) == presets.NANO.vocab == multispeaker.SIZES.vocab
    assert tokenizer.encode("Ab c") == [tokenizer.VOCABULARY.index(c) for c in ("a", "b", tokenizer.SPACE, "c")]
    assert tokenizer.VOCABULARY[:2] == ["[PAD]", "[UNK]"] and len(set(tokenizer.VOCABULARY)) == 512
    assert tokenizer.VOCABULARY[:presets.PICO.vocab] == tokenizer.ENGLISH


def test_no_letter_is_lost():
    tokens = lambda text: [tokenizer.VOCABULARY[i] for i in tokenizer.encode(text)]
    assert tokens("می\u200cروم") == list("می\u200cروم")
    assert tokens("日") == ["<0xE6>", "<0x97>", "<0xA5>"]


class Sliced(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.weight = torch.nn.Parameter(torch.arange(1.0, 5.0))

    def forward(self, x):
        y = x * self.weight
        return ((y[:, 1:] * y[:, :-1]).sum() + (y[:, -2:].square() * y[:, :2]).sum() + (y[..., 1:3] * y[..., -2:]).sum(),)


def test_slices_have_gradients_without_a_scatter(tmp_path):
    path = tmp_path / "x.onnx"
    module = Sliced()
    export(module, [Input("x", "f32", ("B", "T", 4))], [torch.zeros(3, 5, 4)], ("loss",), path)
    assert not any("Scatter" in n.op_type for n in onnx.load(path).graph.node)
    x = torch.randn(2, 7, 4, generator=torch.Generator().manual_seed(0))
    [loss] = module(x)
    loss.backward()
    out = session.run(session.load(path), {"x": x.numpy(), "weight": module.weight.detach().numpy()})
    np.testing.assert_allclose(out["loss"], loss.item(), rtol=1e-5)
    np.testing.assert_allclose(out["grad.weight"], module.weight.grad.numpy(), rtol=1e-5)


class Frozen(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.weight = torch.nn.Parameter(torch.ones(1))

    def forward(self, x):
        return ((x.reshape(3, -1) * self.weight).sum(),)


def test_export_refuses(tmp_path):
    with pytest.raises(ValueError, match="baked in"):
        export(Frozen(), [Input("x", "f32", ("B", "T", 4))], [torch.zeros(3, 5, 4)], ("loss",), tmp_path / "x.onnx")
