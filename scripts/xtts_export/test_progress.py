"""The exporter says every second what it does."""

import io
import re
import sys
import time
from types import SimpleNamespace

import pytest
import torch
from torch import nn

from . import command, forked, progress, writer
from .suite.case import WIDTH, Case, exported


class Small(Case):
    def __init__(self):
        super().__init__()
        self.first, self.norm, self.last = nn.Linear(WIDTH, WIDTH), nn.BatchNorm1d(WIDTH), nn.Linear(WIDTH, WIDTH)

    def forward(self, x):
        return self.last(self.norm(torch.relu(self.first(x)).transpose(1, 2)).transpose(1, 2))


class Terminal(io.StringIO):
    def isatty(self):
        return True


@pytest.fixture
def notes(monkeypatch):
    """What each phase noted, in its order."""
    noted: dict[str, list[str]] = {}
    for name in ("at", "operator"):
        def told(*args, original=getattr(progress, name), **kwargs):
            original(*args, **kwargs)
            if progress._running:
                noted.setdefault(progress._running.name, []).append(progress._running.now())
        monkeypatch.setattr(progress, name, told)
    return noted


@pytest.mark.parametrize("cores", [1, 2])
def test_no_phase_is_silent(cores, notes, tmp_path, monkeypatch, capsys):
    monkeypatch.setattr(forked, "possible", lambda: cores > 1)
    torch.manual_seed(0)
    export = exported(Small())
    export.eval_graph = True
    writer.write(export, tmp_path / "bundle", ("f32", "bf16"))
    phases = re.findall(r"^(.+?) \.\.\. (?:.*\n)*?.*?[\d.]+ s$", capsys.readouterr().out, re.MULTILINE)
    assert {"dry run", "training graph", "training graph in bf16", "eval graph", "weights", "bundle.json", "verify", "verify bf16", "verify evaluation"} == set(phases)
    assert notes.keys() == set(phases)
    if cores > 1:
        # What another process does is noted there.
        return
    expected = {
        "dry run": (r"forward of first \(1 of 3 parts\)", r"gradients, aten\.\S+ \([\d,]+ of [\d,]+\)", "on a batch of numbers"),
        "training graph": (r"traced, forward of last \(3 of 3 parts\)", r"traced, gradients, aten\.\S+ \([\d,]+ of [\d,]+\)", r"to ONNX, aten\.\S+ \(\d+ of \d+\)",
                           r"tidied \(\d+ of \d+\)", r"cleaned, round 1, gemm \(5 of 10\)"),
        "verify": (r"one row \(1 of 6\), the graph", r"PyTorch's gradient of first.weight \(\d of 6\)", r"what the loss counts, run \(\d+ of 13\)", r"state \(5 of 6\)"),
        "verify bf16": ("PyTorch in bf16", "PyTorch in f32"),
        "bundle.json": (r"cost of a step in bucket \(2 of 2\)", r"hash of params.safetensors \(\d of \d\)"),
    }
    for phase, patterns in expected.items():
        for pattern in patterns:
            assert any(re.search(pattern, note) for note in notes[phase]), (phase, pattern, set(notes[phase]))
    # Numbers grow to their end.
    for phase, kind in (("dry run", "gradients"), ("training graph", "gradients"), ("training graph", "to ONNX")):
        found = [tuple(map(int, m)) for note in notes[phase] if kind in note for m in re.findall(r"\((\d+) of (\d+)\)", note)]
        assert all(n <= of for n, of in found) and found[-1][0] >= 0.8 * found[-1][1], (phase, kind, found[-5:])


def test_one_line_of_a_terminal_is_written_anew(monkeypatch):
    monkeypatch.setattr(progress, "TERMINAL", 0.02)
    monkeypatch.setattr(sys, "stdout", Terminal())
    with progress.phase("trace"):
        progress.at("cleaned", 3, 10)
        time.sleep(0.3)
        progress.remark("a remark")
        time.sleep(0.1)
    screen = sys.stdout.getvalue()
    assert screen.count("\n") == 2 and screen.count("\r\x1b[K\rtrace ... cleaned (3 of 10), 0 s") >= 2, screen
    assert "\r\x1b[Ka remark\n" in screen and re.search(r"\r\x1b\[Ktrace \.\.\. \d\.\d s\n$", screen), screen


def test_lines_follow_each_other_in_a_pipe(monkeypatch, capsys):
    monkeypatch.setattr(progress, "PIPE", 0.05)
    with progress.phase("trace"):
        progress.at("cleaned", 3, 10)
        time.sleep(0.3)
    first, *lines, last = capsys.readouterr().out.splitlines()
    assert first == "trace ... " and re.fullmatch(r"trace \.\.\. \d\.\d s", last)
    assert len(lines) >= 2 and set(lines) == {"  cleaned (3 of 10), 0 s"}, lines


def test_a_short_phase_is_one_line(capsys):
    with progress.phase("weights"):
        pass
    with pytest.raises(ValueError), progress.phase("weights"):
        raise ValueError
    assert re.fullmatch(r"weights \.\.\. 0\.\d s\nweights \.\.\. failed\n", capsys.readouterr().out)


def test_the_host_is_waited_for_with_a_line(monkeypatch, capsys, tmp_path):
    monkeypatch.setattr(progress, "PIPE", 0.05)
    host = tmp_path / "host"
    host.write_text("#!/bin/sh\nsleep 0.5\necho read\n")
    host.chmod(0o755)
    command._inspect(tmp_path, SimpleNamespace(host=str(host), out=tmp_path))
    assert re.search(r"inspect \.\.\. \n(  the host reads the bundle as a run would, 0 s\n){2}", capsys.readouterr().out)


def test_an_interrupt_ends_without_a_traceback(monkeypatch, capsys, tmp_path):
    def interrupted(*_, **__):
        raise KeyboardInterrupt

    monkeypatch.setattr(writer, "write", interrupted)
    out = tmp_path / "out"
    assert command.main(["module", "xtts_export.examples:code_model", "--out", str(out)]) == 130
    assert capsys.readouterr().err == "interrupted\n" and not out.exists()
