"""A run converted to PyTorch and back, with real checkpoints: bin/xtts-host must be built."""

import json
import os
import shutil
import subprocess
from pathlib import Path

import numpy as np
import pytest
import torch

from . import checkpoint, multispeaker, presets, session, convert, updates
from .baseline import parity, reference
from .baseline.counter import Batch
from .builtin import REPOSITORY
from .checkpoint import Refused
from .module import Step

BUNDLES = {
    "adamw": (presets.pico, REPOSITORY / "ortgraphs/testdata/pico"),
    "sgd": (multispeaker.build, REPOSITORY / "ortgraphs/builtin/myxtts-multispeaker"),
}
OTHERS = {kind: parity.OPTIMIZERS[kind] for kind in parity.OTHERS}
FILES = (checkpoint.PARAMS, checkpoint.MOMENTS, checkpoint.STATE, checkpoint.MANIFEST)


def host(*arguments, status: int = 0) -> None:
    program = REPOSITORY / "bin/xtts-host"
    assert program.is_file(), "make build comes first"
    done = subprocess.run([program, "--plugins", "plugins", *map(str, arguments)], cwd=REPOSITORY, capture_output=True, text=True,
                          env={**os.environ, "XTTS_HOST_DEVICE": "cpu", "XDG_CACHE_HOME": str(REPOSITORY / ".cache")}, timeout=300)
    assert done.returncode == status, done.stderr


@pytest.fixture(scope="module", params=BUNDLES)
def trained(request, tmp_path_factory):
    """An Export's builder, its bundle, and a run of 8 steps with a checkpoint after 6."""
    build, graphs = BUNDLES[request.param]
    run = tmp_path_factory.mktemp(request.param) / "run"
    host("--graph", graphs, "--batch-size", 4, "--max-steps", 8, "--checkpoint-every", 6, "--run-dir", run)
    return build, graphs, run


@pytest.fixture
def middle(trained, tmp_path):
    """The same with the checkpoint after 6 steps as model.pt, and what is in that."""
    build, graphs, run = trained
    file = tmp_path / "model.pt"
    convert.to_torch(run / "checkpoints/step-000006", file)
    return build, graphs, run / "checkpoints/step-000006", file, torch.load(file, weights_only=True)


def same(before: Path, after: Path) -> None:
    """Two checkpoints have the same files, the frozen weights included."""
    for name in FILES:
        assert (after / name).read_bytes() == (before / name).read_bytes(), name
    theirs, ours = ({p.name: p.read_bytes() for p in c.parent.glob("frozen-*")} for c in (before, after))
    assert ours == theirs


def test_round_trip_keeps_every_bit_and_the_run_goes_on(middle, tmp_path):
    _, graphs, before, file, _ = middle
    after = convert.from_torch(file, graphs, tmp_path / "again")
    same(before, after)
    assert (tmp_path / "again" / checkpoint.PARAMS).read_bytes() == (before / checkpoint.PARAMS).read_bytes()
    host("--resume", tmp_path / "again")
    for name in FILES:
        theirs, ours = (folder.parent / "step-000008" / name for folder in (before, after))
        assert ours.read_bytes() == theirs.read_bytes(), name


def with_optimizer(spec: dict, folder: Path) -> Path:
    """pico's bundle with another optimizer."""
    shutil.copytree(BUNDLES["adamw"][1], folder)
    document = json.loads((folder / "bundle.json").read_text())
    (folder / "bundle.json").write_text(json.dumps({**document, "optimizer": spec}))
    return folder


