"""Reports what each module of the suite does: `python -m xtts_export.suite [NAME ...]`."""

import sys
import tempfile
import time
import traceback
from pathlib import Path

import torch

from ..refusal import Refusal
from .case import Case, cases, errors


def report(case: type[Case], folder: Path) -> str:
    torch.manual_seed(0)
    try:
        error = errors(case(), folder / f"{case.__name__}.onnx")
    except Refusal as refusal:
        return f"{'refused as declared' if case.refused and case.refused in str(refusal) else 'REFUSED'}: {refusal}\n    hint: {refusal.hint}"
    except Exception:
        return "FAILED: " + traceback.format_exc()
    if case.refused:
        return "EXPORTED, but declared as refused"
    return f"exported, differs by {error:.1e}" if error <= case.tolerance else f"DIFFERS by {error:.1e}"


def main() -> None:
    chosen = set(sys.argv[1:])
    with tempfile.TemporaryDirectory() as folder:
        for file, group in cases().items():
            for case in group:
                if not chosen or chosen & {file, case.__name__}:
                    start = time.process_time()
                    print(f"{file}.{case.__name__}: {report(case, Path(folder))} ({time.process_time() - start:.1f} s)", flush=True)


main()
