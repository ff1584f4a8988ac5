"""From a PyTorch module to a graph bundle that xtts-host trains (docs/export.md).

    from xtts_export import Export, Input, sequence
"""

import os

# ONNX Runtime 1.29.0 sends telemetry unless this is set before it is loaded.
os.environ.setdefault("ORT_DISABLE_TELEMETRY", "1")

from . import collection  # noqa: E402

with collection.off():
    from .alignment import monotonic_path
    from .inference import Inference
    from .inputs import Input, schedule, sequence, window
    from .module import Export, Player
    from .noise import normal, uniform
    from .probes import probe
    from .recurrence import scan

__all__ = ["Export", "Inference", "Input", "Player", "monotonic_path", "normal", "probe", "scan", "schedule", "sequence", "uniform", "window"]
