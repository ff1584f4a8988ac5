"""Several players in one export: their graphs, what each trains, and a GAN that the program trains as PyTorch does."""

import dataclasses
import json
import shutil

import onnx
import onnx.parser
import pytest
import torch
from safetensors.torch import load_file
from torch import nn

from . import bf16, convert, writer
from .baseline import rerun
from .inputs import sequence
from .module import Export, Player, steps
from .presets import FEATURES
from .refusal import Refusal
from .test_convert import host, same

WIDTH, MELS = 8, 12


class Gan(nn.Module):
    """A generator that smooths spectrograms, and a discriminator of them."""

    def __init__(self):
        super().__init__()
        self.generator = nn.Sequential(nn.Conv1d(MELS, WIDTH, 3, padding=1), nn.Tanh(), nn.Conv1d(WIDTH, MELS, 3, padding=1))
        self.discriminator = nn.Sequential(nn.Conv1d(MELS, WIDTH, 3, padding=1), nn.LeakyReLU(0.1), nn.Conv1d(WIDTH, 1, 3, padding=1))

    def forward(self, mel):
        return self.generator(mel.transpose(1, 2))


def mean(x, frames):
    return (x * frames).sum() / frames.sum().clamp(min=1)


def gan() -> Export:
    torch.manual_seed(0)
    model = Gan()

    def frames(fake, data):
        return (torch.arange(fake.shape[2])[None, :] < data["mel_lengths"][:, None]).float()

    def judge(fake, data):
        inside = frames(fake, data)
        scores = [model.discriminator(x * inside[:, None]).squeeze(1) for x in (data["mel"].transpose(1, 2), fake.detach())]
        real, made = mean((1 - scores[0]).square(), inside), mean(scores[1].square(), inside)
        return {"loss": real + made, "loss_weight": inside.sum(), "real": real}

    def make(fake, data):
        inside = frames(fake, data)
        score = model.discriminator(fake * inside[:, None]).squeeze(1)
        near = mean((fake - data["mel"].transpose(1, 2)).abs().mean(1), inside)
        return {"loss": mean((1 - score).square(), inside) + 2 * near, "loss_weight": inside.sum(), "near": near}

    settings = {"name": "adamw", "betas": [0.8, 0.99], "eps": 1e-8, "weight_decay": 0.01, "grad_clip": 1.0}
    return Export(
        name="gan", module=model, inputs=sequence("mel", "f32", "T_mel", MELS, lengths="mel_lengths", origin="stage"),
        buckets=[{"T_wav": 256 * n, "T_mel": 1 + n} for n in (200, 440)], features={**FEATURES, "n_mels": MELS},
        pipeline=[{"name": "target", "stage": "logmel", "inputs": {"waveform": "waveform", "waveform_lengths": "waveform_lengths"},
                   "outputs": {"mel_spectrograms": "mel", "mel_lengths": "mel_lengths"}}],
        players={"discriminator": Player("discriminator", judge, {**settings, "lr": 2e-3}, schedule={"name": "constant", "warmup_steps": 4}), "generator": Player("generator", make, {**settings, "lr": 1e-3})})


@pytest.fixture(scope="module")
def bundle(tmp_path_factory):
    folder = tmp_path_factory.mktemp("gan") / "bundle"
    writer.write(gan(), folder)
    return folder


def test_bundle_has_players(bundle):
    document = json.loads((bundle / "bundle.json").read_text())
    assert [p["name"] for p in document["players"]] == ["discriminator", "generator"] and "optimizer" not in document
    assert [p.get("schedule") for p in document["players"]] == [{"name": "constant", "warmup_steps": 4}, None] and document["schedule"]["name"] == "cosine"
    assert {o["name"]: o.get("player") for o in document["outputs"]} == {
        "loss": None, "loss_weight": None, "metric.discriminator.loss": "discriminator", "metric.real": "discriminator", "metric.near": "generator"}
    assert all(p["name"].startswith(p["player"]) for p in document["parameters"])
    assert [(g["kind"], g.get("player")) for g in document["graphs"]] == [("train", "discriminator"), ("train", "generator"), ("eval", None)]


def test_graphs_return_the_gradients_of_their_player(bundle):
    document = json.loads((bundle / "bundle.json").read_text())
    for graph in document["graphs"][:2]:
        made = {o.name for o in onnx.load(bundle / graph["file"]).graph.output}
        assert {n for n in made if n.startswith("grad.")} == {f"grad.{p['name']}" for p in document["parameters"] if p["player"] == graph["player"]}


