"""Codes and conditioning spectrograms of a data set, as files that its list names: the inputs of xtts-export's XTTS v2 (docs/xtts-v2.md).

    python -m export.xtts.codes clips/train.jsonl runs/codes/train.jsonl --dvae dvae.pth --mel-norms mel_stats.pth
"""

import argparse
import itertools
import json
import sys
from pathlib import Path

import librosa
import numpy as np
import torch
from safetensors.numpy import save_file
from torch import Tensor

from ..refusal import Refusal
from . import frozen, mels

_CONDITIONING = 6 * mels.RATE  # of a clip of the speaker, from its beginning: coqui's max_conditioning_length
_SHORTEST = mels.RATE // 2  # coqui leaves out shorter ones


class Maker:
    """What a list gets."""

    def __init__(self, encoder: Path, norms: Path):
        band = frozen.read_norms(norms)
        self.spoken, self.conditioning = frozen.Codes(band, frozen.read_encoder(encoder)), mels.conditioning(band)

    @torch.no_grad()
    def codes(self, waveform: Tensor) -> np.ndarray:
        return self.spoken(waveform[None], torch.tensor([len(waveform)]))[0][0].numpy()

    @torch.no_grad()
    def mel(self, waveform: Tensor) -> np.ndarray:
        waveform = waveform[None, :_CONDITIONING]
        return self.conditioning(waveform, torch.tensor([waveform.shape[1]]))[0][0].numpy()


def load(row: dict, folder: Path) -> Tensor:
    """A clip of a list: one channel, at the rate of the spectrograms."""
    waveform, _ = librosa.load(folder / row["audio_filepath"], sr=mels.RATE, mono=True, offset=row.get("offset") or 0.0, duration=row.get("duration"))
    return torch.from_numpy(waveform).clamp(-1, 1)


def write(source: Path, out: Path, maker: Maker) -> tuple[int, list[str]]:
    """Writes the list with `codes` and `conditioning`, and their files next to it. Returns how many rows it has, and why others are left out."""
    rows = _rows(source)
    folder, kept, left = out.parent / f"{out.stem}.files", [], []
    folder.mkdir(parents=True, exist_ok=True)
    for number, row in rows:
        try:
            waveform = load(row, source.parent)
        except Exception as error:  # librosa's readers raise of many classes
            left.append(f"{source}:{number}: {row['audio_filepath']}: {str(error) or type(error).__name__}")
            continue
        if len(waveform) < _SHORTEST:
            left.append(f"{source}:{number}: {row['audio_filepath']} has {len(waveform) / mels.RATE:.2f} s, less than half a second")
            continue
        file = folder / f"{number}.safetensors"
        save_file({"codes": maker.codes(waveform), "conditioning": maker.mel(waveform)}, file)
        kept.append((row, f"{folder.name}/{file.name}"))
    voices = {id(row): voice for row, voice in _others(kept)}
    with out.open("w", encoding="utf-8") as lines:
        for row, file in kept:
            audio = str((source.parent / row["audio_filepath"]).absolute())
            print(json.dumps({**row, "audio_filepath": audio, "codes": f"{file}#codes", "conditioning": f"{voices[id(row)]}#conditioning"}, ensure_ascii=False), file=lines)
    return len(kept), left


def _others(kept: list[tuple[dict, str]]) -> list[tuple[dict, str]]:
    """Each row with the file of the next row of its speaker, the last with that of the first: a prompt that is not what is spoken."""
    by_speaker: dict[object, list[tuple[dict, str]]] = {}
    for row, file in kept:
        by_speaker.setdefault(row.get("speaker", ""), []).append((row, file))
    return [(row, file) for own in by_speaker.values() for (row, _), (_, file) in zip(own, itertools.chain(own[1:], own[:1]), strict=True)]


def _rows(source: Path) -> list[tuple[int, dict]]:
    try:
        lines = source.read_text(encoding="utf-8").splitlines()
    except (OSError, UnicodeDecodeError) as error:
        raise Refusal(f"{source} cannot be read: {error}", "name a list in JSON Lines (docs/data.md)") from error
    rows = []
    for number, line in enumerate(lines, 1):
        try:
            row = json.loads(line) if line.strip() else None
        except ValueError as error:
            raise Refusal(f"{source}:{number}: {error}", "a line is a JSON object (docs/data.md)") from error
        if row is None:
            continue
        if not isinstance(row, dict) or not isinstance(row.get("audio_filepath"), str):
            raise Refusal(f"{source}:{number}: no audio_filepath", "a line is a JSON object (docs/data.md)")
        rows.append((number, row))
    return rows


def main(arguments: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="python -m export.xtts.codes", description=__doc__.splitlines()[0])
    parser.add_argument("list", type=Path, help="a data set in JSON Lines (docs/data.md)")
    parser.add_argument("out", type=Path, help="the new list; the arrays are in OUT's folder, in NAME.files")
    parser.add_argument("--dvae", type=Path, required=True, metavar="FILE", help="dvae.pth of XTTS")
    parser.add_argument("--mel-norms", type=Path, required=True, metavar="FILE", help="mel_stats.pth of XTTS v2, or its model.pth")
    options = parser.parse_args(arguments)
    try:
        count, left = write(options.list, options.out, Maker(options.dvae, options.mel_norms))
    except Refusal as error:
        print(f"error: {error}\nhint: {error.hint}", file=sys.stderr)
        return 2
    for line in left:
        print(f"left out: {line}")
    print(f"wrote {options.out}: {count} clips")
    return 0


if __name__ == "__main__":
    sys.exit(main())
