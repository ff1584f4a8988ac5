"""Lists in JSON Lines as the host reads them (host/dataset), and files that others may be reading while they are written anew."""

import os
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import BinaryIO


def lines(file: Path) -> list[tuple[int, str]]:
    """The lines of a list that are not empty, with their numbers, from 1. Only \\n ends a line, and \\r before it is no part of it: a text may have U+2028.

    A byte order mark at the beginning is left out. Raises OSError and UnicodeDecodeError.
    """
    found = file.read_bytes().decode("utf-8-sig").split("\n")
    return [(number, line.rstrip("\r")) for number, line in enumerate(found, 1) if line.strip()]


@contextmanager
def replacing(path: Path) -> Iterator[BinaryIO]:
    """A file in the same folder that takes the path's place, complete and on the disk, when the block ends without an error."""
    with tempfile.NamedTemporaryFile(dir=path.parent, prefix=f".{path.name}.", suffix=".partial", delete=False) as file:
        try:
            yield file
            file.flush()
            os.fsync(file.fileno())
            os.chmod(file.name, path.stat().st_mode & 0o777 if path.exists() else 0o666 & ~_umask())
            os.replace(file.name, path)
        except BaseException:
            Path(file.name).unlink(missing_ok=True)
            raise


def _umask() -> int:
    """The mask of new files, which a temporary file does not have. Only by setting it can it be read."""
    mask = os.umask(0o077)
    os.umask(mask)
    return mask
