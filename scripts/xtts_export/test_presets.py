"""MyXTTS in its sizes: their counts, and the graphs of three of them against PyTorch eager."""

import json
from pathlib import Path

import numpy as np
import pytest
import torch

from . import builtin, bundle, large, model, presets, verify
from .command import main
from .inputs import batch
from .test_module import eager

# docs/export.md compares them with the original model's.
COUNTS = {
    "nano": (414_995, 67), "tiny": (84_177_747, 304), "small": (228_612_947, 449), "normal": (654_311_251, 593), "big": (1_462_821_459, 737),
    "base": (66_608_721, 329),
}


@pytest.mark.parametrize("name", presets.NAMES)
def test_counts(name):
    with torch.device("meta"):
        module = model.MyXTTS(presets.NANO) if name == "nano" else large.MyXTTS(presets.SIZES[name])
    parameters = list(module.parameters())
    assert (sum(p.numel() for p in parameters), len(parameters)) == COUNTS[name]


@pytest.fixture(scope="module", params=["nano", "tiny", "base"])
def exported(request, tmp_path_factory):
    """A preset and the folder that the command has made of it."""
    folder = tmp_path_factory.mktemp(request.param)
    precisions = builtin.precisions(Path(f"myxtts-{request.param}"))
    assert main(["myxtts", "--preset", request.param, "--out", str(folder), "--precision", ",".join(precisions)]) == 0
    return presets.build(request.param), folder


def test_gradients_are_autograds(exported):
    """One graph for every shape."""
    export, folder = exported
    graph = verify.Graph(export, folder / "training_model.onnx")
    for sizes, empty_row in (
        ({"B": 1, "T_text": 7, "T_mel": 19, "T_ref_mel": 12}, None),
        ({"B": 3, "T_text": 12, "T_mel": 31, "T_ref_mel": 5}, 1),
        ({"B": 2, "T_text": 25, "T_mel": 64, "T_ref_mel": 33}, None),
    ):
        tensors = batch(export.inputs, sizes, np.random.default_rng(sizes["B"]), empty_row)
        got = graph.run(tensors)
        scalars, gradients = eager(export, tensors)
        for name, want in scalars.items():
            assert got[name if name in got else "metric." + name] == pytest.approx(want, rel=1e-4), name
        norms = {name: np.linalg.norm(g) for name, g in gradients.items()}
        floor = 1e-6 * np.linalg.norm(list(norms.values()))
        errors = {name: np.linalg.norm(got["grad." + name] - g) / max(norms[name], floor) for name, g in gradients.items()}
        assert max(errors.values()) < 1e-4, max(errors.items(), key=lambda item: item[1])


def test_buckets_can_be_computed(exported):
    """By --buckets auto; the export has checked that the graphs take these lengths."""
    _, folder = exported
    assert json.loads((folder / "bundle.json").read_text())["dynamic"] == {"T_text": 512, "T_wav": 264704}


def test_embedded_bundle_is_the_commands(exported):
    export, folder = exported
    for kept in builtin.FOLDERS:
        if kept.name == export.name:
            for path in kept.iterdir():
                made = (folder / path.name).read_bytes()
                if path.name == bundle.INDEX:
                    # Of before the exporter had a number.
                    made = made.replace(f'  "exporter": {bundle.EXPORTER},\n'.encode(), b"")
                assert path.read_bytes() == made, path.name
