"""Lists in JSON Lines as the host reads them (host/data/dataset), and files that others may be reading while they are written anew."""

import json
import os
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import BinaryIO

from .refusal import Refusal


def lines(file: Path) -> list[tuple[int, str]]:
    """The lines of a list that are not empty, with their numbers, from 1. Only \\n ends a line, and \\r before it is no part of it: a text may have U+2028.

    A byte order mark at the beginning is left out. Raises Refusal.
    """
    hint = "name a list of JSON Lines (docs/data.md)"
    try:
        found = file.read_bytes().decode("utf-8-sig").split("\n")
    except OSError as error:
        raise Refusal(f"{file} cannot be read: {error.strerror}", hint) from error
    except UnicodeDecodeError as error:
        number = error.object[:error.start].count(b"\n") + 1
        raise Refusal(f"{file}:{number} is no UTF-8: byte {error.object[error.start]:#04x}", "write the file in UTF-8") from error
    return [(number, line.rstrip("\r")) for number, line in enumerate(found, 1) if line.strip()]


def rows(file: Path) -> list[tuple[str, dict]]:
    """The rows of a list, each with FILE:LINE. "text" is a string, and so is "language", unless it is missing or null. Raises Refusal."""
    hint, found = "docs/data.md says what a line has", []
    for number, line in lines(file):
        place = f"{file}:{number}"
        try:
            row = json.loads(line)
        except (ValueError, RecursionError) as error:
            raise Refusal(f"{place} is no JSON: {error}", hint) from error
        if not isinstance(row, dict):
            raise Refusal(f"{place} is no JSON object", hint)
        if "text" not in row:
            raise Refusal(f"{place} has no text", hint)
        for key, kinds in (("text", str), ("language", str | None)):
            if not isinstance(row.get(key), kinds):
                raise Refusal(f"{place}: {key} is {json.dumps(row[key], ensure_ascii=False)[:40]}, which is no string", hint)
        found.append((place, row))
    return found


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
