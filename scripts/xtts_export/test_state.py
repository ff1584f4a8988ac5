"""State from a module to the program and back: bin/xtts-host must be built."""

import dataclasses
import json
import re

import numpy as np
import onnx
import pytest
import torch
import torch.nn.functional as F
from safetensors.torch import load_file
from torch import Tensor, nn

from . import convert, examples, session, writer
from .baseline import loop, rerun
from .inputs import batch, clean, sequence
from .module import Export
from .refusal import Refusal
from .test_convert import FILES, host

STEPS = 20
CODES, WIDTH = 16, 24


class Autoencoder(nn.Module):
    """Frames through a codebook, with every kind of state."""

    def __init__(self):
        super().__init__()
        self.frame_in = nn.utils.spectral_norm(nn.Conv1d(80, WIDTH, 3, padding=1, bias=False))
        self.norm, self.last = nn.BatchNorm1d(WIDTH), nn.BatchNorm1d(WIDTH, momentum=None)
        self.mix = nn.utils.parametrizations.spectral_norm(nn.Linear(WIDTH, WIDTH, bias=False))
        self.frame_out = nn.Linear(WIDTH, 80)
        self.register_buffer("codes", torch.randn(CODES, WIDTH))
        self.register_buffer("counts", torch.ones(CODES))
        self.register_buffer("scale", torch.ones(()))
        self.register_buffer("table", torch.linspace(0.5, 1.5, WIDTH))

    def forward(self, mel_spectrograms, mel_lengths):
        x = self.norm(self.frame_in(mel_spectrograms.transpose(1, 2))).transpose(1, 2)
        valid = examples.valid(mel_lengths, x.shape[1])[..., None]
        chosen = F.one_hot((x.square().sum(-1, keepdim=True) - 2 * x @ self.codes.t() + self.codes.square().sum(-1)).argmin(-1), CODES).float()
        quantized = chosen @ self.codes
        if self.training:
            with torch.no_grad():
                used = (chosen * valid).reshape(-1, CODES)
                self.counts.mul_(0.95).add_(used.sum(0), alpha=0.05)
                self.scale = 0.9 * self.scale + 0.1 * ((x * valid).square().sum() / valid.sum().clamp(min=1)).sqrt()
                self.codes.data.mul_(0.95).add_(used.t() @ x.reshape(-1, WIDTH) / (self.counts[:, None] + 1), alpha=0.05)
        y = self.mix(x + 0.1 * (quantized - x).detach()) / self.scale * self.table
        return self.frame_out(self.last(torch.tanh(y).reshape(-1, WIDTH)).view(y.shape))


def spectrum_loss(mel: Tensor, batch: dict[str, Tensor]) -> dict[str, Tensor]:
    target = batch["mel_spectrograms"]
    weight = examples.valid(batch["mel_lengths"], target.shape[1])
    return {"loss": ((mel - target).abs().mean(-1) * weight).sum() / weight.sum().clamp(min=1), "loss_weight": weight.sum()}


def build() -> Export:
    torch.manual_seed(0)
    return Export(
        name="autoencoder", module=Autoencoder(), loss=spectrum_loss,
        inputs=sequence("mel_spectrograms", "f32", "T_mel", 80, lengths="mel_lengths", origin="stage"),
        buckets=[{"T_wav": 256 * hops, "T_mel": 1 + hops} for hops in (258, 440)], features=examples.FEATURES, pipeline=[examples.LOGMEL])


@pytest.fixture(scope="module")
def bundle(tmp_path_factory):
    folder = tmp_path_factory.mktemp("state") / "bundle"
    writer.write(build(), folder)
    return folder


def train(bundle, run, steps: int, *more) -> None:
    host("--graph", bundle, "--batch-size", 7, "--max-steps", steps, "--schedule", "constant", "--eval-every", 0, *more, *(() if "--resume" in more else ("--run-dir", run)))


def test_a_bundle_names_its_state(bundle):
    document, module = json.loads((bundle / "bundle.json").read_text()), build().module
    kept = {s["name"]: tuple(s["shape"]) for s in document["state"]}
    buffers = {name: tuple(x.shape) for name, x in module.named_buffers()}
    assert kept == {name: shape for name, shape in buffers.items() if name != "table"}
    stored = load_file(bundle / "params.safetensors")
    assert all(torch.equal(stored[name], module.get_buffer(name).float()) for name in kept)


