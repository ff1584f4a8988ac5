"""Checkpoints of xtts-host (Go package host/train/checkpoint): read when every byte is what was saved, and written with the host's bytes.

    checkpoints/step-000200/
        params.safetensors      trained weights, f32, under their PyTorch names
        optimizer.safetensors   the optimizer's state: exp_avg.<parameter>, momentum_buffer.<parameter>, ...
        ema.safetensors         moving averages of the trained weights, of a run with --ema
        state.json              counters, schedule, quarantine, hashes of what changes numbers
        MANIFEST                SHA-256 of these files, and of the frozen weights
    checkpoints/frozen-<SHA-256>.safetensors
                                weights that the run freezes, if it does: shared by its checkpoints

Version 1 had all weights in params.safetensors, and moments, which are zero, of frozen ones too.
"""

import hashlib
import json
import re
import sys
from dataclasses import dataclass, field
from pathlib import Path

import torch
from safetensors import SafetensorError
from safetensors.torch import load_file

FOLDER = "checkpoints"
PARAMS, MOMENTS, STATE, MANIFEST = "params.safetensors", "optimizer.safetensors", "state.json", "MANIFEST"
AVERAGES = "ema.safetensors"
VERSIONS = 1, 2

_NAME = re.compile(r"step-(\d{6,})(?:\.old)?")
_SHARED = re.compile(r"[0-9a-f]{64}  (\.\./frozen-[0-9a-f]{64}\.safetensors)\n")


class Refused(Exception):
    """The given file or folder cannot be used; hint says what to do."""

    def __init__(self, reason: str, hint: str):
        super().__init__(reason)
        self.hint = hint


@dataclass(frozen=True)
class Checkpoint:
    """One checkpoint, verified. state is the text of state.json, for that alone gives the same bytes again."""

    path: Path
    params: dict[str, torch.Tensor]  # frozen ones too
    moments: dict[str, torch.Tensor]
    state: str
    frozen: frozenset[str] = frozenset()  # names of the weights that the run freezes; empty in version 1
    averages: dict[str, torch.Tensor] = field(default_factory=dict)  # of the trained weights; empty without --ema

    @property
    def counters(self) -> dict:
        """state.json, parsed."""
        return json.loads(self.state)

    @property
    def settings(self) -> str:
        """The text of the run's config.yaml, empty for a checkpoint that is in no run's folder."""
        file = self.path.resolve().parents[1] / "config.yaml"
        return file.read_text(encoding="utf-8") if file.is_file() else ""


def load(path: Path) -> Checkpoint:
    """The checkpoint in a folder. Refused if a file is missing or is not what MANIFEST says."""
    try:
        manifest = (path / MANIFEST).read_text(encoding="utf-8")
        shared = _SHARED.match(manifest)
        shared = path / shared[1] if shared else None
        if manifest != _manifest(path, shared):
            raise ValueError(f"the SHA-256 of a file does not match {MANIFEST}")
        frozen = load_file(shared) if shared else {}
        state = (path / STATE).read_text(encoding="utf-8")
        averages = load_file(path / AVERAGES) if (path / AVERAGES).is_file() else {}
        found = Checkpoint(path, {**load_file(path / PARAMS), **frozen}, load_file(path / MOMENTS), state, frozenset(frozen), averages)
        if found.counters["version"] not in VERSIONS:
            raise ValueError(f"{STATE} has version {found.counters['version']}, this program reads versions 1 and 2")
    except (OSError, ValueError, KeyError, SafetensorError) as error:
        hint = "name another checkpoint, or the run's folder for its newest intact checkpoint"
        raise Refused(f"damaged checkpoint {path}: {error}", hint) from error
    return found