@pytest.mark.parametrize("spec", OTHERS.values(), ids=OTHERS)
def test_other_optimizers_go_there_and_back(spec, tmp_path):
    """The files are the same, the resumed run too, and a step of PyTorch counts."""
    graphs = with_optimizer(spec, tmp_path / "bundle")
    run, file = tmp_path / "run", tmp_path / "model.pt"
    host("--graph", graphs, "--batch-size", 4, "--max-steps", 4, "--checkpoint-every", 2, "--run-dir", run)
    before = run / "checkpoints/step-000002"
    convert.to_torch(before, file)
    after = convert.from_torch(file, graphs, tmp_path / "again")
    same(before, after)
    host("--resume", tmp_path / "again")
    same(run / "checkpoints/step-000004", after.parent / "step-000004")
    saved = torch.load(file, weights_only=True)
    module = Step(presets.pico())
    module.load_state_dict(saved["model"], strict=True)
    entries = [{"name": name, "shape": p.shape} for name, p in module.named_parameters()]
    states = saved["optimizer"] if spec["name"] == "muon" else {spec["name"]: saved["optimizer"]}
    rates = [g["lr"] for state in states.values() for g in state["param_groups"]]
    lr = convert.learning_rate(saved["config"]["schedule"], 2)
    assert set(rates) == {lr * g.get("lr_factor", 1) for g in ({}, *spec.get("groups", ()))}
    for kind, state in states.items():
        mine = [e["name"] for e in entries if spec["name"] != "muon" or (updates.graph(spec, e) == "adamw") == (kind == "adamw")]
        named = [(name, module.get_parameter(name)) for name in mine]
        update = convert.torch_optimizer({**saved["config"]["optimizer"], "name": kind, "lr": 1.0}, convert.groups(named, own=spec.get("groups", ())))
        update.load_state_dict(state)
        for p in module.parameters():
            p.grad = torch.full_like(p, 0.01)
        update.step()
        states[kind] = update.state_dict()
    further = {**saved, "model": module.state_dict(), "optimizer": states if spec["name"] == "muon" else update.state_dict(), "step": 3}
    torch.save(further, file)
    folder = convert.from_torch(file, graphs, tmp_path / "further")
    assert checkpoint.load(folder).counters["optimizer_step"] == 3
    host("--resume", tmp_path / "further")


def test_a_part_of_a_model_goes_there_and_back(tmp_path):
    build, graphs = BUNDLES["adamw"]
    run, file = tmp_path / "run", tmp_path / "model.pt"
    host("--graph", graphs, "--batch-size", 4, "--max-steps", 4, "--checkpoint-every", 2, "--train-only", "mel_head,decoder.norm",
         "--run-dir", run)
    before = run / "checkpoints/step-000002"
    convert.to_torch(before, file)
    saved = torch.load(file, weights_only=True)
    module = Step(build())
    module.load_state_dict(saved["model"], strict=True)
    for name in saved["config"]["frozen"]:
        module.get_parameter(name).requires_grad_(False)
    update = torch.optim.AdamW(convert.groups(module.named_parameters()), lr=1.0)
    update.load_state_dict(saved["optimizer"])
    assert sum(p.requires_grad for p in module.parameters()) == len(update.state_dict()["state"]) == 4
    after = convert.from_torch(file, graphs, tmp_path / "again")
    same(before, after)
    host("--resume", tmp_path / "again")
    same(run / "checkpoints/step-000004", after.parent / "step-000004")


def test_averages_go_there_and_back(tmp_path):
    _, graphs = BUNDLES["adamw"]
    run, file, average = tmp_path / "run", tmp_path / "model.pt", tmp_path / "average.pt"
    host("--graph", graphs, "--batch-size", 4, "--max-steps", 4, "--checkpoint-every", 2, "--ema", 0.9, "--freeze", "mel_head",
         "--run-dir", run)
    before = run / "checkpoints/step-000002"
    convert.to_torch(before, file)
    after = convert.from_torch(file, graphs, tmp_path / "again")
    same(before, after)
    assert (after / checkpoint.AVERAGES).read_bytes() == (before / checkpoint.AVERAGES).read_bytes()
    convert.to_torch(before, average, ema=True)
    saved, found = torch.load(average, weights_only=True), checkpoint.load(before)
    assert set(saved) == {"model", "step", "config"}
    for name, tensor in saved["model"].items():
        if name in found.params:
            assert torch.equal(tensor, found.averages.get(name, found.params[name])), name
    assert found.averages and not set(found.averages) & found.frozen
    with pytest.raises(Refused, match="no moving average"):
        plain = tmp_path / "plain"
        host("--graph", graphs, "--batch-size", 4, "--max-steps", 1, "--run-dir", plain)
        convert.to_torch(plain, average, ema=True)


def module_and_optimizer(export, saved) -> tuple[torch.nn.Module, torch.optim.Optimizer]:
    """PyTorch's own, loaded as a user would."""
    module = Step(export)
    module.load_state_dict(saved["model"], strict=True)
    update = convert.torch_optimizer({**saved["config"]["optimizer"], "lr": 1.0}, convert.groups(module.named_parameters()))
    update.load_state_dict(saved["optimizer"])
    return module, update


