"""Graphs from the cache: the same bytes, and never those of another program."""

import contextlib
import dataclasses
import hashlib
import json
import os
import shutil
import subprocess
import sys
from pathlib import Path
from unittest import mock

import pytest
import torch
import torch.nn.functional as F
from torch import Tensor, nn

from . import cache, joint, writer
from .cache import Cache
from .inputs import schedule, sequence
from .module import Export, steps
from .recurrence import scan
from .refusal import Refusal
from .writer import dry_runs


class Small(nn.Module):
    """Has what decides about a graph in many places: constants, buffers, dropout, and a branch on the seed."""

    def __init__(self, width: int = 4, factor: float = 0.5, table: float = 0.25, evaluation: float = 2.0):
        super().__init__()
        torch.manual_seed(0)
        self.linear, self.dropout = nn.Linear(4, width), nn.Dropout(0.1)
        self.factor, self.evaluation = factor, evaluation
        self.register_buffer("table", torch.full((width,), table))

    def forward(self, x, seed):
        y = self.dropout(torch.tanh(self.linear(x))) * self.factor + self.table
        return y * self.evaluation if seed is None else y


def mean_square(outputs, batch, weight: float = 1.0) -> dict[str, Tensor]:
    valid = (torch.arange(outputs.shape[1])[None, :] < batch["lengths"][:, None]).float()
    loss = weight * (outputs.square().mean(-1) * valid).sum() / valid.sum().clamp(min=1)
    return {"loss": loss, "loss_weight": valid.sum()}


def mean_error(outputs, batch) -> dict[str, Tensor]:
    return mean_square(F.softplus(outputs), batch)


def export(loss=mean_square, bucket: int = 8, points=(), **options) -> Export:
    inputs = [*sequence("x", "f32", "T", 4, lengths="lengths"), *([schedule("weight", *points)] if points else [])]
    return Export(name="x", module=Small(**options), loss=loss, inputs=inputs, buckets=[{"T": bucket}], features={})


def contents(folder: Path) -> dict[str, bytes]:
    return {path.name: path.read_bytes() for path in folder.iterdir()}


def write(made: Export, folder: Path, kept: Cache, *precisions: str) -> dict[str, bytes]:
    writer.write(made, folder, ("f32", *precisions), cache=kept)
    return contents(folder)


@pytest.fixture(scope="module")
def filled(tmp_path_factory) -> tuple[Path, dict[str, bytes]]:
    """A cache that has the graphs of export(), and its bundle, written without a cache."""
    folder = tmp_path_factory.mktemp("cache")
    write(export(), folder / "bundle", Cache(folder / "entries"), "bf16")
    return folder / "entries", write(export(), folder / "fresh", Cache(None), "bf16")


def found(filled, made: Export, folder: Path) -> list[str]:
    """What the cache has of an export, until it lacks a graph."""
    kept = Cache(filled[0])
    with mock.patch.object(joint, "made", side_effect=Refusal("not in the cache", "")), contextlib.suppress(Refusal):
        writer.write(made, folder / "bundle", cache=kept)
    return kept.found


GRAPHS = ["training_model.onnx", "training_model.bf16.onnx", "eval_model.onnx"]


def test_an_unchanged_module_has_the_same_bytes(filled, tmp_path, capsys):
    kept = Cache(filled[0])
    assert write(export(), tmp_path / "bundle", kept, "bf16") == filled[1]
    assert kept.found == GRAPHS and f"cache: {', '.join(GRAPHS)} of 3 in {filled[0]}\n" in capsys.readouterr().out


def test_values_of_parameters_and_settings_need_no_other_graph(filled, tmp_path):
    made = dataclasses.replace(export(), optimizer={**export().optimizer, "lr": 1e-4}, description="other")
    with torch.no_grad():
        made.module.linear.weight.mul_(2)
    kept = Cache(filled[0])
    assert write(made, tmp_path / "cached", kept) == write(made, tmp_path / "fresh", Cache(None))
    assert kept.found == [GRAPHS[0], GRAPHS[2]]


