"""A training graph that is traced beside the dry run is the same, and what the dry run finds otherwise is traced again."""

import os

import pytest
import torch
from torch import nn

from . import forked, joint, writer
from .refusal import Refusal
from .suite.case import WIDTH, Case, exported


class Plain(Case):
    def __init__(self):
        super().__init__()
        self.linear = nn.Linear(WIDTH, WIDTH)

    def forward(self, x):
        return self.linear(x)


class Counted(Plain):
    """The buffer is state, which the first dry run finds."""

    def __init__(self):
        super().__init__()
        self.register_buffer("seen", torch.zeros(WIDTH))

    def forward(self, x, lengths):
        if self.training:
            inside = torch.arange(x.shape[1]) < lengths[:, None]
            self.seen += (x.detach() * inside[..., None]).sum((0, 1)) / lengths.sum().clamp(min=1)
        return self.linear(x) + self.seen


class Branch(Plain):
    def forward(self, x):
        return self.linear(x) if x.sum() > 0 else x


@pytest.fixture
def traced(monkeypatch):
    """The traces of this process."""
    traced, trace = [], joint.trace
    monkeypatch.setattr(joint, "trace", lambda *args, **options: traced.append(os.getpid()) or trace(*args, **options))
    return traced


def written(case, folder, monkeypatch, cores):
    monkeypatch.setattr(forked, "possible", lambda: cores > 1)
    torch.manual_seed(0)
    export = exported(case())
    export.eval_graph = True
    writer.write(export, folder)
    return {file.name: file.read_bytes() for file in folder.iterdir()}


@pytest.mark.parametrize(("case", "graphs"), [(Plain, 1), (Counted, 2)])
def test_the_bundle_has_the_same_bytes(case, graphs, tmp_path, monkeypatch, traced):
    """The eval graph of state is traced for itself."""
    apart = written(case, tmp_path / "two", monkeypatch, cores=2)
    assert not traced
    assert apart == written(case, tmp_path / "one", monkeypatch, cores=1) and len(traced) == graphs


def test_problems_are_those_of_the_dry_run(tmp_path, monkeypatch, traced):
    with pytest.raises(Refusal, match="chooses a branch"):
        written(Branch, tmp_path / "x", monkeypatch, cores=2)
    assert not traced
    with pytest.raises(ChildProcessError):
        os.waitpid(-1, os.WNOHANG)