def relative(ours: np.ndarray, theirs: torch.Tensor) -> float:
    theirs = theirs.detach().numpy()
    return float(np.linalg.norm(ours - theirs) / np.linalg.norm(theirs))


def test_pytorch_continues_as_the_host_does(middle):
    build, graphs, _, _, saved = middle
    export = build()
    module, update = module_and_optimizer(export, saved)
    spec = saved["config"]["optimizer"]
    rates = [g["lr"] for g in update.param_groups]
    assert rates == [convert.learning_rate(saved["config"]["schedule"], 6)] * 2
    kinds = updates.STATE[spec["name"]]
    ours = session.Trainer(export, graphs, REPOSITORY / "ortgraphs/optim", {**spec, "lr": rates[0]})
    ours.updates = 6
    for name, view in ours.parameters.items():
        view[...] = saved["model"][name].numpy()
    by_name = dict(module.named_parameters())
    for kind in kinds:
        ours.vectors[kind][:] = np.concatenate([update.state[by_name[p["name"]]][kind].numpy().ravel() for p in ours.order])
    sizes = parity.shapes(export)[0]
    batch = Batch(200, sizes).tensors(parity.recipes(export))
    outputs, norm = reference.step(module, update, batch, torch.tensor(parity.DROPOUT_OFF), spec["grad_clip"])
    loss, our_norm = ours.step(batch)
    assert loss == pytest.approx(outputs["loss"], rel=1e-6) and our_norm == pytest.approx(norm, rel=1e-5)
    assert max(relative(view, by_name[name]) for name, view in ours.parameters.items()) <= 1e-6


def test_learning_rate_is_the_runs(middle):
    _, _, before, _, saved = middle
    lines = (before.parents[1] / "metrics.jsonl").read_text().splitlines()
    for step, line in enumerate(lines):
        assert json.loads(line)["lr"] == pytest.approx(convert.learning_rate(saved["config"]["schedule"], step), rel=1e-12)


def test_steps_of_pytorch_are_counted(middle, tmp_path):
    build, graphs, _, file, saved = middle
    module, update = module_and_optimizer(build(), saved)
    for p in module.parameters():
        p.grad = torch.full_like(p, 0.01)
    update.step()
    changed = {**saved, "model": module.state_dict(), "optimizer": update.state_dict(), "step": 7}
    torch.save(changed, file)
    folder = convert.from_torch(file, graphs, tmp_path / "further")
    state = checkpoint.load(folder).counters
    assert (folder.name, state["step"], state["optimizer_step"]) == ("step-000007", 7, 7)
    assert {**state, "step": 6, "optimizer_step": 6} == json.loads(saved["state"])
    host("--resume", tmp_path / "further")
    if "exp_avg" in update.state[next(module.parameters())]:
        torch.save({**changed, "step": 6}, file)
        with pytest.raises(Refused, match="7 updates, but `step` is 6"):
            convert.from_torch(file, graphs, tmp_path / "uncounted")


def test_state_dict_alone_initialises_a_run(trained, tmp_path):
    build, graphs, _ = trained
    file, out = tmp_path / "weights.pt", tmp_path / "weights"
    torch.save(build().module.state_dict(), file)
    assert convert.from_torch(file, graphs, out) == out / checkpoint.PARAMS
    assert [p.name for p in out.iterdir()] == [checkpoint.PARAMS]
    host("--graph", graphs, "--init", out, "--batch-size", 4, "--max-steps", 1, "--run-dir", tmp_path / "run")


def test_what_does_not_fit_is_listed_and_nothing_written(middle, tmp_path):
    _, graphs, _, file, saved = middle
    model = dict(saved["model"])
    gone, reshaped, halved, *_ = model
    model["of.another.model"] = model.pop(gone)
    model[reshaped], model[halved] = model[reshaped][:, :3], model[halved].half()
    optimizer = saved["optimizer"]
    kind = updates.STATE[saved["config"]["optimizer"]["name"]][0]
    del optimizer["state"][0][kind]
    torch.save({**saved, "model": model, "optimizer": optimizer}, file)
    with pytest.raises(Refused) as refused:
        convert.from_torch(file, graphs, tmp_path / "again")
    text = str(refused.value)
    for want in (f"missing     {gone} ", "unexpected  of.another.model", f"shape       {reshaped} is",
                 f"dtype       {halved} is torch.float16", f"missing     {kind}.{gone}"):
        assert want in text
    assert text.count("\n") == 5 and refused.value.hint and not (tmp_path / "again").exists()


