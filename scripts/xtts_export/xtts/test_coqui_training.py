"""Runs beside coqui's own trainer, and the way back into its loader, as test_coqui.py."""

import copy
import dataclasses
import json
import shutil
from pathlib import Path

import pytest
import torch
from safetensors.torch import load_file
from torch import Tensor

from .. import convert, names
from ..baseline import rerun
from ..test_convert import host
from . import coqui, coqui_trainer, mels, small

pytestmark = pytest.mark.skipif(not coqui.available(), reason="coqui-tts is not installed: scripts/test-coqui.sh")

TOLERANCE = 1e-4
ROWS = [(12, 31, 20), (5, 4, 33), (30, 17, 7)]
STEPS = 100


def test_coquis_loader_takes_a_trained_file(made, clips, tmp_path):
    """A run of 20 steps, written into a file of coqui's whole model, loaded strictly: its loss is that of the trained weights here."""
    export, bundle, _ = made
    whole = coqui.whole(export.module.sizes)
    whole.gpt.load_state_dict(export.module.gpt.state_dict())
    base, back, run = tmp_path / "model.pth", tmp_path / "back.pth", tmp_path / "run"
    torch.save({"model": whole.state_dict()}, base)
    host("--graph", bundle, "--train-data", clips, "--batch-size", 4, "--max-steps", 20, "--lr", 0.001, "--eval-every", 0, "--run-dir", run)
    convert.to_torch(run, back, bundle, base=base)
    again = coqui.whole(export.module.sizes)
    again.load_checkpoint(again.config, checkpoint_path=str(back), vocab_path=small.vocabulary(tmp_path), eval=False, strict=True)
    gpt = coqui.without_dropout(again.gpt).train()
    batch = small.batch(export, ROWS)
    before = export.module.eval()(**batch)["loss"].item()
    trained = copy.deepcopy(export.module)
    trained.load_state_dict({f"gpt.{name}": x for name, x in gpt.state_dict().items()})
    ours = small.graph(dataclasses.replace(export, module=trained), bundle, batch)["loss"]
    with torch.no_grad():
        assert coqui.loss(gpt, batch).item() == pytest.approx(ours, rel=TOLERANCE)
    assert abs(before - ours) > 0.01


@pytest.fixture(scope="module")
def seconds(made, tmp_path_factory):
    """The bundle with references of one second. All clips are longer, so that spectrograms are equally long, as coqui's trainer makes them."""
    bundle = tmp_path_factory.mktemp("seconds") / "bundle"
    shutil.copytree(made[1], bundle)
    document = json.loads((bundle / "bundle.json").read_text())
    document["buckets"][0] |= {"T_ref": mels.RATE, "T_cond": 1 + mels.RATE // mels.HOP}
    (bundle / "bundle.json").write_text(json.dumps(document))
    return bundle


@pytest.mark.parametrize(("rate", "accumulate", "weighted", "limit"), [(5e-6, 2, False, 0.01), (1e-3, 1, False, 1e-4), (1e-3, 2, True, 1e-4)])
def test_a_run_follows_coquis_trainer(made, seconds, coder, clips, tmp_path, rate, accumulate, weighted, limit):
    """On the run's batches: with the recipe's rate, with one at which the loss falls, and with that and accumulation by the bundle's denominators."""
    export, *_ = made
    run, debug = tmp_path / "run", tmp_path / "debug"
    (debug / "batches").mkdir(parents=True)
    host("--graph", seconds, "--train-data", clips, "--batch-size", 4, "--accumulate", accumulate, "--max-steps", STEPS, "--lr", rate, "--eval-every", 0,
         "--run-dir", run, "--debug-dir", debug)
    theirs = coqui_trainer.trainer(export.module.sizes, seconds / "vocab.json", coder.folder, rate)
    theirs.xtts.gpt.load_state_dict(_initial(seconds), strict=True)
    ours = [json.loads(line)["loss"] for line in (run / "metrics.jsonl").read_text().splitlines()]
    want = list(coqui_trainer.train(theirs, _steps(debug / "batches", accumulate), weighted))
    worst = max(abs(a - b) / b for a, b in zip(ours, want, strict=True))
    print(f"rate {rate}, accumulate {accumulate}: loss {ours[0]:.3f} to {ours[-1]:.3f}, at most {worst:.1e} apart")
    assert len(want) == STEPS and worst <= limit
    assert rate < 1e-3 or ours[-1] < 0.6 * ours[0]


def test_the_bundle_decays_what_coqui_decays(made, seconds, coder):
    """But for the norm of the resampler, which is a vector that coqui does not take for a norm."""
    theirs = coqui_trainer.trainer(made[0].module.sizes, seconds / "vocab.json", coder.folder, 1e-3)
    decayed, _ = theirs.get_optimizer()._group_names
    document = json.loads((seconds / "bundle.json").read_text())
    embeddings = document["optimizer"]["groups"][0]["match"]
    ours = {p["name"].removeprefix("gpt.") for p in document["parameters"] if p.get("decay") and not names.match(embeddings, p)}
    assert set(decayed) ^ ours == {"conditioning_perceiver.norm.gamma"}


def _initial(bundle: Path) -> dict[str, Tensor]:
    """The GPT's weights before the run."""
    return {name.removeprefix("gpt."): x for name, x in load_file(bundle / "params.safetensors").items()}


def _steps(folder: Path, accumulate: int) -> list[list[dict[str, Tensor]]]:
    """The batches of each step that the program computed."""
    batches = [rerun.read(file)[0] for file in sorted(folder.glob("*.safetensors"))]
    return [batches[i:i + accumulate] for i in range(0, len(batches), accumulate)]
