"""The bundles that this repository keeps, in their folders."""

from collections.abc import Callable
from functools import partial
from pathlib import Path

from . import multispeaker, presets
from .module import Export

REPOSITORY = Path(__file__).resolve().parents[2]

BUNDLES: dict[str, Callable[[], Export]] = {
    "builtin/myxtts-nano": partial(presets.build, "nano"),
    "builtin/myxtts-multispeaker": multispeaker.build,
    "testdata/pico": presets.pico,
}
FOLDERS = {REPOSITORY / "ortgraphs" / folder: build for folder, build in BUNDLES.items()}


def precisions(folder: Path) -> tuple[str, ...]:
    """The precisions of the training graphs of a kept bundle."""
    return ("f32", "bf16") if folder.name == "myxtts-nano" else ("f32",)
