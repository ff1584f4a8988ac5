"""From a PyTorch module to a graph bundle that xtts-host trains (docs/export.md).

    from xtts_export import Export, Input, sequence
"""

import os

# ONNX Runtime 1.29.0 sends telemetry unless this is set before it is loaded.
os.environ.setdefault("ORT_DISABLE_TELEMETRY", "1")

from .alignment import monotonic_path  # noqa: E402
from .inference import Inference  # noqa: E402
from .inputs import Input, schedule, sequence, window  # noqa: E402
from .module import Export, Player  # noqa: E402
from .noise import normal, uniform  # noqa: E402
from .recurrence import scan  # noqa: E402

__all__ = ["Export", "Inference", "Input", "Player", "monotonic_path", "normal", "scan", "schedule", "sequence", "uniform", "window"]
