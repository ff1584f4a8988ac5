"""Runs of the program beside PyTorch, and what the comparison finds: bin/xtts-host must be built."""

import math
import wave

import numpy as np
import pytest
import torch
from torch import nn

from .. import builtin
from . import beside

EXAMPLES = builtin.REPOSITORY / "scripts/examples"
# The smallest VITS: noise, alignment search, a random segment, two players with schedules of their own.
VITS = f"""
import sys
from dataclasses import replace

sys.path.insert(0, {str(EXAMPLES)!r})
import vits


def build():
    s = vits.SMALL
    export = vits.build(replace(s, decoder=replace(s.decoder, width=8, dilations=(1,)), posterior=1, flows=1,
                                critics={{"width": 4, "periods": (2,), "scales": (), "layers": 1}}))
    players = dict(export.players)
    players["discriminator"] = replace(players["discriminator"], optimizer={{**players["discriminator"].optimizer, "lr": 1e-3}},
                                       schedule={{"name": "constant", "warmup_steps": 4}})
    return replace(export, players=players, buckets=export.buckets[1:], eval_graph=False)
"""
CODES = """
from xtts_export import examples


def build():
    export = examples.code_model()
    plain = export.loss
    export.loss = lambda logits, batch: (lambda r: {**r, "loss": SCALE * r["loss"]})(plain(logits, batch))
    return export
"""


def test_both_players_of_vits_train_as_in_pytorch(tmp_path, capsys):
    (tmp_path / "small.py").write_text(VITS)
    [judge, make] = beside.compare(f"{tmp_path}/small.py:build", tmp_path, steps=8, batch_size=3)
    assert (judge.player, make.player) == ("discriminator", "generator")
    for losses in (judge, make):
        assert losses.difference() < 1e-4 and 0 < losses.rounding() < 1e-4 and len(set(losses.host)) == 8
    assert not (tmp_path / "vits/debug").exists()


def test_another_loss_is_found(tmp_path, capsys):
    """The builder that made the bundle agrees; one whose loss is 2 % larger does not, and the bundle stays."""
    file, arguments = tmp_path / "codes.py", [f"{tmp_path}/codes.py:build", "--work", str(tmp_path), "--steps", "5"]
    file.write_text(CODES.replace("SCALE", "1.0"))
    assert beside.main(arguments) == 0
    before = (tmp_path / "code-model/bundle/bundle.json").read_bytes()
    row = capsys.readouterr().out.splitlines()[-1]
    assert row.startswith("| code-model | - |") and float(row.split("|")[-5]) < 1e-5
    # On a data set, through the program's pipeline.
    data = _data(tmp_path / "data")
    of_data = [*arguments, "--batch-size", "2", "--list-layout", "last-column", "--train-data"]
    assert beside.main([*of_data, data]) == 0
    assert float(capsys.readouterr().out.splitlines()[-1].split("|")[-5]) < 1e-5
    assert data in "".join(f.read_text(errors="ignore") for f in (tmp_path / "code-model/run").glob("*.json*"))
    with pytest.raises(SystemExit, match="no-data"):
        beside.main([*of_data, f"{tmp_path}/no-data"])
    file.write_text(CODES.replace("SCALE", "1.0200"))
    assert beside.main(arguments) == 1
    assert math.isclose(float(capsys.readouterr().out.splitlines()[-1].split("|")[-5]), 0.02, rel_tol=0.05)
    assert (tmp_path / "code-model/bundle/bundle.json").read_bytes() == before


def _data(folder):
    """A data set as LJSpeech has it."""
    (folder / "wavs").mkdir(parents=True)
    noise = np.random.default_rng(0)
    for n in range(6):
        with wave.open(f"{folder}/wavs/clip{n}.wav", "wb") as file:
            file.setparams((1, 2, 22050, 0, "NONE", ""))
            file.writeframes((noise.standard_normal(22050 + 1000 * n) * 3000).astype(np.int16).tobytes())
    (folder / "metadata.csv").write_text("".join(f"clip{n}|Clip number {n}.\n" for n in range(6)))
    return str(folder)


def test_the_second_loop_is_rounded_otherwise():
    module = nn.Linear(3, 4)
    before = [p.clone() for p in module.parameters()]
    assert list(beside.nudging(module, iter("ab"))) == ["a", "b"]
    for p, q in zip(before, module.parameters(), strict=True):
        assert (p != q).any() and torch.allclose(p, q, rtol=3e-7, atol=0)


def test_a_difference_is_judged_by_the_limit_and_by_rounding():
    of = lambda host, rounded: beside.Losses("m", "", [1.0] * 30 + host, [1.0] * 33, [1.0] * 30 + rounded)
    assert of([1.009, 1, 1], [1.0, 1, 1]).within(0.01)
    assert not of([1.02, 1, 1], [1.009, 1, 1]).within(0.01)
    assert of([1.02, 1, 1], [1.011, 1, 1]).within(0.01)
    assert not of([1.1, 1.1, 1.1], [1.1, 1.1, 1.1]).within(0.01)  # the mean of the last ones