def test_players_take_turns_in_requires_grad():
    export = gan()
    trained = lambda: {name.partition(".")[0] for name, p in export.module.named_parameters() if p.requires_grad}
    for player, step in steps(export).items():
        with step.alone():
            assert trained() == {player}
    assert trained() == {"discriminator", "generator"}


def test_buffers_are_state_of_their_player(tmp_path):
    """A counter in the discriminator, which both losses run: only the discriminator's graph returns it."""
    export = gan()
    plain = export.module.discriminator
    plain.register_buffer("runs", torch.zeros(()))

    def counted(module, inputs):
        module.runs += 1

    plain.register_forward_pre_hook(counted)
    writer.write(export, tmp_path / "bundle")
    assert json.loads((tmp_path / "bundle/bundle.json").read_text())["state"] == [{"name": "discriminator.runs", "shape": [], "player": "discriminator"}]
    returned = [[o.name for o in onnx.load(tmp_path / "bundle" / file).graph.output if o.name.startswith("state.")]
                for file in ("training_model.discriminator.onnx", "training_model.generator.onnx", "eval_model.onnx")]
    assert returned == [["state.discriminator.runs"], [], []]
    host("--graph", tmp_path / "bundle", "--batch-size", 3, "--max-steps", 2, "--eval-every", 0, "--run-dir", tmp_path / "run")
    assert load_file(tmp_path / "run/checkpoints/step-000002/params.safetensors")["discriminator.runs"] == 4  # two for each step


def _change(**players):
    export = gan()
    return dataclasses.replace(export, players={name: dataclasses.replace(p, **players.get(name, {})) for name, p in export.players.items()})


@pytest.mark.parametrize("change, reason", [
    (lambda: _change(generator={"parameters": "generator.0"}), "parameter generator.2.weight belongs to no player"),
    (lambda: _change(discriminator={"parameters": "*"}), "player generator has no parameter that is trained"),
    (lambda: _change(generator={"loss": None}), "loss of generator is None"),
    (lambda: _change(generator={"schedule": "cosine"}), "schedule of generator is 'cosine'"),
    (lambda: dataclasses.replace(gan(), loss=lambda outputs, data: outputs), "an export with players has a loss"),
    (lambda: dataclasses.replace(gan(), players=dict([next(iter(gan().players.items()))])), "there is one player"),
    (lambda: dataclasses.replace(gan(), players={"A b": p for p in gan().players.values()} | gan().players), "a player's name is 'A b'"),
])
def test_refusals(change, reason, tmp_path):
    with pytest.raises(Refusal, match=reason):
        writer.write(change(), tmp_path / "bundle")


def test_two_players_with_a_metric_of_one_name(tmp_path):
    export = gan()
    make = export.players["generator"].loss
    same = lambda fake, data: (lambda r: {**r, "real": r["near"]})(make(fake, data))
    players = {**export.players, "generator": dataclasses.replace(export.players["generator"], loss=same)}
    with pytest.raises(Refusal, match="two players return the metric real"):
        writer.write(dataclasses.replace(export, players=players), tmp_path / "bundle")


STEPS = 24


