"""Graphs that are written as text, in ONNX's own syntax for it."""

from pathlib import Path

import onnx
import onnx.parser

from .joint import IR_VERSION
from .translate import OPSET

_HEADER = f'<ir_version: {IR_VERSION}, opset_import: ["" : {OPSET}]>\n'


def parse(text: str) -> onnx.ModelProto:
    model = onnx.parser.parse_model(_HEADER + text)
    onnx.checker.check_model(model, full_check=True)
    return model


def write(graphs: dict[str, str], folder: Path) -> None:
    """Each graph becomes NAME.onnx, the same bytes every time."""
    for name, text in graphs.items():
        (folder / f"{name}.onnx").write_bytes(parse(text).SerializeToString(deterministic=True))
