"""A bundle's folder that appears when it is complete."""

import json
import os
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

INDEX = "bundle.json"


@contextmanager
def staged(folder: Path) -> Iterator[Path]:
    """A temporary sibling that takes the folder's place when the block ends without an error, and is removed otherwise.

    A folder that exists keeps its other files. It has no bundle.json while files are replaced, so that no one takes a mixture for a bundle.
    """
    folder = folder.absolute()
    folder.parent.mkdir(parents=True, exist_ok=True)
    sibling = folder.with_name(f".{folder.name}.{os.getpid()}.partial")
    sibling.mkdir()
    try:
        yield sibling
        if folder.exists():
            _replace(sibling, folder)
        else:
            sibling.rename(folder)
    finally:
        shutil.rmtree(sibling, ignore_errors=True)


def _replace(new: Path, folder: Path) -> None:
    stale = _files(folder)
    (folder / INDEX).unlink(missing_ok=True)
    for name in stale:
        (folder / name).unlink(missing_ok=True)
    for path in sorted(new.iterdir(), key=lambda path: path.name == INDEX):
        path.replace(folder / path.name)


def _files(folder: Path) -> list[str]:
    """The files of the bundle in a folder, as its bundle.json lists them; none without a bundle.json."""
    try:
        names = json.loads((folder / INDEX).read_text(encoding="utf-8"))["files"]
    except (OSError, ValueError, KeyError, TypeError):
        return []
    return [name for name in names if Path(name).name == name and (folder / name).is_file()]
