"""An output that is an input is refused before anything is written."""

import argparse
import os
from pathlib import Path

from xtts_export.places import overwritten


def test_overwritten(tmp_path: Path) -> None:
    for name in ("model.pt", "other.pt", "bundle/bundle.json", "run/checkpoints/step-000001/params.safetensors", "run/speech.wav"):
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text("x")
    (tmp_path / "link.pt").symlink_to("model.pt")
    os.link(tmp_path / "model.pt", tmp_path / "hard.pt")
    base, run, bundle = {"base": tmp_path / "model.pt"}, {"source": tmp_path / "run"}, {"bundle": tmp_path / "bundle"}
    for out, given, refused in (
        ("model.pt", base, "the file of --base"),
        ("link.pt", base, "the file"),
        ("hard.pt", base, "the file"),
        ("other.pt", base, ""),
        ("new.pt", base, ""),
        ("run", run, "the folder of SOURCE"),
        ("run/checkpoints/step-000001/params.safetensors", run, "a file of SOURCE"),
        ("run/speech.wav", run, ""),
        ("bundle/bundle.json", bundle, "a file of --bundle"),
        ("bundle", bundle, "the folder of --bundle"),
    ):
        got = overwritten(argparse.Namespace(out=tmp_path / out, **given, best=False, ema=None))
        assert (refused in got[0] and "--out" in got[1]) if refused else got is None, (out, got)
