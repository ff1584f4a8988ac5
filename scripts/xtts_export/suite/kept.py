"""The graphs of the suite that the repository keeps for tests in Go."""

from pathlib import Path

import torch

from .case import write
from .recurrences import Ctc, Gru, PackedRows

FOLDER = Path(__file__).resolve().parents[3] / "ortgraphs/testdata/recurrences"
# Recurrences in both directions, over packed rows, and as losses.
CASES = (Gru, PackedRows, Ctc)


def write_all(folder: Path) -> None:
    folder.mkdir(exist_ok=True)
    for case in CASES:
        torch.manual_seed(0)
        write(case(), folder / f"{case.__name__}.onnx")