def test_groups_without_names_go_by_order(middle, tmp_path):
    _, graphs, before, file, saved = middle
    for group in saved["optimizer"]["param_groups"]:
        del group["param_names"]
    torch.save(saved, file)
    after = convert.from_torch(file, graphs, tmp_path / "again")
    assert (after / checkpoint.MOMENTS).read_bytes() == (before / checkpoint.MOMENTS).read_bytes()
    first, second = saved["optimizer"]["param_groups"]
    saved["optimizer"]["param_groups"] = [{**first, "params": first["params"] + second["params"]}]
    torch.save(saved, file)
    with pytest.raises(Refused, match="param_groups without names"):
        convert.from_torch(file, graphs, tmp_path / "one group")


@pytest.mark.parametrize("change", [{"optimizer": {"state": 1}}, {"state": "{"}, {"step": "six"}], ids=lambda change: next(iter(change)))
def test_optimizer_that_makes_no_sense_is_refused(tmp_path, change):
    bundle, before = synthetic(tmp_path)
    file = tmp_path / "model.pt"
    convert.to_torch(before, file, bundle)
    torch.save(torch.load(file, weights_only=True) | change, file)
    with pytest.raises(Refused, match="is not as to-torch writes it") as refused:
        convert.from_torch(file, bundle, tmp_path / "again")
    assert refused.value.hint and not (tmp_path / "again").exists()


def test_run_gives_its_newest_intact_or_best_checkpoint(trained, tmp_path, capsys):
    _, _, run = trained
    second, newest = sorted(p.name for p in (run / "checkpoints").iterdir())[-2:]
    assert checkpoint.find(run).path.name == newest == "step-000008"
    best = checkpoint.load(run / "checkpoints/step-000008").counters["best"]["step"]
    assert checkpoint.find(run, best=True).counters["step"] == best
    copy = tmp_path / "run"
    shutil.copytree(run, copy)
    with (copy / "checkpoints" / newest / checkpoint.MOMENTS).open("r+b") as f:
        f.seek(-1, os.SEEK_END)
        f.write(b"\x7f")
    assert checkpoint.find(copy).path.name == second
    assert "skipped: damaged checkpoint" in capsys.readouterr().err
    with pytest.raises(Refused, match="does not match MANIFEST"):
        checkpoint.find(copy / "checkpoints" / newest)
    with pytest.raises(Refused, match="neither a run nor a checkpoint"):
        checkpoint.find(tmp_path)


STATE = {
    "step": 3, "optimizer_step": 2, "schedule": {"name": "constant", "base_lr": 0.5, "warmup_steps": 0, "total_steps": 9},
    "hashes": {"optimizer": '["adamw",0.5,[0.9,0.999],1e-8,0,0.01,1]'},
}


def synthetic(folder: Path, version: int = 2) -> tuple[Path, Path]:
    """A bundle with a tied and a frozen tensor and names that JSON escapes, and a checkpoint of it."""
    parameters = [{"name": "Table<b>.weight", "shape": [2, 3], "decay": True, "aliases": ["head.weight"]},
                  {"name": "norm.bias", "shape": [3]}, {"name": "mel.filters", "shape": [2], "frozen": True}]
    (folder / "bundle").mkdir()
    (folder / "bundle/bundle.json").write_text(json.dumps({"name": "made up", "parameters": parameters, "optimizer": {"name": "adamw"}}))
    params = {p["name"]: torch.full(p["shape"], float(i + 1)) for i, p in enumerate(parameters)}
    moments = {f"{kind}.{p['name']}": torch.full(p["shape"], 0.0 if p.get("frozen") else 0.25)
               for kind in ("exp_avg", "exp_avg_sq") for p in parameters if version == 1 or not p.get("frozen")}
    frozen = frozenset() if version == 1 else frozenset({"mel.filters"})
    checkpoint.write(folder / "run/checkpoints/step-000003", params, moments, json.dumps({**STATE, "version": version}), frozen)
    return folder / "bundle", folder / "run/checkpoints/step-000003"