@pytest.mark.parametrize(("change", "kept"), [
    ({"factor": 0.25}, []), ({"table": 0.5}, []), ({"width": 5}, []), ({"bucket": 9}, []), ({"loss": mean_error}, []),
    ({"loss": lambda outputs, batch: mean_square(outputs, batch, 0.5)}, []),
    # The training graph has a seed and never takes that branch.
    ({"evaluation": 3.0}, [GRAPHS[0]]),
], ids=["constant", "buffer", "shape", "bucket", "loss", "weight of the loss", "evaluation"])
def test_what_decides_about_a_graph_misses(filled, tmp_path, change, kept):
    assert found(filled, export(**change), tmp_path) == kept


def test_a_frozen_parameter_misses(filled, tmp_path):
    made = export()
    made.module.linear.bias.requires_grad_(False)
    assert found(filled, made, tmp_path) == []


def test_a_changed_schedule_needs_no_other_graph(tmp_path):
    def weighted(outputs, batch):
        return mean_square(outputs, batch, batch["weight"])

    kept = Cache(tmp_path / "entries")
    write(export(weighted, points=((0, 0), (10, 1))), tmp_path / "bundle", kept)
    write(export(weighted, points=((0, 1), (99, 5))), tmp_path / "bundle", kept)
    assert kept.found == [GRAPHS[0], GRAPHS[2]]


def test_another_exporter_misses(filled, tmp_path, monkeypatch):
    monkeypatch.setattr(cache, "exporter", lambda: "other sources")
    assert found(filled, export(), tmp_path) == []


def test_the_exporter_is_its_sources(tmp_path):
    def name() -> str:
        return cache.exporter.__wrapped__(tmp_path / "xtts_export")

    shutil.copytree(Path(cache.__file__).parent, tmp_path / "xtts_export", ignore=shutil.ignore_patterns("__pycache__"))
    before = cache.exporter()
    assert name() == before
    for apart in ("suite/case.py", "baseline/learn.py", "mutate/new.py", "test_new.py"):
        (tmp_path / "xtts_export" / apart).write_text("x = 1\n")
    assert name() == before
    (tmp_path / "xtts_export/clean/new.py").write_text("x = 1\n")
    assert name() != before


def damaged(data: bytes) -> list[bytes]:
    return [b"", data[:10], data[:-1], data[:-7] + b"x" + data[-6:], data.replace(b'"key": "', b'"key": "0', 1)]


def pair(notes: dict, graph: bytes) -> tuple[dict, bytes]:
    return notes, graph


def test_damaged_entries_are_ignored_with_a_line(tmp_path):
    kept = Cache(tmp_path)
    kept.put("a" * 64, {"before": 1}, b"graph\nof bytes")
    [entry] = tmp_path.iterdir()
    assert kept.get("a" * 64, "x.onnx", pair) == ({"before": 1}, b"graph\nof bytes")
    for data in damaged(entry.read_bytes()):
        entry.write_bytes(data)
        kept = Cache(tmp_path)
        assert kept.get("a" * 64, "x.onnx", pair) is None
        assert kept.report() == [f"cache: no graph of 1 in {tmp_path}", f"cache: {entry} is damaged and was not used"]
    # The entry of another key, under this one's name.
    kept.put("b" * 64, {}, b"other")
    os.replace(tmp_path / ("b" * 64 + ".graph"), entry)
    assert kept.get("a" * 64, "x.onnx", pair) is None


@pytest.mark.parametrize("content", [
    b"", b"[]\n", b"null\n", b"{}\n", b"\xff\n", {}, {"before": 1}, {"before": 1, "after": 1, "passes": {}, "other": 1}, {"before": 1, "after": 1, "passes": {}},
], ids=str)
def test_whole_entries_of_another_content_are_ignored_with_a_line(tmp_path, content):
    """Notes of other names, and at last a graph that is none."""
    key, kept = "a" * 64, Cache(tmp_path)
    if isinstance(content, dict):
        content = json.dumps({"key": key, **content}).encode() + b"\n\xffno graph"
    entry = tmp_path / f"{key}.graph"
    entry.write_bytes(hashlib.sha256(content).hexdigest().encode() + b"\n" + content)
    assert kept.get(key, "x.onnx", joint._kept) is None
    assert kept.remarks == [f"{entry} is damaged and was not used"] and kept.made == ["x.onnx"]


