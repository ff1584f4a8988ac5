"""From a PyTorch module to a graph bundle that xtts-host trains (docs/bundle.md)."""

import os

# ONNX Runtime 1.29.0 sends telemetry unless this is set before it is loaded.
os.environ.setdefault("ORT_DISABLE_TELEMETRY", "1")
