"""Outputs of a command that are inputs of it: they would be overwritten."""

import argparse
from pathlib import Path

# The options that name what a command writes.
OUTPUTS = ("out", "peft")


def overwritten(options: argparse.Namespace) -> tuple[str, str] | None:
    """The error and its hint if an output is an input, or a file of a checkpoint in one: None if there is none."""
    inputs = [(name, path) for name, path in vars(options).items() if isinstance(path, Path) and name not in OUTPUTS and path.exists()]
    for output in OUTPUTS:
        path = getattr(options, output, None)
        if not isinstance(path, Path) or not path.exists():
            continue
        for name, other in inputs:
            if path.samefile(other):
                return f"--{output} {path} is the {'folder' if other.is_dir() else 'file'} of {_shown(name)}: it would be overwritten", f"name another one with --{output}"
            if path.is_file() and any(path.samefile(file) for file in _files(other)):
                return f"--{output} {path} is a file of {_shown(name)} {other}: it would be overwritten", f"name another file with --{output}"
    return None


def _shown(name: str) -> str:
    return name.upper() if name in ("source", "model", "list") else "--" + name.replace("_", "-")


def _files(folder: Path) -> list[Path]:
    """The files of a bundle, and of a run's checkpoints."""
    if not folder.is_dir():
        return []
    return [file for pattern in ("*.onnx", "*.safetensors", "*.json", "*.yaml", "MANIFEST", "checkpoints/**/*") for file in folder.glob(pattern) if file.is_file()]
