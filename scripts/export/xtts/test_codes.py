"""The lists that codes.py writes."""

import json
import math

import numpy as np
import pytest
import soundfile
import torch
from safetensors.numpy import load_file

from . import codes, dvae, frozen, mels

RATE = 16000


@pytest.fixture(scope="module")
def made(tmp_path_factory):
    """A list of clips by two speakers and one of nobody, with two bad ones, and the weights."""
    folder = tmp_path_factory.mktemp("codes")
    torch.manual_seed(1)
    torch.save(dvae.Encoder(64, 16, 16).state_dict() | {"decoder.0.weight": torch.ones(2)}, folder / "dvae.pth")
    torch.save(torch.rand(mels.MELS) * 3 + 0.5, folder / "norms.pth")
    rows = []
    for i, (speaker, seconds) in enumerate([("a", 1.0), ("b", 0.7), ("a", 2.3), ("a", 7.5), (None, 0.6), ("a", 0.3)]):
        soundfile.write(folder / f"{i}.wav", 0.1 * np.random.default_rng(i).standard_normal(int(seconds * RATE)), RATE)
        rows.append({"audio_filepath": f"{i}.wav", "text": f"Clip {i}.", **({"speaker": speaker} if speaker else {})})
    rows.append({"audio_filepath": "missing.wav", "text": "?"})
    rows[3] |= {"offset": 0.5, "duration": 6.5}
    (folder / "train.jsonl").write_text("\n".join(map(json.dumps, rows)) + "\n\n")
    return folder


def arguments(folder, out) -> list[str]:
    return [str(folder / "train.jsonl"), str(out), "--dvae", str(folder / "dvae.pth"), "--mel-norms", str(folder / "norms.pth")]


def test_a_list(made, tmp_path, capsys):
    out = tmp_path / "new/train.jsonl"
    assert codes.main(arguments(made, out)) == 0
    said = capsys.readouterr().out
    assert "train.jsonl:6: 5.wav has 0.30 s, less than half a second" in said and "train.jsonl:7: missing.wav" in said and "5 clips" in said
    rows = [json.loads(line) for line in out.read_text().splitlines()]
    assert [row["text"] for row in rows] == [f"Clip {i}." for i in range(5)]
    assert all(row["audio_filepath"] == str(made / f"{i}.wav") for i, row in enumerate(rows))
    read = lambda reference: load_file(out.parent / reference.split("#")[0])[reference.split("#")[1]]
    samples = [math.ceil(seconds * mels.RATE) for seconds in (1.0, 0.7, 2.3, 6.5, 0.6)]
    for row, count in zip(rows, samples, strict=True):
        assert len(read(row["codes"])) == math.ceil(count / frozen.STRIDE)
    # The next clip of the speaker, six seconds of it; alone, its own.
    of = [samples[i] for i in (2, 1, 3, 0, 4)]
    assert [read(row["conditioning"]).shape for row in rows] == [(1 + min(n, 6 * mels.RATE) // mels.HOP, 80) for n in of]


def test_bad_files(made, tmp_path, capsys):
    given = arguments(made, tmp_path / "out.jsonl")
    cases = {
        "norms.pth holds no state_dict": [*given[:3], str(made / "norms.pth"), *given[4:]],
        "train.jsonl cannot be read": [*given[:3], str(made / "train.jsonl"), *given[4:]],
        "has no norms of 80 bands": [*given[:5], str(made / "dvae.pth")],
        "none.jsonl cannot be read": [str(made / "none.jsonl"), *given[1:]],
    }
    torch.save({"a": torch.ones(1)}, tmp_path / "other.pth")
    cases["other.pth is no DVAE of XTTS"] = [*given[:3], str(tmp_path / "other.pth"), *given[4:]]
    (tmp_path / "bad.jsonl").write_text('{"text": "x"}\n')
    cases["bad.jsonl:1: no audio_filepath"] = [str(tmp_path / "bad.jsonl"), *given[1:]]
    for message, wrong in cases.items():
        assert codes.main(wrong) == 2
        assert message in capsys.readouterr().err