@pytest.fixture(scope="module")
def run(bundle, tmp_path_factory):
    """A run of the program, and the folder of its batches."""
    folder = tmp_path_factory.mktemp("gan-run")
    (folder / "debug/batches").mkdir(parents=True)
    host("--graph", bundle, "--batch-size", 3, "--max-steps", STEPS, "--checkpoint-every", STEPS // 2, "--run-dir", folder / "run", "--debug-dir", folder / "debug")
    return folder / "run", folder / "debug/batches"


def lines(folder):
    return [json.loads(line) for line in (folder / "metrics.jsonl").read_text().splitlines()]


def decay(part: nn.Module) -> list[dict]:
    return [{"params": [p for p in part.parameters() if (p.dim() >= 2) == matrix], "weight_decay": 0.01 if matrix else 0.0} for matrix in (True, False)]


def test_program_trains_as_pytorch_does(run):
    """A loop of PyTorch on the same batches: the discriminator's step, then the generator's on the same output."""
    folder, batches = run
    export = gan()
    model, made = export.module, {}
    optimizers = {name: torch.optim.AdamW(decay(model.get_submodule(name)), lr=player.optimizer["lr"], betas=(0.8, 0.99)) for name, player in export.players.items()}
    for line, (tensors, _) in zip(lines(folder), rerun.batches(export, batches, STEPS), strict=True):
        data = dict(zip((i.name for i in export.inputs), tensors, strict=True))
        fake = model(data["mel"])
        for name, player in export.players.items():
            optimizer = optimizers[name]
            for group in optimizer.param_groups:
                group["lr"] = line["lr"] if name == "generator" else 2e-3 * min(1, line["step"] / 4)
            model.zero_grad()
            made[name] = player.loss(fake, data)
            made[name]["loss"].backward()
            made[name]["norm"] = nn.utils.clip_grad_norm_(model.get_submodule(name).parameters(), 1.0)
            optimizer.step()
        for key, x in (("loss", made["generator"]["loss"]), ("near", made["generator"]["near"]), ("discriminator.loss", made["discriminator"]["loss"]),
                       ("real", made["discriminator"]["real"]), ("grad_norm", made["generator"]["norm"]), ("grad_norm.discriminator", made["discriminator"]["norm"])):
            assert line[key] == pytest.approx(x.item(), rel=1e-5), (line["step"], key)
    # The losses have moved.
    assert abs(line["loss"] / lines(folder)[0]["loss"] - 1) > 0.05


def test_accumulated_steps_are_those_of_one_batch(bundle, tmp_path):
    """All rows as one batch, and in three: the second player trains on all of them after the update of the first one."""
    common = ("--graph", bundle, "--max-steps", 4, "--eval-every", 0, "--enable-static-shapes")
    host(*common, "--batch-size", 24, "--run-dir", tmp_path / "whole")
    host(*common, "--batch-size", 8, "--accumulate", 3, "--run-dir", tmp_path / "parts")
    for a, b in zip(lines(tmp_path / "whole"), lines(tmp_path / "parts"), strict=True):
        for key in ("loss", "near", "discriminator.loss", "grad_norm", "grad_norm.discriminator"):
            assert b[key] == pytest.approx(a[key], rel=1e-4), key


def test_resumed_to_the_bit(run, tmp_path):
    folder, _ = run
    again = tmp_path / "again"
    shutil.copytree(folder, again)
    shutil.rmtree(again / f"checkpoints/step-{STEPS:06}")
    host("--resume", again)
    same(folder / f"checkpoints/step-{STEPS:06}", again / f"checkpoints/step-{STEPS:06}")
    players = json.loads((again / f"checkpoints/step-{STEPS:06}/state.json").read_text())["players"]
    assert [(p["name"], p["optimizer_step"], p["schedule"]["name"]) for p in players] == [("discriminator", STEPS, "constant"), ("generator", STEPS, "cosine")]


def test_to_pytorch_and_back(run, bundle, tmp_path):
    """PyTorch's optimizers load the state, and without a step the way back gives the same files."""
    folder, _ = run
    convert.to_torch(folder, tmp_path / "model.pt")
    saved = torch.load(tmp_path / "model.pt", weights_only=True)
    model = gan().module
    model.load_state_dict(saved["model"])
    for name, rate in (("discriminator", 2e-3), ("generator", 1e-3)):
        optimizer = torch.optim.AdamW(convert.groups((f"{name}.{n}", p) for n, p in model.get_submodule(name).named_parameters()))
        optimizer.load_state_dict(saved["optimizer"][name])
        assert optimizer.param_groups[0]["initial_lr"] == rate and optimizer.param_groups[0]["lr"] == (rate if name == "discriminator" else 0) and {s["step"].item() for s in optimizer.state.values()} == {STEPS}
    checkpoint = convert.from_torch(tmp_path / "model.pt", bundle, tmp_path / "back")
    same(folder / f"checkpoints/step-{STEPS:06}", checkpoint)


def test_bf16_graphs_take_a_parameter_in_one_type():
    """What one graph uses in f32 is f32 in all; what it does not use is left out."""
    first, second = (onnx.parser.parse_model(f"<ir_version: 10, opset_import: ['': 20]> {text}".replace("'", '"')) for text in (
        """g (bfloat16[2, 2] a, bfloat16[2, 2] b) => (bfloat16[2, 2] out, bfloat16[2, 2] grad) { out = MatMul (a, b)
           grad = MatMul (b, b) }""",
        "g (float[2, 2] a, float[2, 2] b) => (float[2, 2] out) { out = Add (a, a) }"))
    first.graph.output[1].name = first.graph.node[1].output[0] = "grad.a"
    bf16.unite([first, second])
    types = lambda values: {v.name: v.type.tensor_type.elem_type for v in values}
    wide, low = onnx.TensorProto.FLOAT, onnx.TensorProto.BFLOAT16
    assert types(first.graph.input) == {"a": wide, "b": low} and types(first.graph.output) == {"out": low, "grad.a": wide}
    assert types(second.graph.input) == {"a": wide}
    for model in (first, second):
        onnx.checker.check_model(model, full_check=True)
