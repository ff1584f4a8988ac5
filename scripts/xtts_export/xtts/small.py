"""A small XTTS and data for it, for the tests."""

import json
import subprocess
import sys
from pathlib import Path

import librosa
import numpy as np
import torch
from torch import Tensor

from .. import inputs, session
from ..builtin import REPOSITORY
from ..module import Export
from . import dvae as coder
from . import mels
from .model import CODES_MORE, TEXT_MORE

CODES = 128
# model_args of coqui's config.json.
ARGUMENTS = {
    "gpt_layers": 2, "gpt_n_model_channels": 64, "gpt_n_heads": 2, "gpt_max_text_tokens": 130, "gpt_max_audio_tokens": 160,
    "gpt_number_text_tokens": 520, "gpt_num_audio_tokens": CODES + 2, "gpt_start_audio_token": CODES, "gpt_stop_audio_token": CODES + 1,
    "gpt_start_text_token": None, "gpt_stop_text_token": None, "gpt_use_perceiver_resampler": True,
}


def config(folder: Path, **changed: object) -> Path:
    """A config.json."""
    file = folder / "config.json"
    file.write_text(json.dumps({"model": "xtts", "model_args": ARGUMENTS | changed}))
    return file


def tokenizer(tokens: int = 520) -> dict:
    """As vocab.json, of letters."""
    special = ["[STOP]", "[UNK]", "[SPACE]", "[en]", "[START]"]
    letters = "abcdefghijklmnopqrstuvwxyz'.,!?-"
    words = {token: i for i, token in enumerate([*special, *letters, *(f"<{i}>" for i in range(tokens - len(special) - len(letters)))])}
    added = [{"id": i, "content": token, "special": True, "single_word": False, "lstrip": False, "rstrip": False, "normalized": False} for i, token in enumerate(special)]
    return {"version": "1.0", "truncation": None, "padding": None, "added_tokens": added, "normalizer": {"type": "Lowercase"},
            "pre_tokenizer": {"type": "Whitespace"}, "post_processor": None, "decoder": None,
            "model": {"type": "BPE", "dropout": None, "unk_token": "[UNK]", "continuing_subword_prefix": None, "end_of_word_suffix": None,
                      "fuse_unk": False, "vocab": words, "merges": []}}


def vocabulary(folder: Path, tokens: int = 520) -> Path:
    """A vocab.json."""
    file = folder / "vocab.json"
    file.write_text(json.dumps(tokenizer(tokens)), encoding="utf-8")
    return file


def dvae(folder: Path, codes: int = CODES) -> Path:
    """A dvae.pth, with a tensor of the decoder."""
    file = folder / "dvae.pth"
    torch.manual_seed(1)
    torch.save(coder.Encoder(codes, 16, 16).state_dict() | {"decoder.0.weight": torch.ones(2)}, file)
    return file


def shaken(export: Export) -> Export:
    """With noise in every weight: those that begin as 0 would hide errors in the gradients before them."""
    random = torch.Generator().manual_seed(5)
    with torch.no_grad():
        for p in export.module.parameters():
            p.add_(0.02 * torch.randn(p.shape, generator=random))
    return export


def batch(export: Export, lengths: list[tuple[int, int, int]]) -> dict[str, Tensor]:
    """Rows of these lengths of text, codes and conditioning, cleaned, with the denominators of the batch."""
    counts = dict(zip(("text_lengths", "code_lengths", "conditioning_lengths"), torch.tensor(lengths, dtype=torch.int32).T, strict=True))
    sizes = {"B": len(lengths)} | {name: int(x.max()) for name, x in zip(("T_text", "T_code", "T_cond"), counts.values(), strict=True)}
    made = inputs.batch(export.inputs, sizes, np.random.default_rng(7)) | counts
    rows = (counts["text_lengths"] > 0).sum()
    made["text_count"] = (counts["text_lengths"].sum() + TEXT_MORE * rows).float()
    made["code_count"] = (counts["code_lengths"].sum() + CODES_MORE * rows).float()
    return inputs.clean(export.inputs, made)


def graph(export: Export, folder: Path, given: dict[str, Tensor], seed: int = -1) -> dict[str, np.ndarray]:
    """What the training graph returns for the module's own weights."""
    weights = {name: p.detach().numpy() for name, p in export.module.named_parameters()}
    return session.run(session.load(folder / "training_model.onnx"), weights | session.batch_feed(export.inputs, [given[i.name] for i in export.inputs], seed))


def data(folder: Path) -> Path:
    """The clips of the sample, in lists with their language."""
    examples, sample = REPOSITORY / "scripts/examples", REPOSITORY / "host/data/dataset/sample/sample.zip"
    subprocess.run([sys.executable, examples / "aligned_data.py", sample, folder], check=True)
    for split in "train", "eval":
        file = folder / f"{split}.jsonl"
        rows = [json.loads(line) | {"language": "en"} for line in file.read_text(encoding="utf-8").splitlines()]
        file.write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")
    return folder


def recordings(folder: Path, split: str = "train") -> list[Tensor]:
    """The clips of a list of data, f32[1, T], at the rate of the model."""
    rows = [json.loads(line) for line in (folder / f"{split}.jsonl").read_text(encoding="utf-8").splitlines()]
    return [torch.from_numpy(librosa.load(row["audio_filepath"], sr=mels.RATE)[0])[None] for row in rows]