def find(source: Path, best: bool = False) -> Checkpoint:
    """The checkpoint that `source` is, or of the run that it is: the newest intact one, or the one with the best evaluation."""
    if (source / MANIFEST).is_file():
        return load(source)
    if not (source / FOLDER).is_dir():
        raise Refused(f"{source} is neither a run nor a checkpoint: it has no {FOLDER} and no {MANIFEST}",
                      "name what --run-dir named, or a folder below its checkpoints")
    newest = _newest(source)
    if not best:
        return newest
    if "best" not in newest.counters:
        raise Refused(f"{source}: the run was not evaluated before {newest.path.name}", "omit --best to take the newest checkpoint")
    return load(source / FOLDER / name(newest.counters["best"]["step"]))


def _newest(run: Path) -> Checkpoint:
    # One that was moved aside (.old) comes after the one that replaces it.
    found = sorted((-int(m[1]), m[0]) for p in (run / FOLDER).iterdir() if (m := _NAME.fullmatch(p.name)))
    for _, folder in found:
        try:
            return load(run / FOLDER / folder)
        except Refused as damage:
            print(f"warning: skipped: {damage}", file=sys.stderr)
    raise Refused(f"{run}: no intact checkpoint among {len(found)}", "train until a checkpoint is saved; --checkpoint-every sets the interval")


def name(step: int) -> str:
    """The folder's name of a step's checkpoint."""
    return f"step-{step:06d}"


def write(folder: Path, params: dict[str, torch.Tensor], moments: dict[str, torch.Tensor], state: str,
          frozen: frozenset[str] = frozenset(), averages: dict[str, torch.Tensor] | None = None) -> None:
    """Writes a checkpoint into a new folder; MANIFEST is written last, so an incomplete checkpoint is not taken for one.

    `frozen` names the weights for the file that checkpoints share, which is written next to the folder.
    """
    folder.mkdir(parents=True)
    shared = None
    if frozen:
        part = folder.parent / "frozen.safetensors.tmp"
        write_tensors(part, {name: params[name] for name in frozen})
        shared = part.rename(folder.parent / f"frozen-{_sum(part)}.safetensors")
    write_tensors(folder / PARAMS, {name: tensor for name, tensor in params.items() if name not in frozen})
    write_tensors(folder / MOMENTS, moments)
    if averages:
        write_tensors(folder / AVERAGES, averages)
    (folder / STATE).write_text(state, encoding="utf-8", newline="\n")
    (folder / MANIFEST).write_text(_manifest(folder, shared), encoding="utf-8", newline="\n")


def _manifest(folder: Path, shared: Path | None) -> str:
    """MANIFEST of the files as they are, in the form that sha256sum writes."""
    lines = [f"{_sum(shared)}  ../{shared.name}\n"] if shared else []
    files = sorted((PARAMS, MOMENTS, STATE, *([AVERAGES] if (folder / AVERAGES).is_file() else [])))
    return "".join(lines + [f"{_sum(folder / file)}  {file}\n" for file in files])


def _sum(file: Path) -> str:
    with file.open("rb") as f:
        return hashlib.file_digest(f, "sha256").hexdigest()


def write_tensors(path: Path, tensors: dict[str, torch.Tensor]) -> None:
    """Writes f32 tensors as the host does. The safetensors library gives the same data, but not for every name the same header."""
    header: dict = {"__metadata__": {"format": "pt"}}
    end = 0
    for key in sorted(tensors):
        start, end = end, end + 4 * tensors[key].numel()
        header[key] = {"dtype": "F32", "shape": list(tensors[key].shape), "data_offsets": [start, end]}
    text = json.dumps(dict(sorted(header.items())), ensure_ascii=False, separators=(",", ":"))
    # Go's encoding/json writes these so: https://pkg.go.dev/encoding/json#Marshal
    for char in "<>&\u2028\u2029":
        text = text.replace(char, f"\\u{ord(char):04x}")
    encoded = text.encode()
    encoded += b" " * (-len(encoded) % 8)
    with path.open("wb") as f:
        f.write(len(encoded).to_bytes(8, "little") + encoded)
        for key in sorted(tensors):
            f.write(tensors[key].detach().contiguous().numpy().astype("<f4", copy=False).tobytes())
