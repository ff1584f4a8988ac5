"""Scalars that the host computes: schedules, and the totals of a step for losses with denominators of their own."""

import json
import shutil

import pytest
import torch
from safetensors.torch import load_file
from torch import nn

from . import checkpoint, presets, writer
from .inputs import schedule, sequence, window
from .module import Export
from .test_convert import host, same

MELS = 20


class Terms(nn.Module):
    """One term for each token, one for each frame."""

    def __init__(self):
        super().__init__()
        self.table, self.token, self.frame = nn.Embedding(64, 6), nn.Linear(6, 1), nn.Linear(MELS, MELS)

    def forward(self, text_sequences, mel_spectrograms):
        return self.token(self.table(text_sequences)).squeeze(-1), self.frame(mel_spectrograms)


def loss(outputs, batch):
    tokens, frames = outputs
    text, mel = batch["text_lengths"], batch["mel_lengths"]
    inside = (torch.arange(tokens.shape[1])[None, :] < text[:, None]).float()
    within = (torch.arange(frames.shape[1])[None, :] < mel[:, None]).float()
    token = ((tokens - 1).square() * inside).sum() / batch["tokens"]
    frame = ((frames - batch["mel_spectrograms"]).abs().mean(-1) * within).sum() / batch["frames"]
    counted = ((text + mel).sum() > 0).float()
    share = (text + (text > 0)).sum() / batch["tokens"]
    return {"loss": token + batch["frame_weight"] * frame, "loss_weight": counted, "token_loss": token, "frame_loss": frame, "share": share}


def export() -> Export:
    torch.manual_seed(2)
    pico = presets.pico()
    return Export(
        name="terms", module=Terms(), loss=loss, buckets=[pico.buckets[-1]], features=pico.features, tokenizer=pico.tokenizer,
        inputs=[*sequence("text_sequences", "i32", "T_text", lengths="text_lengths", below=64),
                *sequence("mel_spectrograms", "f32", "T_mel", MELS, lengths="mel_lengths", origin="stage"),
                window("tokens", "text_lengths", per_row=1), window("frames", "mel_lengths"), schedule("frame_weight", (0, 0.5), (4, 2.5))],
        pipeline=pico.pipeline[:1], accumulation="weighted", schedule={"name": "constant"},
        optimizer={"name": "sgd", "lr": 0.1, "momentum": 0.9, "weight_decay": 0.0, "grad_clip": 0.0})


@pytest.fixture(scope="module")
def graphs(tmp_path_factory):
    folder = tmp_path_factory.mktemp("terms") / "bundle"
    writer.write(export(), folder)
    return folder


def lines(run, name: str = "metrics.jsonl") -> list[dict]:
    return [json.loads(line) for line in (run / name).read_text().splitlines()]


def test_four_batches_are_one(graphs, tmp_path):
    """All rows as one batch, and in four, the last of which has empty rows: the same losses, metrics and weights."""
    whole, parts = tmp_path / "whole", tmp_path / "parts"
    common = ("--graph", graphs, "--max-steps", 6, "--eval-every", 0)
    host(*common, "--batch-size", 18, "--run-dir", whole)
    host(*common, "--batch-size", 5, "--accumulate", 4, "--run-dir", parts)
    for a, b in zip(lines(whole), lines(parts), strict=True):
        assert (a["samples"], a["frames"]) == (b["samples"], b["frames"]) and a["samples"] == 18
        # The denominator counts each row's tokens and one more, those of empty rows not.
        assert a["share"] == pytest.approx(1) and b["share"] == pytest.approx(1)
        for key in ("loss", "token_loss", "frame_loss", "grad_norm"):
            assert b[key] == pytest.approx(a[key], rel=1e-5), key
    one, four = (load_file(run / "checkpoints/step-000006" / checkpoint.PARAMS) for run in (whole, parts))
    assert all((one[name] - four[name]).norm() <= 1e-5 * one[name].norm() for name in one)


def test_schedules_are_shown_and_resumed(graphs, tmp_path):
    run, again = tmp_path / "run", tmp_path / "again"
    host("--graph", graphs, "--batch-size", 3, "--accumulate", 2, "--max-steps", 6, "--checkpoint-every", 3, "--run-dir", run)
    assert [line["frame_weight"] for line in lines(run)] == [0.5, 1.0, 1.5, 2.0, 2.5, 2.5]
    assert {line["frame_weight"] for line in lines(run, "eval.jsonl")} == {2.5}
    shutil.copytree(run, again)
    shutil.rmtree(again / "checkpoints/step-000006")
    host("--resume", again)
    same(run / "checkpoints/step-000006", again / "checkpoints/step-000006")
    assert [line["frame_weight"] for line in lines(again)] == [0.5, 1.0, 1.5, 2.0, 2.5, 2.5]
