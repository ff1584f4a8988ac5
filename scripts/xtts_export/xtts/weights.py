"""The weights of coqui's files: what a file may hold beside them, and text tables with more rows than the file has."""

import dataclasses
from pathlib import Path

import torch
from torch import Tensor

from .. import foreign
from ..refusal import Refusal
from . import TEXT_TABLES
from .model import Sizes, XTTS

# coqui's trainer saves its whole model, in which XTTS is a part.
_TRAINER = "xtts."
_GPT = "gpt."
# Of a GPT that was prepared for inference: the same tensors under further names.
_COPIES = ("gpt.gpt_inference.", "gpt.gpt.wte.", "gpt.ds_engine.")
_SEED = 0


def read(file: Path) -> dict[str, Tensor]:
    """The state_dict of a .pth, under the names of XTTS. Raises Refusal."""
    try:
        model = foreign.read(file)
    except foreign.Unreadable as error:
        raise Refusal(str(error), "name a model.pth of XTTS v2, or a checkpoint of coqui's trainer") from error
    return {name.removeprefix(_TRAINER): x for name, x in model.items()}


def fit(sizes: Sizes, model: dict[str, Tensor]) -> Sizes:
    """The sizes with the rows of the file's text tables, if it has more of them than the vocabulary."""
    rows = len(model[TEXT_TABLES[0]]) if TEXT_TABLES[0] in model else 0
    return dataclasses.replace(sizes, text_tokens=max(sizes.text_tokens, rows))


def load(module: XTTS, model: dict[str, Tensor], file: Path) -> list[str]:
    """Loads the GPT of the file into the module; returns lines that say what was left out and added. Raises Refusal."""
    found = {name: x.float() for name, x in model.items() if name.startswith(_GPT) and not name.startswith(_COPIES)}
    lines = [f"{file}: {len(model) - len(found)} tensors are not of the GPT, and not trained"] if len(found) < len(model) else []
    rows = module.sizes.text_tokens
    if 0 < (had := min((len(found[name]) for name in TEXT_TABLES if name in found), default=0)) < rows:
        found |= {name: _grown(found[name], rows) for name in TEXT_TABLES if name in found}
        lines.append(f"{file}: {rows - had} rows were added to the text tables, for ids from {had}")
    try:
        foreign.load(module, found)
    except foreign.Unfit as error:
        raise Refusal(f"{file} does not fit: {error}", "give the config.json of this checkpoint: --config") from error
    return lines


def _grown(x: Tensor, rows: int) -> Tensor:
    """With further rows like those that it has: random, of the same mean and standard deviation in each column."""
    random = torch.Generator().manual_seed(_SEED)
    spread = torch.randn((rows - len(x), *x.shape[1:]), generator=random) * x.std(0)
    return torch.cat([x, x.mean(0) + spread])

