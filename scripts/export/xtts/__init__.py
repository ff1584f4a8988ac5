"""XTTS v2 in coqui's sizes and under the names of its checkpoints (docs/xtts-v2.md)."""
