"""What PyTorch has of the probes of a module, for a test of the host: a batch, and the values by the initial weights."""

from pathlib import Path

import numpy as np
import torch
from safetensors.torch import save_file
from torch import Tensor

from ..inputs import batch, clean
from ..module import Export
from ..probes import Probes

SIZES = {"B": 3, "T_text": 9, "T_mel": 23}


def values(export: Export) -> dict[str, Tensor]:
    """The batch by the names of the inputs, and the probes as probe.NAME."""
    # With padding, as a run has it.
    tensors = clean(export.inputs, batch(export.inputs, SIZES, np.random.default_rng(0)))
    probes = Probes(whole=True)
    with torch.no_grad(), probes.collected():
        export.module.eval()(**tensors)
    return tensors | probes.tensors


def write(export: Export, path: Path) -> None:
    save_file({name: x.contiguous() for name, x in values(export).items()}, path)
    # safetensors makes a file that only its owner reads.
    path.chmod(0o644)
