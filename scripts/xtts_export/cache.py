"""Graphs that were exported before, in the user's cache folder, by what determines them.

A file has a checksum, what was noted about the graph, and the graph. It is written under another name and renamed, so any number of
processes may share the folder.
"""

import contextlib
import hashlib
import json
import os
import platform
import tempfile
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import cache
from importlib.metadata import version
from pathlib import Path
from typing import TypeVar

T = TypeVar("T")
# Bytes of all files. The two graphs of a model with 66 million parameters take 2 MB.
LIMIT = 512 << 20
_SUFFIX, _PARTIAL = ".graph", ".partial"
# Whatever has a part in making a graph.
_PACKAGES = ("torch", "onnx", "onnxscript", "onnx-ir", "onnxruntime", "numpy", "sympy")
# Folders that try the exporter or train without it, and make no graphs.
_APART = ("baseline", "mutate", "suite")


def default_folder() -> Path | None:
    """Where xtts-host keeps what can be made again: below XDG_CACHE_HOME, or ~/.cache. None if there is no such place."""
    given = os.environ.get("XDG_CACHE_HOME", "")
    with contextlib.suppress(RuntimeError):
        base = Path(given) if given else Path.home() / ".cache"
        return base / "xtts-host" / "exports" if base.is_absolute() else None


@cache
def exporter(root: Path = Path(__file__).parent) -> str:
    """A hash of the package's sources that have a part in making a graph, and of the versions of what they use."""
    digest = hashlib.sha256()
    for path in sorted(root.rglob("*.py")):
        place = path.relative_to(root)
        if place.parts[0] not in _APART and not path.name.startswith("test_"):
            digest.update(f"{place} {hashlib.sha256(path.read_bytes()).hexdigest()}\n".encode())
    digest.update(json.dumps([platform.python_version(), platform.machine(), *(f"{name} {version(name)}" for name in _PACKAGES)]).encode())
    return digest.hexdigest()


def key(**parts: object) -> str:
    """The name of what these parts and the exporter determine."""
    return hashlib.sha256(json.dumps({"exporter": exporter(), **parts}, sort_keys=True).encode()).hexdigest()


@dataclass
class Cache:
    """The files of a folder; without a folder, nothing is kept. found and made are the names of the graphs that it had and that it had not."""

    folder: Path | None
    limit: int = LIMIT
    found: list[str] = field(default_factory=list)
    made: list[str] = field(default_factory=list)
    remarks: list[str] = field(default_factory=list)

    def get(self, key: str, name: str, decode: Callable[[dict, bytes], T]) -> T | None:
        """What decode makes of what was noted about the graph, and of the graph. An entry that cannot be decoded is none."""
        if self.folder is None:
            return None
        entry, path = None, self._path(key)
        try:
            entry = decode(*_decoded(key, path.read_bytes()))
            os.utime(path)
        except FileNotFoundError:
            pass
        except OSError as error:
            self.remarks.append(f"{path} cannot be read: {error.strerror}")
        except Exception:
            # A checksum tells that a file is whole, not who wrote it.
            self.remarks.append(f"{path} is damaged and was not used")
        (self.made if entry is None else self.found).append(name)
        return entry

    def put(self, key: str, notes: dict, graph: bytes) -> None:
        if self.folder is None:
            return
        data = _encoded(key, notes, graph)
        if len(data) > self.limit:
            self.remarks.append(f"a graph of {len(graph)} bytes is not kept: all files may have {self.limit}")
            return
        try:
            self.folder.mkdir(parents=True, exist_ok=True)
            with tempfile.NamedTemporaryFile(dir=self.folder, suffix=_PARTIAL, delete=False) as file:
                try:
                    file.write(data)
                    file.close()
                    os.replace(file.name, self._path(key))
                except OSError:
                    Path(file.name).unlink(missing_ok=True)
                    raise
            self._shrink()
        except OSError as error:
            self.remarks.append(f"{self.folder} cannot be written: {error.strerror}")

    def report(self) -> list[str]:
        """Lines that say what came from the cache."""
        total = len(self.found) + len(self.made)
        lines = [f"cache: {', '.join(self.found) if self.found else 'no graph'} of {total} in {self.folder}"] if total else []
        return lines + [f"cache: {remark}" for remark in dict.fromkeys(self.remarks)]

    def _path(self, key: str) -> Path:
        return self.folder / (key + _SUFFIX)

    def _shrink(self) -> None:
        """Removes what was not used for the longest time, until the rest fits. Another process may remove the same files."""
        entries = []
        for path in self.folder.iterdir():
            with contextlib.suppress(FileNotFoundError):
                if path.suffix in (_SUFFIX, _PARTIAL):
                    status = path.stat()
                    entries.append((status.st_mtime_ns, status.st_size, path))
        total = sum(size for _, size, _ in entries)
        for _, size, path in sorted(entries):
            if total <= self.limit:
                return
            path.unlink(missing_ok=True)
            total -= size


def _encoded(key: str, notes: dict, graph: bytes) -> bytes:
    content = json.dumps({"key": key, **notes}).encode() + b"\n" + graph
    return hashlib.sha256(content).hexdigest().encode() + b"\n" + content


def _decoded(key: str, data: bytes) -> tuple[dict, bytes]:
    """Raises an exception, whichever its content leads to, if it is not what was written under this key."""
    checksum, _, content = data.partition(b"\n")
    head, _, graph = content.partition(b"\n")
    if hashlib.sha256(content).hexdigest().encode() != checksum or (notes := json.loads(head)).pop("key") != key:
        raise ValueError("damaged")
    return notes, graph
