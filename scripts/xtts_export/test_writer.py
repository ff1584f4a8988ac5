"""A bundle's folder appears after the bundle has passed every check, and not before."""

import json
import shutil
from dataclasses import replace

import pytest
import torch
from torch import nn

from . import joint, verify
from .command import main
from .inputs import Input, sequence
from .module import Export, steps
from .refusal import Refusal
from .staging import staged
from .writer import dry_runs, write


def export(weight) -> Export:
    """A linear layer whose loss weighs the batch by weight(lengths)."""
    def loss(y, batch):
        rows = (batch["lengths"] > 0).float()
        return {"loss": (y.square().mean((1, 2)) * rows).sum() / rows.sum().clamp(min=1), "loss_weight": weight(batch["lengths"])}

    class Linear(nn.Module):
        def __init__(self):
            super().__init__()
            self.linear = nn.Linear(4, 4)

        def forward(self, x):
            return self.linear(x)

    return Export(name="x", module=Linear(), loss=loss, inputs=sequence("x", "f32", "T", 4, lengths="lengths"), buckets=[{"T": 8}], features={},
                  eval_graph=False)


def right() -> Export:
    return export(lambda lengths: (lengths > 0).float().sum())


def wrong() -> Export:
    """With every row empty its weight must be 0."""
    return export(lambda lengths: (lengths > 0).float().sum().clamp(min=1))


def contents(folder) -> dict[str, bytes]:
    return {path.name: path.read_bytes() for path in folder.iterdir()}


def test_what_fails_the_check_is_not_left(tmp_path):
    with pytest.raises(Refusal, match="with every row empty"):
        write(wrong(), tmp_path / "bundle")
    assert contents(tmp_path) == {}


def test_what_the_host_refuses_is_not_left(tmp_path, capsys):
    host = tmp_path / "xtts-host"
    host.write_text("#!/bin/sh\necho 'error: no good' >&2\nexit 2\n")
    host.chmod(0o755)
    assert main(["module", "xtts_export.test_writer:right", "--out", str(tmp_path / "bundle"), "--host", str(host)]) == 2
    assert "error: xtts-host refuses the bundle: no good" in capsys.readouterr().err
    assert set(contents(tmp_path)) == {"xtts-host"}


def test_a_file_may_be_called_as_the_package_is(tmp_path):
    (tmp_path / "xtts_export.py").write_text("from xtts_export.test_writer import right as build\n")
    assert main(["module", str(tmp_path / "xtts_export.py:build"), "--out", str(tmp_path / "bundle"), "--host", "true"]) == 0
    assert (tmp_path / "bundle/bundle.json").is_file()


def test_a_bundle_is_replaced_whole(tmp_path, monkeypatch):
    folder = tmp_path / "bundle"
    write(right(), folder)
    assert {path.stat().st_mode for path in folder.iterdir()} == {(folder / "bundle.json").stat().st_mode}
    (folder / "notes.txt").write_text("mine")
    first = contents(folder)
    with pytest.raises(Refusal):
        write(wrong(), folder)
    assert contents(folder) == first

    # So that the first bundle has a file more.
    document = json.loads(first["bundle.json"])
    (folder / "training_model.bf16.onnx").write_bytes(b"old")
    (folder / "bundle.json").write_text(json.dumps({**document, "files": {**document["files"], "training_model.bf16.onnx": "0"}}))
    monkeypatch.setattr(verify, "check", lambda *_: (0.0, "loss"))
    write(right(), folder)
    assert set(contents(folder)) == set(first) and contents(folder)["notes.txt"] == b"mine"


def test_a_folder_is_never_a_mixture(tmp_path):
    """The index goes first and comes last."""
    folder = tmp_path / "bundle"
    folder.mkdir()
    (folder / "bundle.json").write_text('{"files": {"a": "", "..": "", "sub": ""}}')
    (folder / "a").write_text("old")
    (folder / "sub").mkdir()
    (folder / "b").mkdir()
    with pytest.raises(OSError), staged(folder) as place:
        (place / "b").write_text("a folder is in the way")
        (place / "bundle.json").write_text("new")
    assert sorted(path.name for path in folder.iterdir()) == ["b", "sub"] and [path.name for path in tmp_path.iterdir()] == ["bundle"]


def test_a_step_can_be_run_again():
    """As the step of a player is, when another one has state that it has not."""
    made = right()
    step = steps(made)
    [first], [second] = (dry_runs(made, step).values() for _ in range(2))
    assert first.result.keys() == second.result.keys() and first.program.digest() == second.program.digest()


def test_another_eval_graph_is_refused(tmp_path, monkeypatch):
    """As a wrong one of the cache: the eval graph of a module whose outputs are halved."""
    part, halved = joint.part, replace(right(), eval_graph=True, loss=lambda y, batch: right().loss(0.5 * y, batch))
    write(halved, tmp_path / "halved")
    monkeypatch.setattr(joint, "part", lambda *args: shutil.copy(tmp_path / "halved/eval_model.onnx", args[-1]))
    with pytest.raises(Refusal, match="loss of the eval graph differs from PyTorch's by 7.5e-01"):
        write(replace(right(), eval_graph=True), tmp_path / "bundle")
    monkeypatch.setattr(joint, "part", part)
    write(replace(right(), eval_graph=True), tmp_path / "bundle")


def test_a_module_without_lengths_is_refused(tmp_path):
    x = Input("x", "f32", ("B", 4))
    loss = lambda y, batch: {"loss": y.square().mean(), "loss_weight": 0 * y.sum() + y.shape[0]}
    with pytest.raises(Refusal, match="no input has lengths"):
        write(replace(right(), inputs=[x], loss=loss, buckets=[{}]), tmp_path / "bundle")