@pytest.mark.parametrize("version", checkpoint.VERSIONS)
def test_aliases_and_frozen_tensors(tmp_path, version):
    bundle, before = synthetic(tmp_path, version)
    file = tmp_path / "model.pt"
    with pytest.raises(Refused, match="no config.yaml"):
        convert.to_torch(before, file)
    convert.to_torch(before, file, bundle)
    saved = torch.load(file, weights_only=True)
    assert list(saved["model"]) == ["Table<b>.weight", "head.weight", "norm.bias", "mel.filters"]
    assert saved["model"]["head.weight"].data_ptr() == saved["model"]["Table<b>.weight"].data_ptr()
    assert [g["param_names"] for g in saved["optimizer"]["param_groups"]] == [["Table<b>.weight"], ["norm.bias"]]
    after = convert.from_torch(file, bundle, tmp_path / "again")
    same(before, after)
    saved["model"]["head.weight"] = saved["model"]["head.weight"] + 1
    torch.save(saved, file)
    with pytest.raises(Refused, match="alias       head.weight is not equal to Table<b>.weight"):
        convert.from_torch(file, bundle, tmp_path / "untied")


@pytest.mark.parametrize(("last", "want"), [(2e-3, [5e-4, 2e-3]), (0.0, [0.0, 0.0])])
def test_players_of_an_older_program(tmp_path, last, want):
    """Its checkpoints have one schedule, the last player's: the rates of the other are in the ratio of the two."""
    parameters = [{"name": f"{player}.weight", "shape": [2], "player": player} for player in ("judge", "voice")]
    (tmp_path / "bundle").mkdir()
    document = {"name": "made up", "parameters": parameters, "players": [{"name": "judge"}, {"name": "voice"}]}
    (tmp_path / "bundle/bundle.json").write_text(json.dumps(document))
    moments = {f"{kind}.{p['name']}": torch.zeros(2) for kind in ("exp_avg", "exp_avg_sq") for p in parameters}
    state = {
        "version": 2, "step": 3, "optimizer_step": 3, "players": [{"name": name, "optimizer_step": 3} for name in ("judge", "voice")],
        "schedule": {"name": "constant", "base_lr": last, "min_lr": last / 10, "warmup_steps": 0, "total_steps": 9},
        "hashes": {f"optimizer/{name}": f'["adamw",{lr},[0.9,0.999],1e-8,0,0.01,1]' for name, lr in (("judge", 5e-4), ("voice", last))},
    }
    before = tmp_path / "run/checkpoints/step-000003"
    checkpoint.write(before, {p["name"]: torch.zeros(2) for p in parameters}, moments, json.dumps(state), frozenset())
    convert.to_torch(before, tmp_path / "model.pt", tmp_path / "bundle")
    saved = torch.load(tmp_path / "model.pt", weights_only=True)
    assert [group["lr"] for name in ("judge", "voice") for group in saved["optimizer"][name]["param_groups"]] == pytest.approx(want)
    schedules = [saved["config"]["schedule"][name] for name in ("judge", "voice")]
    assert [s["base_lr"] for s in schedules] == pytest.approx(want) and [s["min_lr"] for s in schedules] == pytest.approx([x / 10 for x in want])


def test_header_is_gos(tmp_path):
    """The host sorts __metadata__ among the names and escapes as encoding/json does."""
    checkpoint.write_tensors(tmp_path / "file", {"é": torch.tensor(1.0), "A<b>": torch.zeros(0, 2)})
    header = ('{"A\\u003cb\\u003e":{"dtype":"F32","shape":[0,2],"data_offsets":[0,0]},"__metadata__":{"format":"pt"},'
              '"é":{"dtype":"F32","shape":[],"data_offsets":[0,4]}}')
    data = (tmp_path / "file").read_bytes()
    size = int.from_bytes(data[:8], "little")
    assert data[8:8 + size].decode().rstrip(" ") == header and size % 8 == 0 and data[8 + size:] == b"\0\0\x80?"


@pytest.mark.parametrize(("arguments", "text"), [
    (["to-torch", "nowhere", "--out", "m.pt"], "neither a run nor a checkpoint"),
    (["from-torch", "nowhere.pt", "--bundle", "builtin:myxtts-nano", "--out", "d"], "cannot be read"),
])
def test_commands_say_what_is_wrong_and_what_to_do(arguments, text):
    with pytest.raises(SystemExit, match=f"(?s)^error: .*{text}.*\nhint: "):
        convert.main(arguments)