def test_a_truncated_entry_is_traced_again_and_replaced(tmp_path, capsys):
    kept = Cache(tmp_path / "entries")
    first = write(export(), tmp_path / "bundle", kept)
    for entry in kept.folder.iterdir():
        entry.write_bytes(entry.read_bytes()[:100])
    capsys.readouterr()
    assert write(export(), tmp_path / "bundle", Cache(kept.folder)) == first
    assert capsys.readouterr().out.count("is damaged and was not used") == 2
    assert write(export(), tmp_path / "bundle", last := Cache(kept.folder)) == first and last.found == [GRAPHS[0], GRAPHS[2]]


def test_a_graph_of_the_cache_is_checked(tmp_path):
    """A wrong graph under the right key: a cache that someone wrote to."""
    kept = Cache(tmp_path / "entries")
    other = write(export(factor=0.25), tmp_path / "other", Cache(None))
    write(export(), tmp_path / "bundle", kept)
    for entry in kept.folder.iterdir():
        notes, graph = cache._decoded(entry.stem, entry.read_bytes())
        kept.put(entry.stem, notes, other["training_model.onnx"])
    with pytest.raises(Refusal, match="of the graph differs from PyTorch's"):
        write(export(), tmp_path / "again", Cache(kept.folder))


def test_the_folder_stays_below_its_limit(tmp_path):
    kept = Cache(tmp_path, limit=2500)
    for i, name in enumerate("abc"):
        kept.put(name * 64, {}, bytes(1000))
        os.utime(tmp_path / (name * 64 + ".graph"), (i, i))
    kept.get("a" * 64, "x", pair)
    kept.put("d" * 64, {}, bytes(1000))
    assert sorted(path.name[0] for path in tmp_path.iterdir()) == ["c", "d"]


def test_what_is_larger_than_the_limit_is_not_written(tmp_path):
    kept = Cache(tmp_path, limit=2500)
    kept.put("a" * 64, {}, bytes(1000))
    kept.put("b" * 64, {}, bytes(2500))
    assert [path.name[0] for path in tmp_path.iterdir()] == ["a"]
    assert kept.remarks == ["a graph of 2500 bytes is not kept: all files may have 2500"]


def test_a_folder_that_cannot_be_written_is_no_error(tmp_path):
    (tmp_path / "file").touch()
    kept = Cache(tmp_path / "file")
    assert kept.get("a" * 64, "x", pair) is None
    kept.put("a" * 64, {}, b"graph")
    assert any("cannot be written" in line for line in kept.report())


def test_what_a_digest_would_not_cover_is_not_kept(tmp_path, capsys):
    class Sum(nn.Module):
        def __init__(self):
            super().__init__()
            self.weight = nn.Parameter(torch.ones(4))

        def forward(self, x):
            step = lambda carry, items, constants: ((carry[0] + items[0] * constants[0],), (carry[0],))
            return scan(step, (torch.zeros_like(x[:, 0]),), (x.transpose(0, 1),), (self.weight,))[1][0].transpose(0, 1)

    kept, made = Cache(tmp_path / "entries"), dataclasses.replace(export(), module=Sum())
    write(made, tmp_path / "bundle", kept)
    assert kept.found == kept.made == [] and "training_model.onnx is not kept: it has xtts_export.scan.default" in capsys.readouterr().out
    with mock.patch.object(joint, "_key") as key:
        write(made, tmp_path / "fresh", Cache(None))
    assert not key.called and "cache:" not in capsys.readouterr().out


def digest() -> str:
    made = export()
    [dry] = dry_runs(made, steps(made)).values()
    return f"{dry.program.digest()} {cache.exporter()}"


def test_another_process_finds_the_same_program():
    code = "from xtts_export import test_cache; print(test_cache.digest())"
    texts = {subprocess.run([sys.executable, "-c", code], env={**os.environ, "PYTHONHASHSEED": seed}, cwd=Path(__file__).parents[1],
                            capture_output=True, text=True, check=True).stdout for seed in "12"}
    assert texts == {f"{digest()}\n"}


@pytest.mark.parametrize(("environment", "folder"), [
    ({"XDG_CACHE_HOME": "/a"}, "/a/xtts-host/exports"), ({"HOME": "/b"}, "/b/.cache/xtts-host/exports"), ({"XDG_CACHE_HOME": "relative"}, None),
])
def test_the_folder_is_that_of_the_user(monkeypatch, environment, folder):
    monkeypatch.delenv("XDG_CACHE_HOME", raising=False)
    for name, value in environment.items():
        monkeypatch.setenv(name, value)
    assert cache.default_folder() == (folder and Path(folder))
