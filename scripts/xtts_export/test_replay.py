"""Steps of runs in PyTorch: bin/xtts-host must be built."""

import json
import math

import pytest
import torch
from safetensors.torch import load_file, save_file

from . import presets, test_state, writer
from .builtin import REPOSITORY
from .refusal import Refusal
from .replay import replay
from .test_convert import host

NANO = REPOSITORY / "ortgraphs/builtin/myxtts-nano"


def made(graph, folder, step: int, *flags):
    """A step of a run of a bundle, as the program replays it."""
    host("--graph", graph, "--batch-size", 7, "--max-steps", step, "--eval-every", 0, "--checkpoint-every", 2, "--run-dir", folder / "run", *flags)
    host("replay", folder / "run", "--step", step, "--out", folder / "step")
    return folder / "step"


@pytest.fixture(scope="module")
def nano(tmp_path_factory):
    """With dropout, and micro-batches of which some have empty rows."""
    return made(NANO, tmp_path_factory.mktemp("nano"), 4, "--accumulate", 2, "--augment", "waveaug")


def test_a_step_is_that_of_pytorch(nano):
    again = replay(nano, presets.build("nano"))
    assert len(again.step["batches"]) == 2 and again.step["verified"]["differs"] is None
    assert again.loss_error < 1e-5 and again.gradient_error < 1e-4, str(again)
    assert again.gradients.keys() == again.run_gradients.keys() and again.notes == []
    assert again.metrics.keys() == again.step["metrics"].keys()
    assert all(math.isclose(again.metrics[name], x, rel_tol=1e-4) for name, x in again.step["metrics"].items())
    assert "gradients differ by" in str(again)


def test_state_goes_on_from_batch_to_batch(tmp_path):
    writer.write(test_state.build(), tmp_path / "bundle")
    again = replay(made(tmp_path / "bundle", tmp_path, 3, "--accumulate", 2), test_state.build())
    assert again.loss_error < 1e-5 and again.gradient_error < 1e-3, str(again)


@pytest.mark.parametrize("file", ["weights", "batch-00"])
def test_other_weights_and_batches_are_seen(nano, tmp_path, file):
    for path in nano.iterdir():
        (tmp_path / path.name).write_bytes(path.read_bytes())
    path = tmp_path / f"{file}.safetensors"
    save_file({name: x * 1.01 if x.is_floating_point() else x for name, x in load_file(path).items()}, path)
    again = replay(tmp_path, presets.build("nano"))
    assert again.gradient_error > 1e-3


def test_another_seed_is_seen(nano, tmp_path):
    for path in nano.iterdir():
        (tmp_path / path.name).write_bytes(path.read_bytes())
    step = json.loads((tmp_path / "step.json").read_text())
    step["batches"][0]["seed"] += 1
    (tmp_path / "step.json").write_text(json.dumps(step))
    assert replay(tmp_path, presets.build("nano")).gradient_error > 1e-3


def test_the_line_that_gives_nan_is_named(nano):
    export = presets.build("nano")

    def loss(outputs, batch):
        returned = kept(outputs, batch)
        return {**returned, "loss": returned["loss"] + 0 * torch.log(batch["mel_lengths"].float() - batch["mel_lengths"].float().max())[0]}

    kept, export.loss = export.loss, loss
    [note, *_] = replay(nano, export).notes
    assert "test_replay.py" in note and "log" in note, note


def test_another_module_is_refused(nano):
    with pytest.raises(Refusal, match="the module has no .*, which the run has trained"):
        replay(nano, test_state.build())
