"""The bundles that this repository keeps, in their folders."""

from collections.abc import Callable
from dataclasses import replace
from functools import partial
from pathlib import Path

from . import multispeaker, presets
from .module import Export

REPOSITORY = Path(__file__).resolve().parents[2]

def _as_kept(build: Callable[[], Export]) -> Export:
    return replace(build(), numbered=False)


BUNDLES: dict[str, Callable[[], Export]] = {
    "builtin/myxtts-nano": partial(_as_kept, partial(presets.build, "nano")),
    "builtin/myxtts-multispeaker": partial(_as_kept, multispeaker.build),
    "testdata/pico": partial(_as_kept, presets.pico),
}
FOLDERS = {REPOSITORY / "ortgraphs" / folder: build for folder, build in BUNDLES.items()}


def precisions(folder: Path) -> tuple[str, ...]:
    """The precisions of the training graphs of a kept bundle."""
    return ("f32", "bf16") if folder.name == "myxtts-nano" else ("f32",)