def test_the_program_trains_as_pytorch(bundle, tmp_path):
    run, debug = tmp_path / "run", tmp_path / "debug"
    (debug / "batches").mkdir(parents=True)
    train(bundle, run, STEPS, "--debug-dir", debug)
    export, document = build(), json.loads((bundle / "bundle.json").read_text())
    lines = [json.loads(line) for line in (run / "metrics.jsonl").read_text().splitlines()]
    batches = list(rerun.batches(export, debug / "batches", STEPS))
    for line, made in zip(lines, loop.train(export, document, lines, batches), strict=True):
        assert line["loss"] == pytest.approx(made[""]["loss"], rel=1e-5), line["step"]
    module, empty = export.module, sum(int((lengths == 0).sum()) for (_, lengths), _ in batches)
    assert empty
    convert.to_torch(run, tmp_path / "model.pt", bundle=bundle)
    saved = torch.load(tmp_path / "model.pt", weights_only=True)["model"]
    trained = build().module
    assert trained.load_state_dict(saved, strict=False).missing_keys == ["table"]
    assert trained.norm.num_batches_tracked == STEPS
    for name, want in module.named_buffers():
        got = trained.get_buffer(name)
        # The moving averages of codes add the rounding of all steps: 1.5e-5 on some processors.
        assert torch.linalg.vector_norm((got - want).double()) <= 1e-4 * torch.linalg.vector_norm(want.double()), name

    # An evaluation has the state, and changes none of it.
    tensors = batch(export.inputs, {"B": 3, "T_mel": 33}, np.random.default_rng(0), empty_row=1)
    given = clean(export.inputs, tensors)
    want = export.loss(trained.eval()(**given), given)["loss"].item()
    feed = {name: x.numpy() for name, x in load_file(sorted((run / "checkpoints").glob("step-*"))[-1] / "params.safetensors").items()}
    out = session.run(session.load(bundle / "eval_model.onnx"), feed | {name: x.numpy() for name, x in tensors.items()})
    assert out["loss"] == pytest.approx(want, rel=1e-4) and not any(name.startswith("state.") for name in out)


def test_a_resumed_run_has_the_same_bits(bundle, tmp_path):
    more = "--accumulate", 2, "--freeze", "frame_out", "--checkpoint-every", 2
    whole, parts = tmp_path / "whole", tmp_path / "parts"
    train(bundle, whole, 4, *more)
    train(bundle, parts, 2, *more)
    there = tmp_path / "model.pt"
    convert.to_torch(parts, there, bundle=bundle)
    again = convert.from_torch(there, bundle, tmp_path / "again")
    for name in FILES:
        assert (again / name).read_bytes() == (parts / "checkpoints/step-000002" / name).read_bytes(), name
    train(bundle, parts, 4, *more, "--resume", tmp_path / "again")
    for name in ("params.safetensors", "optimizer.safetensors"):
        assert (again.parent / "step-000004" / name).read_bytes() == (whole / "checkpoints/step-000004" / name).read_bytes(), name


class Normalized(nn.Module):
    def __init__(self):
        super().__init__()
        self.frame_in, self.norm = nn.utils.spectral_norm(nn.Conv1d(80, 32, 3, padding=1, bias=False)), nn.BatchNorm1d(32)
        self.mix, self.frame_out = nn.utils.parametrizations.spectral_norm(nn.Linear(32, 32)), nn.Linear(32, 80)

    def forward(self, mel_spectrograms):
        return self.frame_out(torch.tanh(self.mix(self.norm(self.frame_in(mel_spectrograms.transpose(1, 2))).transpose(1, 2))))


def test_a_bf16_graph_keeps_its_state_in_f32(tmp_path, capsys):
    torch.manual_seed(0)
    writer.write(dataclasses.replace(build(), module=Normalized()), tmp_path / "bundle", ("f32", "bf16"))
    assert re.search(r"in bf16 by .* in the state, in f32 by .* in the state", capsys.readouterr().out)
    graph, document = onnx.load(tmp_path / "bundle/training_model.bf16.onnx").graph, json.loads((tmp_path / "bundle/bundle.json").read_text())
    types = {value.name: value.type.tensor_type.elem_type for value in (*graph.input, *graph.output)}
    names = [s["name"] for s in document["state"]]
    assert len(names) == 7 and {types[name] for name in (*names, *("state." + name for name in names))} == {onnx.TensorProto.FLOAT}
    assert types["frame_out.weight"] == onnx.TensorProto.BFLOAT16


def test_a_graph_for_evaluation_is_needed(tmp_path):
    export = build()
    export.eval_graph = False
    with pytest.raises(Refusal, match="eval_graph is False, but forward changes codes"):
        writer.write(export, tmp_path / "bundle")
