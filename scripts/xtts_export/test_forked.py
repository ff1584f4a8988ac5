"""Graphs that another process makes are the same, and what fails there is done again here."""

import os
import subprocess
import sys
import time
from pathlib import Path

import pytest
import torch
from torch import nn

from . import extremes, forked, joint, progress, verify, writer
from .refusal import Refusal
from .suite.case import SIZES, WIDTH, Case, exported, write


class Noisy(Case):
    def __init__(self):
        super().__init__()
        self.linear, self.dropout = nn.Linear(WIDTH, WIDTH), nn.Dropout(0.1)

    def forward(self, x):
        return self.dropout(self.linear(x)) * (0.5 if self.training else 1)


def written(folder, monkeypatch, cores):
    monkeypatch.setattr(forked, "possible", lambda: cores > 1)
    torch.manual_seed(0)
    export = exported(Noisy())
    export.eval_graph = True
    writer.write(export, folder)
    return {file.name: file.read_bytes() for file in folder.iterdir()}


def test_the_bundle_has_the_same_bytes(tmp_path, monkeypatch, capsys):
    here, traced = os.getpid(), []
    trace = joint.trace
    monkeypatch.setattr(joint, "trace", lambda *args, **options: traced.append(os.getpid()) or trace(*args, **options))
    apart = written(tmp_path / "two", monkeypatch, cores=2)
    assert traced == []
    assert apart == written(tmp_path / "one", monkeypatch, cores=1) and traced == [here] * 2
    first, second = (part.splitlines() for part in capsys.readouterr().out.split("Noisy: ")[1:])
    assert [line for line in first if "nodes" in line] == [line for line in second if "nodes" in line]


def test_what_fails_or_hangs_has_no_result(monkeypatch):
    linear = nn.Linear(2, 2)
    assert forked.Forked(lambda: [linear.weight.shape, os.getpid()], linear).result()[0] == (2, 2)
    assert forked.Forked(lambda: 1 / 0, linear).result() is None
    monkeypatch.setattr(forked, "_HANGS", 0.5)
    start = time.monotonic()
    assert forked.Forked(lambda: time.sleep(60), linear).result() is None and time.monotonic() - start < 30


def test_it_says_what_it_does():
    def work():
        progress.at("cleaned", 3, 10)
        time.sleep(20)

    made = forked.Forked(work, nn.Linear(2, 2))
    for _ in range(150):
        if made.line() == "cleaned (3 of 10)":
            break
        time.sleep(0.1)
    assert made.line() == "cleaned (3 of 10)"
    made.stop()
    with pytest.raises(ChildProcessError):
        os.waitpid(-1, os.WNOHANG)


def test_it_computes_gradients_after_prepare():
    """In a process that has computed none: only its first one counts."""
    code = """
import torch
from torch._subclasses.fake_tensor import FakeTensorMode
from xtts_export import forked

def gradient():
    x = torch.ones(2, requires_grad=True)
    x.sum().backward()
    return 1

forked.prepare()
with FakeTensorMode():
    gradient()
print(forked.Forked(gradient, torch.nn.Linear(1, 1)).result())
"""
    ran = subprocess.run([sys.executable, "-c", code], cwd=Path(__file__).parents[1], capture_output=True, text=True, check=True)
    assert ran.stdout == "1\n"


def _checked_by(check, path, monkeypatch):
    monkeypatch.setattr(forked, "gradients_possible", lambda: True)
    monkeypatch.setattr(extremes, "check", check)
    export, step = write(Noisy(), path)
    verify.check(export, step, SIZES[1][0], path)


def test_a_part_of_the_check_runs_apart(tmp_path, monkeypatch, capsys):
    _checked_by(lambda *_: progress.remark(f"process {os.getpid()}"), tmp_path / "x.onnx", monkeypatch)
    [line] = [line for line in capsys.readouterr().out.splitlines() if line.startswith("process")]
    assert line != f"process {os.getpid()}"


def test_what_it_refuses_is_refused(tmp_path, monkeypatch):
    def refuse(*_):
        raise Refusal("the graph differs", "look")

    with pytest.raises(Refusal, match="the graph differs"):
        _checked_by(refuse, tmp_path / "x.onnx", monkeypatch)
    with pytest.raises(ChildProcessError):
        os.waitpid(-1, os.WNOHANG)
