"""Inputs from the data set's list: the bundle that scripts/examples/aligned_speech.py becomes, trained on the list that
aligned_data.py makes of the sample. bin/xtts-host must be built.
"""

import json
import os
import shutil
import subprocess
import sys

import numpy as np
import pytest
import torch

from .builtin import REPOSITORY
from .command import main
from .inputs import Input, batch, clean
from .test_convert import host, same

EXAMPLES = REPOSITORY / "scripts/examples"


@pytest.fixture(scope="module")
def bundle(tmp_path_factory):
    folder = tmp_path_factory.mktemp("aligned") / "bundle"
    assert main(["module", f"{EXAMPLES}/aligned_speech.py:build", "--out", str(folder)]) == 0
    return folder


@pytest.fixture(scope="module")
def data(tmp_path_factory):
    folder = tmp_path_factory.mktemp("aligned") / "data"
    subprocess.run([sys.executable, EXAMPLES / "aligned_data.py", REPOSITORY / "host/data/dataset/sample/sample.zip", folder], check=True)
    return folder


def metrics(run):
    return [json.loads(line)["loss"] for line in (run / "metrics.jsonl").read_text().splitlines() if "loss" in line]


def test_the_bundle_declares_them(bundle):
    document = json.loads((bundle / "bundle.json").read_text())
    inputs = {i["name"]: i for i in document["inputs"]}
    assert inputs["phonemes"] == {"name": "phonemes", "dtype": "i32", "shape": ["B", "T_phone"], "pad": 0, "lengths": "phoneme_lengths", "origin": "column",
                                  "column": "phonemes", "vocabulary": "phonemes.vocabulary.json", "split": "space"}
    assert inputs["phoneme_lengths"] == {"name": "phoneme_lengths", "dtype": "i32", "shape": ["B"], "origin": "column"}
    assert (inputs["durations"]["origin"], inputs["durations"]["below"]) == ("file", 200)
    assert json.loads((bundle / "speaker.vocabulary.json").read_text()) == {"A": 0, "B": 1}
    assert "phonemes.vocabulary.json" in document["files"]


def test_a_run_learns_from_them_and_is_resumed(bundle, data, tmp_path):
    run, again = tmp_path / "run", tmp_path / "again"
    flags = ("--graph", bundle, "--train-data", data, "--batch-size", 4)
    host(*flags, "--max-steps", 12, "--checkpoint-every", 6, "--run-dir", run)
    losses = metrics(run)
    assert losses[-1] < 0.5 * losses[0]
    shutil.copytree(run, again)
    shutil.rmtree(again / "checkpoints/step-000012")
    host("--resume", again)
    same(run / "checkpoints/step-000012", again / "checkpoints/step-000012")


def test_other_durations_are_another_data_set(bundle, data, tmp_path):
    run = tmp_path / "run"
    host("--graph", bundle, "--train-data", data, "--batch-size", 4, "--max-steps", 2, "--run-dir", run)
    file = data / "durations/A-0001.npy"
    kept = file.read_bytes()
    try:
        np.save(file, np.load(file)[::-1])  # as many
        done = program("--plugins", "plugins", "--resume", run, "--max-steps", "4")
        assert done.returncode == 2 and "--allow data" in done.stderr
        np.save(file, np.load(file)[1:])
        done = program("data", "check", data, "--graph", bundle)
        assert done.returncode == 0 and "line 1, A/0001: durations has the length 31, but phonemes has 32: phoneme_lengths counts both" in done.stdout
    finally:
        file.write_bytes(kept)


def program(*arguments):
    return subprocess.run([REPOSITORY / "bin/xtts-host", *arguments], cwd=REPOSITORY, capture_output=True, text=True, timeout=300,
                          env={**os.environ, "XTTS_HOST_DEVICE": "cpu", "XDG_CACHE_HOME": str(REPOSITORY / ".cache")})


def test_batches_of_every_type():
    inputs = [Input("n", "i32", ("B",), origin="column"), *(Input(t, t, ("B", "T"), lengths="n", pad=pad, origin="file", column=t, below=below)
              for t, pad, below in (("u8", 7, 200), ("bool", 1, None), ("i32", -1, 9), ("f32", 0.5, None)))]
    made = clean(inputs, batch(inputs, {"B": 3, "T": 40}, np.random.default_rng(1), empty_row=1))
    assert [x.dtype for x in made.values()] == [torch.int32, torch.uint8, torch.bool, torch.int32, torch.float32]
    assert made["u8"].max() > 100 and made["bool"].any() and not made["bool"].all()
    assert [x[1, 0].item() for name, x in made.items() if name != "n"] == [7, True, -1, 0.5]
