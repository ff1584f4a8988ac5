"""The comparison with a run: zero for the same training, and a verdict for another one."""

import json
import subprocess
import sys
from pathlib import Path

import pytest
import torch
from safetensors.torch import save_file

from .. import builtin, presets
from ..module import Step
from . import parity, reference, rerun

PICO = builtin.REPOSITORY / "ortgraphs/testdata/pico"
# More than the mean of the last takes.
STEPS = 21


@pytest.fixture
def run(tmp_path) -> tuple[Path, Path]:
    """The folders of a run that trained pico, with dropout, and of its batches."""
    export = presets.pico()
    module, batches = Step(export), tmp_path / "batches"
    batches.mkdir()
    optimizer, lines = reference.optimizer(module, export.optimizer), []
    for k, batch in enumerate(parity.schedule(export)[:STEPS]):
        tensors, seed, lr = batch.tensors(parity.recipes(export)), 1000 + k, 1e-3 / (1 + k)
        for group in optimizer.param_groups:
            group["lr"] = lr
        outputs, _ = reference.step(module, optimizer, tensors, torch.tensor(seed), export.optimizer["grad_clip"])
        save_file({i.name: x for i, x in zip(export.inputs, tensors, strict=True)}, batches / f"{k + 1:06}-00.safetensors", {"seed": str(seed)})
        lines.append(json.dumps({"step": k + 1, "loss": outputs["loss"], "lr": lr, "step_ms": 2.5}))
    (tmp_path / "metrics.jsonl").write_text("\n".join(lines) + "\n")
    return tmp_path, batches


def arguments(run: tuple[Path, Path], *more: str) -> list[str]:
    folder, batches = run
    return [str(folder), "--bundle", str(PICO), "--batches", str(batches), "--device", "cpu", *more]


def test_the_same_training_has_the_same_losses(run, capsys):
    assert rerun.main(arguments(run)) == 0
    result = json.loads(capsys.readouterr().out)
    assert result["within"] and result["worst"] == result["mean_of_last_20"] == 0
    assert len(result["losses"]["pytorch"]) == STEPS and result["step_ms"]["host"] == 2.5


def test_autocast_is_near_and_not_the_same(run, capsys):
    assert rerun.main(arguments(run, "--precision", "bf16")) == 0
    assert 0 < json.loads(capsys.readouterr().out)["worst"] < 0.01


def test_another_loss_is_found(run, capsys):
    metrics = run[0] / "metrics.jsonl"
    steps = [json.loads(line) for line in metrics.read_text().splitlines()]
    steps[6]["loss"] *= 1.02
    metrics.write_text("\n".join(map(json.dumps, steps)))
    assert rerun.main(arguments(run)) == 1
    result = json.loads(capsys.readouterr().out)
    assert not result["within"] and result["worst_step"] == 7


def test_every_step_needs_its_batch(run):
    (run[1] / "000009-00.safetensors").unlink()
    with pytest.raises(SystemExit, match="does not have one batch for each of 21 steps"):
        rerun.main(arguments(run))


def test_it_needs_pytorch_and_numpy_only():
    absent = "onnx", "onnxscript", "onnxruntime", "safetensors", "tokenizers", "librosa"
    code = f"import sys; sys.modules.update(dict.fromkeys({absent})); import xtts_export.baseline.rerun"
    subprocess.run([sys.executable, "-c", code], check=True, cwd=builtin.REPOSITORY / "scripts")
