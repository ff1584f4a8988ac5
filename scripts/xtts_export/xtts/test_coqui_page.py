"""docs/xtts-v2.md word for word: its commands and its Python, with coqui's files of a small model, in a folder whose name has a space and an umlaut."""

import json
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import librosa
import numpy as np
import pytest
import torch
from safetensors.torch import load_file

from ..builtin import REPOSITORY
from . import coqui, settings, small, vocoder

pytestmark = pytest.mark.skipif(not coqui.available(), reason="coqui-tts is not installed: scripts/test-coqui.sh")

PAGE = REPOSITORY / "docs/xtts-v2.md"
# Python reads this first. torchaudio compares the CUDA version that it was built with, of which nothing here runs anything.
CUSTOM = "import torch\ntorch.version.cuda = '13.0'\n"


def blocks(language: str) -> list[str]:
    return re.findall(rf"^```{language}\n(.*?)^```$", PAGE.read_text(encoding="utf-8"), re.MULTILINE | re.DOTALL)


@pytest.fixture(scope="module")
def reader(tmp_path_factory):
    """The folder of a reader of the page, after its commands: the program, the exporter, coqui's Python, its files, and clips."""
    folder = tmp_path_factory.mktemp("page") / "Stimme für mich"
    for part in ("xtts", "clips", ".cache/venv-mine/bin", "home"):
        (folder / part).mkdir(parents=True)
    for part in ("bin", "plugins"):
        (folder / part).symlink_to(REPOSITORY / part)
    (folder / "home/coqui").symlink_to(Path(sys.executable).parent.parent)
    command = folder / ".cache/venv-mine/bin/xtts-export"
    command.write_text(f"#!/bin/sh\nexec '{sys.executable}' -m xtts_export \"$@\"\n")
    command.chmod(0o755)
    (folder / "home/sitecustomize.py").write_text(CUSTOM)
    _files(folder / "xtts")
    small.data(folder / "clips")
    shutil.copy(next((folder / "clips").rglob("*.wav")), folder / "me.wav")
    # The commands as they are, with few steps, on the CPU.
    environment = os.environ | {
        "HOME": str(folder / "home"), "PYTHONPATH": os.pathsep.join(map(str, (folder / "home", REPOSITORY / "scripts"))), "XDG_CACHE_HOME": str(REPOSITORY / ".cache"), "XTTS_HOST_DEVICE": "cpu",
        "XTTS_HOST_MAX_STEPS": "2"}
    shell = "set -euxo pipefail\n" + "\n".join(blocks("sh"))
    done = subprocess.run(["bash", "-c", shell], cwd=folder, env=environment, capture_output=True, text=True)
    assert done.returncode == 0, done.stdout[-3000:] + done.stderr[-3000:]
    return folder, environment


def _files(folder: Path) -> None:
    """A whole model of coqui's class with a small GPT, and what its trainer has beside it."""
    vocabulary = small.vocabulary(folder)
    config = small.config(folder, decoder_input_dim=small.ARGUMENTS["gpt_n_model_channels"])
    torch.manual_seed(0)
    torch.save({"model": coqui.whole(settings.read(config, vocabulary)).state_dict()}, folder / "model.pth")
    small.dvae(folder)
    torch.save(torch.rand(80) + 1, folder / "mel_stats.pth")


def test_the_commands_train_and_speak(reader):
    folder, _ = reader
    for run in ("runs/xtts", "runs/lora"):
        losses = [json.loads(line)["loss"] for line in (folder / run / "metrics.jsonl").read_text().splitlines()]
        assert len(losses) == 2 and np.isfinite(losses).all()
    for name in ("hello.wav", "adapted.wav"):
        wave, rate = librosa.load(folder / name, sr=None)
        assert rate == vocoder.RATE and len(wave) > rate / 10 and np.isfinite(wave).all()
    # The second run found the codes of the first.
    stages = {stage["name"]: stage for stage in json.loads((folder / "runs/lora/report.json").read_text())["feature_cache"]["stages"]}
    assert stages["codes"]["hits"] and not stages["codes"]["misses"]


def test_coquis_class_loads_the_tuned_files(reader):
    """By the page's own lines of Python, which then speak."""
    folder, environment = reader
    [code] = blocks("python")
    before = torch.load(folder / "xtts/model.pth", weights_only=True)["model"]
    for name in ("runs/xtts-tuned.pth", "runs/merged.pth"):
        after = torch.load(folder / name, weights_only=True)["model"]
        changed = {key for key, x in before.items() if not torch.equal(x, after[key])}
        assert after.keys() == before.keys() and changed and all(key.startswith("gpt.") for key in changed)
        script = code.replace("runs/xtts-tuned.pth", name) + "print(sum(x.numel() for x in model.gpt.state_dict().values()))\n"
        subprocess.run([folder / "home/coqui/bin/python", "-c", script], cwd=folder, env=environment, check=True)
    assert all(".lora_" in key for key in load_file(folder / "runs/peft/adapter_model.safetensors"))
